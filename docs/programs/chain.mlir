// y = relu(x * w) + 1, w a row.
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64xf32>) -> tensor<64x64xf32> {
  %0 = elementwise.mul %x, %w : tensor<64x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
  %1 = elementwise.relu %0 : tensor<64x64xf32>
  %one = array.constant dense<1.0> : tensor<f32>
  %2 = elementwise.add %1, %one : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
