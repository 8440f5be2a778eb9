// Its backward: (softmax - onehot) * dloss / n
func.func @h1(%x : tensor<8x10xf32>, %cls : tensor<8xi64>, %lse : tensor<8xf32>, %dl : tensor<f32>) -> tensor<8x10xf32> {
  %dx = kernel.launch (%i, %j) in (8, 10)
      ins(%x : tensor<8x10xf32>, %cls : tensor<8xi64>, %lse : tensor<8xf32>, %dl : tensor<f32>) outs(%dx : tensor<8x10xf32>) {
    %n = arith.constant 0.125 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %0 = kernel.load %x[%i, %j]
    %1 = kernel.load %lse[%i]
    %2 = kernel.load %cls[%i]
    %3 = kernel.load %dl[]
    %4 = arith.subf %0, %1 : f32
    %p = math.exp %4 : f32
    %c = arith.index_cast %2 : i64 to index
    %hit = arith.cmpi eq, %j, %c : index
    %5 = arith.select %hit, %one, %zero : f32
    %6 = arith.subf %p, %5 : f32
    %7 = arith.mulf %3, %n : f32
    %8 = arith.mulf %6, %7 : f32
    kernel.store %8, %dx[%i, %j]
  }
  return %dx : tensor<8x10xf32>
}
