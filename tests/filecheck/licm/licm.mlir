// RUN: ir-opt %s --licm | FileCheck %s

// What depends on moved ops moves too, and out of all loops; reads and writes stay.
// CHECK-LABEL: @nest
// CHECK: %[[P:.*]] = arith.mulf %a, %b
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %a
// CHECK-NEXT: scf.for %i
// CHECK-NEXT: %[[J:.*]] = arith.addi %i, %n
// CHECK-NEXT: scf.forall
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: memref.store
func.func @nest(%a: f32, %b: f32, %n: index, %m: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    scf.forall (%j) in (4) {
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %p, %a : f32
      %at = arith.addi %i, %n : index
      %x = memref.load %m[%zero] : memref<?xf32>
      %y = arith.mulf %x, %s : f32
      memref.store %y, %m[%at] : memref<?xf32>
    }
  }
  return
}

// A branch is no loop; a choice without effects moves whole.
// CHECK-LABEL: @branches
// CHECK: %[[C:.*]] = scf.if %c -> (f32) {
// CHECK-NEXT: arith.negf
// CHECK: scf.for
// CHECK-NEXT: scf.if
// CHECK-NEXT: arith.mulf
func.func @branches(%a: f32, %c: i1, %n: index, %m: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %x = scf.if %c -> (f32) {
      %0 = arith.negf %a : f32
      scf.yield %0 : f32
    } else {
      scf.yield %a : f32
    }
    scf.if %c {
      %1 = arith.mulf %x, %a : f32
      memref.store %1, %m[%i] : memref<8xf32>
    }
  }
  return
}

// Both regions of a while are loops.
// CHECK-LABEL: @again
// CHECK-COUNT-2: arith.addi %n, %n
// CHECK: scf.while
// CHECK-NOT: arith.addi %n, %n
// CHECK: return
func.func @again(%n: index) -> index {
  %r = scf.while (%i = %n) : (index) -> index {
    %0 = arith.addi %n, %n : index
    %c = arith.cmpi slt, %i, %0 : index
    scf.condition(%c) %i : index
  } do {
  ^bb0(%i: index):
    %0 = arith.addi %n, %n : index
    %1 = arith.addi %i, %0 : index
    scf.yield %1 : index
  }
  return %r : index
}

// A loop may have no steps: what may lie outside then stays.
// CHECK-LABEL: @outside
// CHECK: vector.extract %v[3]
// CHECK: scf.for
// CHECK-NEXT: vector.extract %v[%k]
func.func @outside(%v: vector<4xf32>, %k: index, %n: index, %m: memref<8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %x = vector.extract %v[3] : f32 from vector<4xf32>
    %y = vector.extract %v[%k] : f32 from vector<4xf32>
    %z = arith.addf %x, %y : f32
    memref.store %z, %m[%i] : memref<8xf32>
  }
  return
}

// In a launch, loads of whole axes and constants move, and guarded ones; a computed place stays.
// CHECK-LABEL: @loads
// CHECK: kernel.launch
// CHECK-NEXT: kernel.load %x[%i]
// CHECK-NEXT: kernel.load %x[2]
// CHECK-NEXT: kernel.load %x[%i + 5] else 0.0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kernel.reduce
// CHECK-NEXT: kernel.load %x[%at]
// CHECK-NEXT: kernel.load %x[%i - 1]
// CHECK-NEXT: kernel.load %y[%k]
func.func @loads(%x: tensor<8xf32>, %y: tensor<?xf32, ["n"]>, %at: index) -> tensor<8xf32> {
  %n = array.dim %y {axis = 0} : tensor<?xf32, ["n"]>
  %r = kernel.launch (%i) in (8) ins(%x : tensor<8xf32>, %y : tensor<?xf32, ["n"]>, %at : index, %n : index) outs(%r : tensor<8xf32>) {
    %s = kernel.reduce (%k) in (%n) by arith.addf {
      %0 = kernel.load %x[%i]
      %1 = kernel.load %x[2]
      %2 = kernel.load %x[%i + 5] else 0.0
      %3 = kernel.load %x[%at]
      %4 = kernel.load %x[%i - 1]
      %5 = kernel.load %y[%k]
      %6 = arith.addf %0, %1 : f32
      %7 = arith.addf %2, %3 : f32
      %8 = arith.addf %4, %5 : f32
      %9 = arith.addf %6, %7 : f32
      %10 = arith.addf %8, %9 : f32
      kernel.yield %10
    }
    kernel.store %s, %r[%i]
  }
  return %r : tensor<8xf32>
}
