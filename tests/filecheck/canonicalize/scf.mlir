// RUN: ir-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @known_branch
// CHECK-NEXT: %[[R:.*]] = arith.mulf %x, %x : f32
// CHECK-NEXT: memref.store %[[R]], %m
// CHECK-NEXT: return %[[R]]
func.func @known_branch(%x: f32, %m: memref<4xf32>, %i: index) -> f32 {
  %c = arith.constant true
  %0 = scf.if %c -> (f32) {
    %1 = arith.mulf %x, %x : f32
    memref.store %1, %m[%i] : memref<4xf32>
    scf.yield %1 : f32
  } else {
    scf.yield %x : f32
  }
  return %0 : f32
}

// CHECK-LABEL: @single_trip
// CHECK-NOT: scf.for
// CHECK: %[[V:.*]] = memref.load %m[%[[I:.*]]]
// CHECK-NEXT: %[[R:.*]] = arith.addf %x, %[[V]]
// CHECK-NEXT: return %[[R]]
func.func @single_trip(%x: f32, %m: memref<8xf32>) -> f32 {
  %lo = arith.constant 3 : index
  %hi = arith.constant 5 : index
  %step = arith.constant 2 : index
  %0 = scf.for %i = %lo to %hi step %step iter_args(%a = %x) -> (f32) {
    %v = memref.load %m[%i] : memref<8xf32>
    %s = arith.addf %a, %v : f32
    scf.yield %s : f32
  }
  return %0 : f32
}

// CHECK-LABEL: @not_carried
// CHECK: %[[R:.*]] = scf.for %{{.*}} = %{{.*}} to %n step %{{.*}} iter_args(%[[A:.*]] = %x) -> (f32)
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %y
// CHECK-NEXT: scf.yield %[[S]] : f32
// CHECK: return %[[R]], %y
func.func @not_carried(%x: f32, %y: f32, %n: index) -> (f32, f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0, %1 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y) -> (f32, f32) {
    %s = arith.addf %a, %b : f32
    scf.yield %s, %b : f32, f32
  }
  return %0, %1 : f32, f32
}

// CHECK-LABEL: @equal_values
// CHECK: scf.if %c -> (f32)
// CHECK: return %{{.*}}, %y : f32, f32
func.func @equal_values(%c: i1, %x: f32, %y: f32) -> (f32, f32) {
  %0, %1 = scf.if %c -> (f32, f32) {
    %2 = arith.mulf %x, %x : f32
    scf.yield %2, %y : f32, f32
  } else {
    scf.yield %x, %y : f32, f32
  }
  return %0, %1 : f32, f32
}

// CHECK-LABEL: @nothing_to_do
// CHECK-NEXT: return
func.func @nothing_to_do(%c: i1, %n: index) {
  scf.if %c {
  } else {
  }
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %0 = arith.addi %i, %one : index
  }
  return
}

// The constant moves out of the loop.
// CHECK-LABEL: @hoisted
// CHECK: arith.constant 5.0{{.*}} : f32
// CHECK: scf.for
func.func @hoisted(%m: memref<8xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %c = arith.constant 5.0 : f32
    memref.store %c, %m[%i] : memref<8xf32>
  }
  return
}
