// Softmax over the last axis: exp(x - m) is kept in a local row
func.func @d(%x : tensor<32x64xf32>) -> tensor<32x64xf32> {
  %y = kernel.launch (%i) in (32) ins(%x : tensor<32x64xf32>) outs(%y : tensor<32x64xf32>) {
    %m = kernel.reduce (%k) in (64) by arith.maximumf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
    %e = kernel.local (%k) in (64) : tensor<64xf32> {
      %0 = kernel.load %x[%i, %k]
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      kernel.yield %2
    }
    %s = kernel.reduce (%k) in (64) by arith.addf {
      %0 = kernel.load %e[%k]
      kernel.yield %0
    }
    kernel.sweep (%j) in (64) {
      %0 = kernel.load %e[%j]
      %1 = arith.divf %0, %s : f32
      kernel.store %1, %y[%i, %j]
    }
  }
  return %y : tensor<32x64xf32>
}
