// RUN: ir-opt %s --inline | FileCheck %s
// RUN: ir-opt %s --inline --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// CHECK-NOT: @helper
// CHECK-NOT: @deep
func.func private @helper(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  return %0 : f32
}
func.func private @deep(%x: f32) -> (f32, f32) {
  %0 = call @helper(%x) : (f32) -> f32
  return %0, %x : f32, f32
}

// CHECK-LABEL: @main
// CHECK-NEXT: %[[A:.*]] = arith.mulf %a, %a : f32
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[A]] : f32
// CHECK-NEXT: return %[[B]], %[[A]]
// LOC-LABEL: @main
// LOC: arith.mulf {{.*}} loc(callsite(callsite("{{.*}}":7:{{.*}} at "{{.*}}":11:{{.*}}) at "{{.*}}":22:
func.func @main(%a: f32) -> (f32, f32) {
  %0, %1 = call @deep(%a) : (f32) -> (f32, f32)
  %2, %3 = call @deep(%0) : (f32) -> (f32, f32)
  return %2, %3 : f32, f32
}

// Recursion stays, and so does what is asked to.
// CHECK-LABEL: func.func private @even
// CHECK: call @odd
// CHECK-LABEL: func.func private @odd
// CHECK: call @even
// CHECK-LABEL: func.func private @kept
// CHECK-LABEL: @others
// CHECK: call @even
// CHECK: call @kept
func.func private @even(%n: i32) -> i32 {
  %0 = call @odd(%n) : (i32) -> i32
  return %0 : i32
}
func.func private @odd(%n: i32) -> i32 {
  %0 = call @even(%n) : (i32) -> i32
  return %0 : i32
}
func.func private @kept(%n: i32) -> i32 attributes {no_inline} {
  return %n : i32
}
func.func @others(%n: i32) -> (i32, i32) {
  %0 = call @even(%n) : (i32) -> i32
  %1 = call @kept(%n) : (i32) -> i32
  return %0, %1 : i32, i32
}
