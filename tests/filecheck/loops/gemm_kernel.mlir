// a @ b, 32x24 by 24x48, as a GPU kernel with tiles in workgroup memory.

module attributes {gpu.container_module = unit} {
  gpu.module @gemm_kernels {
    gpu.func @gemm(%a: memref<32x24xf32>, %b: memref<24x48xf32>, %c: memref<32x48xf32>) workgroup(%sa : memref<16x8xf32, #gpu.address_space<workgroup>>, %sb : memref<8x16xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 16, 16, 1>, known_grid_size = array<i32: 3, 2, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c24 = arith.constant 24 : index
      %zero = arith.constant 0.0 : f32
      %by = gpu.block_id y
      %bx = gpu.block_id x
      %y = gpu.thread_id y
      %x = gpu.thread_id x
      %i0 = arith.muli %by, %c16 : index
      %j0 = arith.muli %bx, %c16 : index
      %acc = scf.for %k0 = %c0 to %c24 step %c8 iter_args(%s0 = %zero) -> (f32) {
        %in = arith.cmpi ult, %x, %c8 : index
        scf.if %in {
          %i = arith.addi %i0, %y : index
          %k = arith.addi %k0, %x : index
          %0 = memref.load %a[%i, %k] : memref<32x24xf32>
          memref.store %0, %sa[%y, %x] : memref<16x8xf32, #gpu.address_space<workgroup>>
          %j = arith.addi %j0, %y : index
          %1 = memref.load %b[%k, %j] : memref<24x48xf32>
          memref.store %1, %sb[%x, %y] : memref<8x16xf32, #gpu.address_space<workgroup>>
        }
        gpu.barrier
        %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%t = %s0) -> (f32) {
          %0 = memref.load %sa[%y, %k] : memref<16x8xf32, #gpu.address_space<workgroup>>
          %1 = memref.load %sb[%k, %x] : memref<8x16xf32, #gpu.address_space<workgroup>>
          %2 = math.fma %0, %1, %t : f32
          scf.yield %2 : f32
        }
        gpu.barrier
        scf.yield %s : f32
      }
      %i = arith.addi %i0, %y : index
      %j = arith.addi %j0, %x : index
      memref.store %acc, %c[%i, %j] : memref<32x48xf32>
      gpu.return
    }
  }
  func.func @gemm(%a: memref<32x24xf32>, %b: memref<24x48xf32>, %c: memref<32x48xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @gemm_kernels::@gemm blocks in (%c3, %c2, %c1) threads in (%c16, %c16, %c1) args(%a : memref<32x24xf32>, %b : memref<24x48xf32>, %c : memref<32x48xf32>)
    return
  }
}
