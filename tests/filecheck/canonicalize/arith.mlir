// RUN: ir-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @constants_to_the_right
// CHECK: %[[C:.*]] = arith.constant 7 : i32
// CHECK: arith.muli %x, %[[C]] : i32
func.func @constants_to_the_right(%x: i32) -> i32 {
  %c = arith.constant 7 : i32
  %0 = arith.muli %c, %x : i32
  return %0 : i32
}

// CHECK-LABEL: @one_constant
// CHECK: %[[C:.*]] = arith.constant 6 : i32
// CHECK-NEXT: %[[R:.*]] = arith.addi %x, %[[C]] : i32
// CHECK-NEXT: return %[[R]]
func.func @one_constant(%x: i32) -> i32 {
  %a = arith.constant 1 : i32
  %b = arith.constant 2 : i32
  %c = arith.constant 3 : i32
  %0 = arith.addi %a, %x : i32
  %1 = arith.addi %0, %b : i32
  %2 = arith.addi %c, %1 : i32
  return %2 : i32
}

// A sum with 0.0 is no identity: it turns -0.0 into 0.0.
// CHECK-LABEL: @zeros
// CHECK: %[[S:.*]] = arith.addf %x
// CHECK: return %[[S]], %x : f32, f32
func.func @zeros(%x: f32) -> (f32, f32) {
  %p = arith.constant 0.0 : f32
  %n = arith.constant -0.0 : f32
  %0 = arith.addf %x, %p : f32
  %1 = arith.addf %x, %n : f32
  return %0, %1 : f32, f32
}

// CHECK-LABEL: @signs
// CHECK-NEXT: %[[D:.*]] = arith.subf %x, %y fastmath<contract> : f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %x, %y : f32
// CHECK-NEXT: return %[[D]], %[[P]]
func.func @signs(%x: f32, %y: f32) -> (f32, f32) {
  %nx = arith.negf %x : f32
  %ny = arith.negf %y : f32
  %0 = arith.addf %ny, %x fastmath<contract> : f32
  %1 = arith.mulf %nx, %ny : f32
  return %0, %1 : f32, f32
}

// Division by a power of two is exact; by 3, or by one whose reciprocal is denormal, it is not.
// CHECK-LABEL: @division
// CHECK-DAG: %[[Q:.*]] = arith.constant 0.25 : f32
// CHECK-DAG: arith.mulf %x, %[[Q]] : f32
// CHECK-DAG: arith.divf %x
// CHECK-DAG: arith.divf %x
func.func @division(%x: f32) -> (f32, f32, f32) {
  %four = arith.constant 4.0 : f32
  %three = arith.constant 3.0 : f32
  %huge = arith.constant 0x7F000000 : f32
  %0 = arith.divf %x, %four : f32
  %1 = arith.divf %x, %three : f32
  %2 = arith.divf %x, %huge : f32
  return %0, %1, %2 : f32, f32, f32
}

// CHECK-LABEL: @compare
// CHECK: arith.cmpi sgt, %x
// CHECK: arith.cmpf oge, %y
func.func @compare(%x: i32, %y: f32) -> (i1, i1) {
  %c = arith.constant 3 : i32
  %d = arith.constant 3.0 : f32
  %0 = arith.cmpi slt, %c, %x : i32
  %1 = arith.cmpf ole, %d, %y : f32
  return %0, %1 : i1, i1
}

// CHECK-LABEL: @not
// CHECK-NEXT: %[[R:.*]] = arith.select %c, %y, %x : f32
func.func @not(%c: i1, %x: f32, %y: f32) -> f32 {
  %true = arith.constant true
  %n = arith.xori %c, %true : i1
  %0 = arith.select %n, %x, %y : f32
  return %0 : f32
}

// CHECK-LABEL: @not_compare
// CHECK: %[[A:.*]] = arith.cmpi uge, %x, %y
// CHECK: %[[B:.*]] = arith.cmpf uge, %a, %b
// CHECK: %[[C:.*]] = arith.cmpf uno, %a, %b
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @not_compare(%x: i32, %y: i32, %a: f32, %b: f32) -> (i1, i1, i1) {
  %true = arith.constant true
  %0 = arith.cmpi ult, %x, %y : i32
  %1 = arith.xori %0, %true : i1
  %2 = arith.cmpf olt, %a, %b : f32
  %3 = arith.xori %2, %true : i1
  %4 = arith.cmpf ord, %a, %b : f32
  %5 = arith.xori %true, %4 : i1
  return %1, %3, %5 : i1, i1, i1
}
