// An out that starts from an operand: x[2:6] = 0, rows in place
func.func @o(%x : tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = kernel.launch (%i, %j) in (4, 8) outs(%y = %x : tensor<8x8xf32>) {
    %0 = arith.constant 0.0 : f32
    kernel.store %0, %y[%i + 2, %j]
  }
  return %y : tensor<8x8xf32>
}
