// relu(a @ b + bias) with the sum in blocks of the inner axis, kept in the result.

module {
  func.func @gemm(%a: memref<28x8xf32>, %b: memref<8x64xf32>, %bias: memref<64xf32>, %c: memref<28x64xf32>) {
    %0 = arith.constant 0.0 : f32
    %1 = arith.constant 0 : index
    %2 = arith.constant 4 : index
    %3 = arith.constant 0 : index
    %4 = arith.constant 8 : index
    %5 = arith.constant 4 : index
    scf.for %6 = %3 to %4 step %5 {
      %7 = arith.cmpi eq, %6, %1 : index
      %8 = arith.cmpi eq, %6, %2 : index
      scf.forall (%9) in (28) {
        scf.forall (%10) in (64) {
          %11 = memref.load %c[%9, %10] : memref<28x64xf32>
          %12 = arith.select %7, %0, %11 : f32
          %13 = arith.constant 0 : index
          %14 = arith.constant 4 : index
          %15 = arith.constant 1 : index
          %16 = scf.for %17 = %13 to %14 step %15 iter_args(%18 = %12) -> (f32) {
            %19 = arith.addi %6, %17 : index
            %20 = memref.load %a[%9, %19] : memref<28x8xf32>
            %21 = memref.load %b[%19, %10] : memref<8x64xf32>
            %22 = math.fma %20, %21, %18 : f32
            scf.yield %22 : f32
          }
          scf.if %8 {
            %17 = memref.load %bias[%10] : memref<64xf32>
            %18 = arith.addf %16, %17 : f32
            %negative19 = arith.cmpf ogt, %0, %18 : f32
            %19 = arith.select %negative19, %0, %18 : f32
            memref.store %19, %c[%9, %10] : memref<28x64xf32>
          } else {
            memref.store %16, %c[%9, %10] : memref<28x64xf32>
          }
        }
      }
    }
    return
  }
}
