"""Texts of every level, for tests of the text itself."""

TENSOR = """
module attributes {nablair.target = {kind = "cpu"}} {
  func.func @gelu(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
    %0 = elementwise.add %x, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
    %1 = elementwise.tanh %0 : tensor<4x8xf32>
    %m = linalg.reduce_max %1 {axes = [1], keepdims} : tensor<4x8xf32> -> tensor<4x1xf32>
    %d = elementwise.sub %1, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
    return %d : tensor<4x8xf32>
  }
  func.func @symbolic(%x: tensor<?x64xf32, ["n"]>) -> tensor<?x64xf32, ["n"]> {
    %0 = elementwise.exp %x : tensor<?x64xf32, ["n"]>
    return %0 : tensor<?x64xf32, ["n"]>
  }
}
"""

KERNEL = """
module {
  func.func @softmax(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %y = kernel.launch (%i) in (32) ins(%x : tensor<32x64xf32>) outs(%y : tensor<32x64xf32>) {
      %m = kernel.reduce (%k) in (64) by arith.maximumf {
        %0 = kernel.load %x[%i, %k]
        kernel.yield %0
      }
      %e = kernel.local (%k) in (64) : tensor<64xf32> {
        %0 = kernel.load %x[%i, %k]
        %1 = arith.subf %0, %m : f32
        %2 = math.exp %1 : f32
        kernel.yield %2
      }
      %s = kernel.reduce (%k) in (64) by arith.addf {
        %0 = kernel.load %e[%k]
        kernel.yield %0
      }
      kernel.sweep (%j) in (64) {
        %0 = kernel.load %e[%j]
        %1 = arith.divf %0, %s : f32
        kernel.store %1, %y[%i, %j]
      }
    }
    return %y : tensor<32x64xf32>
  }
}
"""

LOOP = """
#strided = affine_map<(d0, d1)[s0] -> (d0 * 16 + s0 + d1)>
!row = memref<?xf32, strided<[1], offset: ?>>
module {
  func.func private @external(i32, f32 {sample.dict = {a = 1 : i8}}) -> f32
  func.func @sum(%x: memref<32x60xf32>, %y: memref<32xf32>, %row: !row) attributes {sample.map = #strided} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %zero = arith.constant 0.0 : f32
    scf.forall (%i) in (32) {
      %s = scf.for %k = %c0 to %c60 step %c1 iter_args(%a = %zero) -> (f32) {
        %0 = memref.load %x[%i, %k] : memref<32x60xf32>
        %p = arith.cmpf ogt, %0, %zero : f32
        %1 = scf.if %p -> (f32) {
          %2 = arith.addf %a, %0 : f32
          scf.yield %2 : f32
        } else {
          scf.yield %a : f32
        }
        scf.yield %1 : f32
      }
      memref.store %s, %y[%i] : memref<32xf32>
    } {mapping = [#gpu.block<x>]}
    %v = arith.constant dense<[1.0, 2.0, 0x7FC00000, -0.0]> : vector<4xf32>
    %w = vector.broadcast %zero : f32 to vector<4xf32>
    %u = arith.addf %v, %w : vector<4xf32>
    return
  }
}
"""

GENERIC = r"""
"builtin.module"() ({
  "func.func"() <{function_type = (i32, i1) -> i32, sym_name = "branch"}> ({
  ^bb0(%a: i32, %c: i1):
    %0:2 = "sample.pair"(%a) {names = ["x\22", "\C3\A9"], "odd key" = @sym::@"nested name", unit} : (i32) -> (i32, f32)
    "sample.cond"(%c)[^bb1, ^bb2] {weights = array<i32: 1, 2>} : (i1) -> ()
  ^bb1:
    %1 = "sample.use"(%0#0, %0#1) : (i32, f32) -> i32
    "sample.br"(%1)[^bb3] : (i32) -> ()
  ^bb2:
    "sample.br"(%a)[^bb3] : (i32) -> ()
  ^bb3(%r: i32):
    %2 = "sample.region"(%r) <{p = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>}> ({
      %3 = "sample.leaf"() {v = 0xFF800000 : f32, w = #sample.kind<a, "b>">, t = !sample.type<x>} : () -> index
      "sample.end"(%3) : (index) -> ()
    }, {
    ^bb0(%q: vector<4xf32>):
      "sample.end"(%q) : (vector<4xf32>) -> ()
    }) {loc_ = unit} : (i32) -> i32 loc("file.py":3:7)
    "func.return"(%2) : (i32) -> () loc(callsite("f"("g.py":1:2) at fused["a", unknown]))
  }) : () -> ()
}) : () -> ()
"""

SAMPLES = {"tensor": TENSOR, "kernel": KERNEL, "loop": LOOP, "generic": GENERIC}
