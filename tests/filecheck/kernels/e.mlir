// Layer_norm forward; mean and rstd are residuals
func.func @e(%x : tensor<32x64xf32>, %g : tensor<64xf32>, %b : tensor<64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>) {
  %y, %mean, %rstd = kernel.launch (%i) in (32)
      ins(%x : tensor<32x64xf32>, %g : tensor<64xf32>, %b : tensor<64xf32>)
      outs(%y : tensor<32x64xf32>, %mean : tensor<32xf32>, %rstd : tensor<32xf32>) {
    %n = arith.constant 0.015625 : f32
    %eps = arith.constant 1.0e-05 : f32
    %s = kernel.reduce (%k) in (64) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
    %mu = arith.mulf %s, %n : f32
    %q = kernel.reduce (%k) in (64) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      %1 = arith.subf %0, %mu : f32
      %2 = arith.mulf %1, %1 : f32
      kernel.yield %2
    }
    %var = arith.mulf %q, %n : f32
    %ve = arith.addf %var, %eps : f32
    %r = math.rsqrt %ve : f32
    kernel.store %mu, %mean[%i]
    kernel.store %r, %rstd[%i]
    kernel.sweep (%j) in (64) {
      %0 = kernel.load %x[%i, %j]
      %1 = kernel.load %g[%j]
      %2 = kernel.load %b[%j]
      %3 = arith.subf %0, %mu : f32
      %4 = arith.mulf %3, %r : f32
      %5 = math.fma %4, %1, %2 : f32
      kernel.store %5, %y[%i, %j]
    }
  }
  return %y, %mean, %rstd : tensor<32x64xf32>, tensor<32xf32>, tensor<32xf32>
}
