// Softmax of the rows of 32x60: maximum, a row of exponentials, their sum, quotients.

module {
  func.func @d(%x: memref<32x60xf32>, %y: memref<32x60xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %zero = arith.constant 0.0 : f32
    %ninf = arith.constant 0xFF800000 : f32
    scf.forall (%i) in (32) {
      %m = scf.for %k = %c0 to %c60 step %c1 iter_args(%a = %ninf) -> (f32) {
        %0 = memref.load %x[%i, %k] : memref<32x60xf32>
        %1 = arith.maximumf %a, %0 : f32
        scf.yield %1 : f32
      }
      %e = memref.alloca() : memref<60xf32>
      scf.for %k = %c0 to %c60 step %c1 {
        %0 = memref.load %x[%i, %k] : memref<32x60xf32>
        %1 = arith.subf %0, %m : f32
        %2 = math.exp %1 : f32
        memref.store %2, %e[%k] : memref<60xf32>
      }
      %s = scf.for %k = %c0 to %c60 step %c1 iter_args(%a = %zero) -> (f32) {
        %0 = memref.load %e[%k] : memref<60xf32>
        %1 = arith.addf %a, %0 : f32
        scf.yield %1 : f32
      }
      scf.for %j = %c0 to %c60 step %c1 {
        %0 = memref.load %e[%j] : memref<60xf32>
        %1 = arith.divf %0, %s : f32
        memref.store %1, %y[%i, %j] : memref<32x60xf32>
      }
    }
    return
  }
}
