// max(x * 0.5, 0) + 1 with its points mapped to blocks and threads; runs sequentially as it stands.

module {
  func.func @a(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %xf = memref.collapse_shape %x [[0, 1]] : memref<64x64xf32> into memref<4096xf32>
    %yf = memref.collapse_shape %y [[0, 1]] : memref<64x64xf32> into memref<4096xf32>
    scf.forall (%b) = (0) to (4096) step (256) {
      scf.forall (%t) in (256) {
        %i = arith.addi %b, %t : index
        %0 = memref.load %xf[%i] : memref<4096xf32>
        %1 = arith.mulf %0, %half : f32
        %negative2 = arith.cmpf ogt, %zero, %1 : f32
        %2 = arith.select %negative2, %zero, %1 : f32
        %3 = arith.addf %2, %one : f32
        memref.store %3, %yf[%i] : memref<4096xf32>
      } {mapping = [#gpu.thread<x>]}
    } {mapping = [#gpu.block<x>]}
    return
  }
}
