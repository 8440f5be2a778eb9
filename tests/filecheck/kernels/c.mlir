// Its backward: da, db, dc in one launch; db sums over the rows
func.func @c(%a : tensor<64x64xf32>, %b : tensor<64xf32>, %c : tensor<64x64xf32>, %dy : tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) {
  %da, %db, %dc = kernel.launch (%i, %j) in (64, 64)
      ins(%a : tensor<64x64xf32>, %b : tensor<64xf32>, %c : tensor<64x64xf32>, %dy : tensor<64x64xf32>)
      outs(%da : tensor<64x64xf32>, %db : tensor<64xf32>, %dc : tensor<64x64xf32>) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %0 = kernel.load %a[%i, %j]
    %1 = kernel.load %b[%j]
    %2 = kernel.load %c[%i, %j]
    %3 = kernel.load %dy[%i, %j]
    %s = arith.addf %0, %1 : f32
    %z = arith.mulf %s, %2 : f32
    %n = arith.cmpf ogt, %zero, %z : f32
    %r = arith.select %n, %zero, %z : f32
    %t = math.tanh %r : f32
    %tt = arith.mulf %t, %t : f32
    %u = arith.subf %one, %tt : f32
    %v = arith.mulf %3, %u : f32
    %pos = arith.cmpf ugt, %z, %zero : f32
    %dz = arith.select %pos, %v, %zero : f32
    %4 = arith.mulf %dz, %2 : f32
    %5 = arith.mulf %dz, %s : f32
    kernel.store %4, %da[%i, %j]
    kernel.accumulate %4, %db[%j] by arith.addf
    kernel.store %5, %dc[%i, %j]
  }
  return %da, %db, %dc : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>
}
