// Argmax over the last axis: first of equals, NaN wins
func.func @i(%x : tensor<8x10xf32>) -> tensor<8xi64> {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8x10xf32>) outs(%y : tensor<8xi64>) {
    %m, %at = kernel.reduce (%k) in (10) from (0xFF800000 : f32, 9223372036854775807 : i64) {
      %0 = kernel.load %x[%i, %k]
      %1 = arith.index_cast %k : index to i64
      kernel.yield %0, %1
    } combine (%a, %ia, %b, %ib) {
      %no = arith.constant false
      %0 = arith.cmpf ugt, %b, %a : f32
      %1 = arith.cmpf ord, %a, %a : f32
      %win = arith.andi %0, %1 : i1
      %2 = arith.cmpf ugt, %a, %b : f32
      %3 = arith.cmpf ord, %b, %b : f32
      %lose = arith.andi %2, %3 : i1
      %first = arith.cmpi slt, %ib, %ia : i64
      %tie = arith.select %lose, %no, %first : i1
      %take = arith.ori %win, %tie : i1
      %v = arith.select %take, %b, %a : f32
      %iv = arith.select %take, %ib, %ia : i64
      kernel.yield %v, %iv
    }
    kernel.store %at, %y[%i]
  }
  return %y : tensor<8xi64>
}
