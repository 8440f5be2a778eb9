// Softmax cross-entropy with class indices, mean over the batch
func.func @h(%x : tensor<8x10xf32>, %cls : tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>) {
  %loss, %lse = kernel.launch (%i) in (8) ins(%x : tensor<8x10xf32>, %cls : tensor<8xi64>) outs(%loss : tensor<f32>, %lse : tensor<8xf32>) {
    %m = kernel.reduce (%k) in (10) by arith.maximumf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
    %s = kernel.reduce (%k) in (10) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      kernel.yield %2
    }
    %n = arith.constant 0.125 : f32
    %3 = math.log %s : f32
    %4 = arith.addf %3, %m : f32
    %5 = kernel.load %cls[%i]
    %c = arith.index_cast %5 : i64 to index
    %6 = kernel.load %x[%i, %c]
    %7 = arith.subf %4, %6 : f32
    %8 = arith.mulf %7, %n : f32
    kernel.store %4, %lse[%i]
    kernel.accumulate %8, %loss[] by arith.addf
  }
  return %loss, %lse : tensor<f32>, tensor<8xf32>
}
