// DW = x^T @ dy, then v' = 0.9 v + dW, w' = w - lr v'
func.func @g(%x : tensor<32x16xf32>, %dy : tensor<32x24xf32>, %w : tensor<16x24xf32>, %v : tensor<16x24xf32>, %lr : f32)
    -> (tensor<16x24xf32>, tensor<16x24xf32>) {
  %wn, %vn = kernel.launch (%i, %j) in (16, 24)
      ins(%x : tensor<32x16xf32>, %dy : tensor<32x24xf32>, %w : tensor<16x24xf32>, %v : tensor<16x24xf32>, %lr : f32)
      outs(%wn : tensor<16x24xf32>, %vn : tensor<16x24xf32>) {
    %dw = kernel.reduce (%n) in (32) by arith.addf {
      %0 = kernel.load %x[%n, %i]
      %1 = kernel.load %dy[%n, %j]
      %2 = arith.mulf %0, %1 : f32
      kernel.yield %2
    }
    %mu = arith.constant 0.9 : f32
    %3 = kernel.load %v[%i, %j]
    %4 = kernel.load %w[%i, %j]
    %5 = math.fma %3, %mu, %dw : f32
    %6 = arith.mulf %5, %lr : f32
    %7 = arith.subf %4, %6 : f32
    kernel.store %7, %wn[%i, %j]
    kernel.store %5, %vn[%i, %j]
  }
  return %wn, %vn : tensor<16x24xf32>, tensor<16x24xf32>
}
