// RUN: ir-opt %s --cse | FileCheck %s

// CHECK-LABEL: @commutes
// CHECK-NEXT: %[[A:.*]] = arith.addf %x, %y : f32
// CHECK-NEXT: %[[S:.*]] = arith.subf %x, %y : f32
// CHECK-NEXT: %[[T:.*]] = arith.subf %y, %x : f32
// CHECK-NEXT: %[[F:.*]] = arith.addf %x, %y fastmath<contract> : f32
// CHECK-NEXT: return %[[A]], %[[A]], %[[S]], %[[T]], %[[F]]
func.func @commutes(%x: f32, %y: f32) -> (f32, f32, f32, f32, f32) {
  %0 = arith.addf %x, %y : f32
  %1 = arith.addf %y, %x : f32
  %2 = arith.subf %x, %y : f32
  %3 = arith.subf %y, %x : f32
  %4 = arith.addf %x, %y fastmath<contract> : f32
  return %0, %1, %2, %3, %4 : f32, f32, f32, f32, f32
}

// What stands in one branch does not dominate the other, nor what is behind.
// CHECK-LABEL: @branches
// CHECK: scf.if
// CHECK-NEXT: arith.mulf
// CHECK: else
// CHECK-NEXT: arith.mulf
// CHECK: }
// CHECK-NEXT: arith.mulf
func.func @branches(%c: i1, %x: f32) -> f32 {
  %0 = scf.if %c -> (f32) {
    %1 = arith.mulf %x, %x : f32
    scf.yield %1 : f32
  } else {
    %2 = arith.mulf %x, %x : f32
    scf.yield %2 : f32
  }
  %3 = arith.mulf %x, %x : f32
  %4 = arith.addf %0, %3 : f32
  return %4 : f32
}

// CHECK-LABEL: @dominating
// CHECK-NEXT: %[[A:.*]] = arith.mulf %x, %x
// CHECK-NEXT: scf.if
// CHECK-NEXT: scf.yield %[[A]]
func.func @dominating(%c: i1, %x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  %1 = scf.if %c -> (f32) {
    %2 = arith.mulf %x, %x : f32
    scf.yield %2 : f32
  } else {
    scf.yield %0 : f32
  }
  return %1 : f32
}

// Two equal reductions of a kernel are one; another body is another reduction.
// CHECK-LABEL: @reductions
// CHECK: kernel.reduce
// CHECK: kernel.reduce
// CHECK-NOT: kernel.reduce
// CHECK: return
func.func @reductions(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8x16xf32>) outs(%y : tensor<8xf32>) {
    %0 = kernel.reduce (%k) in (16) by arith.addf {
      %v = kernel.load %x[%i, %k]
      kernel.yield %v
    }
    %1 = kernel.reduce (%k) in (16) by arith.addf {
      %v = kernel.load %x[%i, %k]
      kernel.yield %v
    }
    %2 = kernel.reduce (%k) in (16) by arith.addf {
      %v = kernel.load %x[%i, %k]
      %w = arith.mulf %v, %v : f32
      kernel.yield %w
    }
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    kernel.store %4, %y[%i]
  }
  return %y : tensor<8xf32>
}

// A combine region uses nothing from outside.
// CHECK-LABEL: @closed
// CHECK: arith.constant 2.0 : f32
// CHECK: combine
// CHECK: arith.constant 2.0 : f32
func.func @closed(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8x16xf32>) outs(%y : tensor<8xf32>) {
    %c = arith.constant 2.0 : f32
    %0 = kernel.reduce (%k) in (16) from (0.0 : f32) {
      %v = kernel.load %x[%i, %k]
      %w = arith.mulf %v, %c : f32
      kernel.yield %w
    } combine (%a, %b) {
      %d = arith.constant 2.0 : f32
      %s = arith.addf %a, %b : f32
      %m = arith.minimumf %s, %d : f32
      kernel.yield %m
    }
    kernel.store %0, %y[%i]
  }
  return %y : tensor<8xf32>
}
