// Softmax over the first axis, exp recomputed: one point is a column
func.func @d1(%x : tensor<32x64xf32>) -> tensor<32x64xf32> {
  %y = kernel.launch (%j) in (64) ins(%x : tensor<32x64xf32>) outs(%y : tensor<32x64xf32>) {
    %m = kernel.reduce (%k) in (32) by arith.maximumf {
      %0 = kernel.load %x[%k, %j]
      kernel.yield %0
    }
    %s = kernel.reduce (%k) in (32) by arith.addf {
      %0 = kernel.load %x[%k, %j]
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      kernel.yield %2
    }
    kernel.sweep (%i) in (32) {
      %0 = kernel.load %x[%i, %j]
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      %3 = arith.divf %2, %s : f32
      kernel.store %3, %y[%i, %j]
    }
  }
  return %y : tensor<32x64xf32>
}
