// Its transpose: rows scattered by addition
func.func @k1(%dy : tensor<16x8xf32>, %idx : tensor<16xi64>) -> tensor<32x8xf32> {
  %dt = kernel.launch (%i, %j) in (16, 8) ins(%dy : tensor<16x8xf32>, %idx : tensor<16xi64>) outs(%dt : tensor<32x8xf32>) {
    %0 = kernel.load %idx[%i]
    %row = arith.index_cast %0 : i64 to index
    %1 = kernel.load %dy[%i, %j]
    kernel.accumulate %1, %dt[%row, %j] by arith.addf
  }
  return %dt : tensor<32x8xf32>
}
