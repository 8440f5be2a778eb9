// max(x * 0.5, 0) + 1 on 64x64, the naive nest: one forall over the points.

module {
  func.func @a(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    scf.forall (%i, %j) in (64, 64) {
      %0 = memref.load %x[%i, %j] : memref<64x64xf32>
      %1 = arith.mulf %0, %half : f32
      %negative2 = arith.cmpf ogt, %zero, %1 : f32
      %2 = arith.select %negative2, %zero, %1 : f32
      %3 = arith.addf %2, %one : f32
      memref.store %3, %y[%i, %j] : memref<64x64xf32>
    }
    return
  }
}
