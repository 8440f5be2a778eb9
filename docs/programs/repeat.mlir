// Two steps of Newton's method for the square root of %a.
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %half = array.constant dense<0.5> : tensor<f32>
  %0 = repeat.times %a {
  ^bb0(%x: tensor<4xf32>):
    %1 = elementwise.div %a, %x : tensor<4xf32>
    %2 = elementwise.add %x, %1 : tensor<4xf32>
    %3 = elementwise.mul %2, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    repeat.yield %3 : tensor<4xf32>
  } {count = 2 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
