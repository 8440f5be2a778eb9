// Conv2d NCHW, 3x3, padding 1
func.func @l(%x : tensor<1x3x8x8xf32>, %w : tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %y = kernel.launch (%n, %o, %h, %v) in (1, 4, 8, 8)
      ins(%x : tensor<1x3x8x8xf32>, %w : tensor<4x3x3x3xf32>) outs(%y : tensor<1x4x8x8xf32>) {
    %s = kernel.reduce (%c, %p, %q) in (3, 3, 3) by arith.addf {
      %0 = kernel.load %x[%n, %c, %h + %p - 1, %v + %q - 1] else 0.0
      %1 = kernel.load %w[%o, %c, %p, %q]
      %2 = arith.mulf %0, %1 : f32
      kernel.yield %2
    }
    kernel.store %s, %y[%n, %o, %h, %v]
  }
  return %y : tensor<1x4x8x8xf32>
}
