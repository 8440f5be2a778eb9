// Its backward: dx, dgamma, dbeta; two sums in one reduce, accumulate inside the sweep
func.func @e1(%x : tensor<32x64xf32>, %g : tensor<64xf32>, %dy : tensor<32x64xf32>, %mean : tensor<32xf32>, %rstd : tensor<32xf32>)
    -> (tensor<32x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %dx, %dg, %db = kernel.launch (%i) in (32)
      ins(%x : tensor<32x64xf32>, %g : tensor<64xf32>, %dy : tensor<32x64xf32>, %mean : tensor<32xf32>, %rstd : tensor<32xf32>)
      outs(%dx : tensor<32x64xf32>, %dg : tensor<64xf32>, %db : tensor<64xf32>) {
    %n = arith.constant 0.015625 : f32
    %mu = kernel.load %mean[%i]
    %r = kernel.load %rstd[%i]
    %s, %t = kernel.reduce (%k) in (64) by (arith.addf, arith.addf) {
      %0 = kernel.load %x[%i, %k]
      %1 = kernel.load %dy[%i, %k]
      %2 = kernel.load %g[%k]
      %3 = arith.subf %0, %mu : f32
      %h = arith.mulf %3, %r : f32
      %w = arith.mulf %1, %2 : f32
      %wh = arith.mulf %w, %h : f32
      kernel.yield %w, %wh
    }
    %sn = arith.mulf %s, %n : f32
    %tn = arith.mulf %t, %n : f32
    kernel.sweep (%j) in (64) {
      %0 = kernel.load %x[%i, %j]
      %1 = kernel.load %dy[%i, %j]
      %2 = kernel.load %g[%j]
      %3 = arith.subf %0, %mu : f32
      %h = arith.mulf %3, %r : f32
      %w = arith.mulf %1, %2 : f32
      %4 = arith.mulf %h, %tn : f32
      %5 = arith.subf %w, %sn : f32
      %6 = arith.subf %5, %4 : f32
      %7 = arith.mulf %6, %r : f32
      kernel.store %7, %dx[%i, %j]
      %8 = arith.mulf %1, %h : f32
      kernel.accumulate %8, %dg[%j] by arith.addf
      kernel.accumulate %1, %db[%j] by arith.addf
    }
  }
  return %dx, %dg, %db : tensor<32x64xf32>, tensor<64xf32>, tensor<64xf32>
}
