// Relu(x * 0.5) + 1
func.func @a(%x : tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = kernel.launch (%i, %j) in (64, 64) ins(%x : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) {
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %0 = kernel.load %x[%i, %j]
    %1 = arith.mulf %0, %half : f32
    %c = arith.cmpf ogt, %zero, %1 : f32
    %2 = arith.select %c, %zero, %1 : f32
    %3 = arith.addf %2, %one : f32
    kernel.store %3, %y[%i, %j]
  }
  return %y : tensor<64x64xf32>
}
