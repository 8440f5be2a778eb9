// Tanh(relu((a + b) * c)), b broadcast over rows
func.func @b(%a : tensor<64x64xf32>, %b : tensor<64xf32>, %c : tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = kernel.launch (%i, %j) in (64, 64)
      ins(%a : tensor<64x64xf32>, %b : tensor<64xf32>, %c : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) {
    %zero = arith.constant 0.0 : f32
    %0 = kernel.load %a[%i, %j]
    %1 = kernel.load %b[%j]
    %2 = kernel.load %c[%i, %j]
    %s = arith.addf %0, %1 : f32
    %z = arith.mulf %s, %2 : f32
    %n = arith.cmpf ogt, %zero, %z : f32
    %r = arith.select %n, %zero, %z : f32
    %t = math.tanh %r : f32
    kernel.store %t, %y[%i, %j]
  }
  return %y : tensor<64x64xf32>
}
