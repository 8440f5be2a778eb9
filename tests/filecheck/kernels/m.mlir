// Attention, one head, online softmax: the monoid (max, sum, row of o)
func.func @m(%q : tensor<16x8xf32>, %k : tensor<24x8xf32>, %v : tensor<24x8xf32>) -> tensor<16x8xf32> {
  %y = kernel.launch (%i) in (16) ins(%q : tensor<16x8xf32>, %k : tensor<24x8xf32>, %v : tensor<24x8xf32>) outs(%y : tensor<16x8xf32>) {
    %scale = arith.constant 0.353553385 : f32
    %one = arith.constant 1.0 : f32
    %m, %l, %o = kernel.reduce (%j) in (24) from (0xFF7FFFFF : f32, 0.0 : f32, 0.0 : tensor<8xf32>) {
      %s = kernel.reduce (%e) in (8) by arith.addf {
        %0 = kernel.load %q[%i, %e]
        %1 = kernel.load %k[%j, %e]
        %2 = arith.mulf %0, %1 : f32
        kernel.yield %2
      }
      %t = arith.mulf %s, %scale : f32
      %r = kernel.local (%d) in (8) : tensor<8xf32> {
        %3 = kernel.load %v[%j, %d]
        kernel.yield %3
      }
      kernel.yield %t, %one, %r
    } combine (%ma, %la, %oa, %mb, %lb, %ob) {
      %mm = arith.maximumf %ma, %mb : f32
      %0 = arith.subf %ma, %mm : f32
      %1 = arith.subf %mb, %mm : f32
      %ca = math.exp %0 : f32
      %cb = math.exp %1 : f32
      %2 = arith.mulf %lb, %cb : f32
      %ll = math.fma %la, %ca, %2 : f32
      %oo = kernel.local (%d) in (8) : tensor<8xf32> {
        %3 = kernel.load %oa[%d]
        %4 = kernel.load %ob[%d]
        %5 = arith.mulf %4, %cb : f32
        %6 = math.fma %3, %ca, %5 : f32
        kernel.yield %6
      }
      kernel.yield %mm, %ll, %oo
    }
    kernel.sweep (%d) in (8) {
      %7 = kernel.load %o[%d]
      %8 = arith.divf %7, %l : f32
      kernel.store %8, %y[%i, %d]
    }
  }
  return %y : tensor<16x8xf32>
}
