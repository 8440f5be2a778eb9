// Row sums by a tree over workgroup memory, mapped to threads; runs sequentially as it stands.

module {
  func.func @rowsum(%x: memref<32x1024xf32>, %y: memref<32xf32>) {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %c1024 = arith.constant 1024 : index
    %zero = arith.constant 0.0 : f32
    scf.forall (%i) in (32) {
      %sm = memref.alloca() : memref<256xf32, #gpu.address_space<workgroup>>
      scf.forall (%t) in (256) {
        %s = scf.for %k = %t to %c1024 step %c256 iter_args(%a = %zero) -> (f32) {
          %0 = memref.load %x[%i, %k] : memref<32x1024xf32>
          %1 = arith.addf %a, %0 : f32
          scf.yield %1 : f32
        }
        memref.store %s, %sm[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      } {mapping = [#gpu.thread<x>]}
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %last = scf.while (%h = %c128) : (index) -> index {
        %go = arith.cmpi ugt, %h, %c0 : index
        scf.condition(%go) %h : index
      } do {
      ^bb0(%h: index):
        scf.forall (%t) in (%h) {
          %u = arith.addi %t, %h : index
          %0 = memref.load %sm[%t] : memref<256xf32, #gpu.address_space<workgroup>>
          %1 = memref.load %sm[%u] : memref<256xf32, #gpu.address_space<workgroup>>
          %2 = arith.addf %0, %1 : f32
          memref.store %2, %sm[%t] : memref<256xf32, #gpu.address_space<workgroup>>
        } {mapping = [#gpu.thread<x>]}
        %g = arith.shrui %h, %c1 : index
        scf.yield %g : index
      }
      scf.forall (%t) in (1) {
        %0 = memref.load %sm[%t] : memref<256xf32, #gpu.address_space<workgroup>>
        memref.store %0, %y[%i] : memref<32xf32>
      } {mapping = [#gpu.thread<x>]}
    } {mapping = [#gpu.block<x>]}
    return
  }
}
