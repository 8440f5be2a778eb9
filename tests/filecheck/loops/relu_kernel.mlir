// max(x * 0.5, 0) + 1 as a GPU kernel and the function that launches it.

module attributes {gpu.container_module = unit} {
  gpu.module @a_kernels {
    gpu.func @a(%x: memref<4096xf32>, %y: memref<4096xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 16, 1, 1>} {
      %half = arith.constant 0.5 : f32
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %c256 = arith.constant 256 : index
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %o = arith.muli %b, %c256 : index
      %i = arith.addi %o, %t : index
      %0 = memref.load %x[%i] : memref<4096xf32>
      %1 = arith.mulf %0, %half : f32
      %negative2 = arith.cmpf ogt, %zero, %1 : f32
      %2 = arith.select %negative2, %zero, %1 : f32
      %3 = arith.addf %2, %one : f32
      memref.store %3, %y[%i] : memref<4096xf32>
      gpu.return
    }
  }
  func.func @a(%x: memref<4096xf32>, %y: memref<4096xf32>) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @a_kernels::@a blocks in (%c16, %c1, %c1) threads in (%c256, %c1, %c1) args(%x : memref<4096xf32>, %y : memref<4096xf32>)
    return
  }
}
