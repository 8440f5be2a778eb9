// relu(a @ b + bias), 28x8 by 8x64, the naive nest.

module {
  func.func @gemm(%a: memref<28x8xf32>, %b: memref<8x64xf32>, %bias: memref<64xf32>, %c: memref<28x64xf32>) {
    %0 = arith.constant 0.0 : f32
    scf.forall (%1) in (28) {
      scf.forall (%2) in (64) {
        %3 = arith.constant 0 : index
        %4 = arith.constant 8 : index
        %5 = arith.constant 1 : index
        %6 = scf.for %7 = %3 to %4 step %5 iter_args(%8 = %0) -> (f32) {
          %9 = memref.load %a[%1, %7] : memref<28x8xf32>
          %10 = memref.load %b[%7, %2] : memref<8x64xf32>
          %11 = math.fma %9, %10, %8 : f32
          scf.yield %11 : f32
        }
        %7 = memref.load %bias[%2] : memref<64xf32>
        %8 = arith.addf %6, %7 : f32
        %negative9 = arith.cmpf ogt, %0, %8 : f32
        %9 = arith.select %negative9, %0, %8 : f32
        memref.store %9, %c[%1, %2] : memref<28x64xf32>
      }
    }
    return
  }
}
