// Attention as plain fusion finds it: a local row of probabilities, no N x N tensor
func.func @m1(%q : tensor<16x8xf32>, %k : tensor<24x8xf32>, %v : tensor<24x8xf32>) -> tensor<16x8xf32> {
  %y = kernel.launch (%i) in (16) ins(%q : tensor<16x8xf32>, %k : tensor<24x8xf32>, %v : tensor<24x8xf32>) outs(%y : tensor<16x8xf32>) {
    %scale = arith.constant 0.353553385 : f32
    %t = kernel.local (%j) in (24) : tensor<24xf32> {
      %s = kernel.reduce (%e) in (8) by arith.addf {
        %0 = kernel.load %q[%i, %e]
        %1 = kernel.load %k[%j, %e]
        %2 = arith.mulf %0, %1 : f32
        kernel.yield %2
      }
      %3 = arith.mulf %s, %scale : f32
      kernel.yield %3
    }
    %m = kernel.reduce (%j) in (24) by arith.maximumf {
      %0 = kernel.load %t[%j]
      kernel.yield %0
    }
    %p = kernel.local (%j) in (24) : tensor<24xf32> {
      %0 = kernel.load %t[%j]
      %1 = arith.subf %0, %m : f32
      %2 = math.exp %1 : f32
      kernel.yield %2
    }
    %l = kernel.reduce (%j) in (24) by arith.addf {
      %0 = kernel.load %p[%j]
      kernel.yield %0
    }
    kernel.sweep (%d) in (8) {
      %o = kernel.reduce (%j) in (24) by arith.addf {
        %0 = kernel.load %p[%j]
        %1 = kernel.load %v[%j, %d]
        %2 = arith.mulf %0, %1 : f32
        kernel.yield %2
      }
      %3 = arith.divf %o, %l : f32
      kernel.store %3, %y[%i, %d]
    }
  }
  return %y : tensor<16x8xf32>
}
