func.func @main(%x: tensor<3x8xf32>) -> tensor<3xf32> {
  %0 = elementwise.mul %x, %x : tensor<3x8xf32>
  %1 = chance.reduce_either %0 {axes = [1]} : tensor<3x8xf32> -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
