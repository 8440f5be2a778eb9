// What split-reduce makes of a row sum: 4 partial sums side by side, the tail filled with the identity
func.func @p(%x : tensor<8x10xf32>) -> tensor<8xf32> {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8x10xf32>) outs(%y : tensor<8xf32>) {
    %s = kernel.reduce (%l) in (4) by arith.addf {
      %p = kernel.reduce (%k) in (3) by arith.addf {
        %0 = kernel.load %x[%i, 4 * %k + %l] else 0.0
        kernel.yield %0
      }
      kernel.yield %p
    }
    kernel.store %s, %y[%i]
  }
  return %y : tensor<8xf32>
}
