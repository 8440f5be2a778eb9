// Cumulative sum along rows
func.func @j(%x : tensor<8x10xf32>) -> tensor<8x10xf32> {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8x10xf32>) outs(%y : tensor<8x10xf32>) {
    %total = kernel.scan (%k) in (10) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    } do (%before, %after) {
      kernel.store %after, %y[%i, %k]
    }
  }
  return %y : tensor<8x10xf32>
}
