// a @ b, 32x24 by 24x48, mapped to blocks and threads; runs sequentially as it stands.

module {
  func.func @gemm(%a: memref<32x24xf32>, %b: memref<24x48xf32>, %c: memref<32x48xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c24 = arith.constant 24 : index
    %zero = arith.constant 0.0 : f32
    %sa = memref.alloca() : memref<16x8xf32>
    %sb = memref.alloca() : memref<8x16xf32>
    %acc = memref.alloca() : memref<16x16xf32>
    scf.forall (%i0, %j0) = (0, 0) to (32, 48) step (16, 16) {
      scf.forall (%y, %x) in (16, 16) {
        memref.store %zero, %acc[%y, %x] : memref<16x16xf32>
      } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
      scf.for %k0 = %c0 to %c24 step %c8 {
        scf.forall (%y, %x) in (16, 8) {
          %i = arith.addi %i0, %y : index
          %k = arith.addi %k0, %x : index
          %0 = memref.load %a[%i, %k] : memref<32x24xf32>
          memref.store %0, %sa[%y, %x] : memref<16x8xf32>
          %kb = arith.addi %k0, %x : index
          %j = arith.addi %j0, %y : index
          %1 = memref.load %b[%kb, %j] : memref<24x48xf32>
          memref.store %1, %sb[%x, %y] : memref<8x16xf32>
        } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
        scf.forall (%y, %x) in (16, 16) {
          %s0 = memref.load %acc[%y, %x] : memref<16x16xf32>
          %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%t = %s0) -> (f32) {
            %0 = memref.load %sa[%y, %k] : memref<16x8xf32>
            %1 = memref.load %sb[%k, %x] : memref<8x16xf32>
            %2 = math.fma %0, %1, %t : f32
            scf.yield %2 : f32
          }
          memref.store %s, %acc[%y, %x] : memref<16x16xf32>
        } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
      }
      scf.forall (%y, %x) in (16, 16) {
        %i = arith.addi %i0, %y : index
        %j = arith.addi %j0, %x : index
        %0 = memref.load %acc[%y, %x] : memref<16x16xf32>
        memref.store %0, %c[%i, %j] : memref<32x48xf32>
      } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
    } {mapping = [#gpu.block<y>, #gpu.block<x>]}
    return
  }
}
