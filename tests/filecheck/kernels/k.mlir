// Rows gathered by index (negative ones count from the end), then tanh
func.func @k(%t : tensor<32x8xf32>, %idx : tensor<16xi64>) -> tensor<16x8xf32> {
  %y = kernel.launch (%i, %j) in (16, 8) ins(%t : tensor<32x8xf32>, %idx : tensor<16xi64>) outs(%y : tensor<16x8xf32>) {
    %zero = arith.constant 0 : i64
    %n = arith.constant 32 : i64
    %0 = kernel.load %idx[%i]
    %neg = arith.cmpi slt, %0, %zero : i64
    %1 = arith.addi %0, %n : i64
    %2 = arith.select %neg, %1, %0 : i64
    %row = arith.index_cast %2 : i64 to index
    %3 = kernel.load %t[%row, %j]
    %4 = math.tanh %3 : f32
    kernel.store %4, %y[%i, %j]
  }
  return %y : tensor<16x8xf32>
}
