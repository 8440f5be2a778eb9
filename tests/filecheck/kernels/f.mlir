// Gelu(a @ b + bias), a and b bf16, sum in f32
func.func @f(%a : tensor<28x8xbf16>, %b : tensor<8x64xbf16>, %bias : tensor<64xf32>) -> tensor<28x64xf32> {
  %y = kernel.launch (%i, %j) in (28, 64)
      ins(%a : tensor<28x8xbf16>, %b : tensor<8x64xbf16>, %bias : tensor<64xf32>) outs(%y : tensor<28x64xf32>) {
    %s = kernel.reduce (%k) in (8) by arith.addf {
      %0 = kernel.load %a[%i, %k]
      %1 = kernel.load %b[%k, %j]
      %2 = arith.extf %0 : bf16 to f32
      %3 = arith.extf %1 : bf16 to f32
      %4 = arith.mulf %2, %3 : f32
      kernel.yield %4
    }
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.constant 0.707106769 : f32
    %5 = kernel.load %bias[%j]
    %h = arith.addf %s, %5 : f32
    %6 = arith.mulf %h, %c : f32
    %7 = math.erf %6 : f32
    %8 = arith.addf %7, %one : f32
    %9 = arith.mulf %h, %half : f32
    %z = arith.mulf %9, %8 : f32
    kernel.store %z, %y[%i, %j]
  }
  return %y : tensor<28x64xf32>
}
