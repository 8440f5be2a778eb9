// RUN: ir-opt %s --split-input-file --verify-diagnostics

func.func @types(%x: f32, %y: f64) -> f32 {
  // expected-error@+1 {{}}
  %0 = "arith.addf"(%x, %y) : (f32, f64) -> f32
  return %0 : f32
}

// -----

func.func @order(%x: f32) -> f32 {
  %1 = arith.addf %x, %0 : f32 // expected-error {{}}
  %0 = arith.addf %x, %x : f32
  return %1 : f32
}

// -----

// expected-error@below {{@missing}}
"func.call"() <{callee = @missing}> : () -> ()
