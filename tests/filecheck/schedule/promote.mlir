// RUN: ir-opt %s --pass-pipeline='promote' | FileCheck %s

// A sum in memory is carried out of both loops.
// CHECK-LABEL: @sum(
// CHECK: %[[A:.*]] = memref.load %s[] : memref<f32>
// CHECK-NEXT: %[[R:.*]] = scf.for {{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (f32) {
// CHECK-NEXT: %[[T:.*]] = scf.for {{.*}} iter_args(%[[C:.*]] = %[[B]]) -> (f32) {
// CHECK-NEXT: %[[X:.*]] = memref.load %x[
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[C]], %[[X]] : f32
// CHECK-NEXT: scf.yield %[[D]] : f32
// CHECK: scf.yield %[[T]] : f32
// CHECK: memref.store %[[R]], %s[] : memref<f32>
func.func private @sum(%x: memref<4x5xf32>, %s: memref<f32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c5 step %c1 {
      %0 = memref.load %s[] : memref<f32>
      %1 = memref.load %x[%i, %j] : memref<4x5xf32>
      %2 = arith.addf %0, %1 : f32
      memref.store %2, %s[] : memref<f32>
    }
  }
  return
}

// Buffers that may overlap keep their loads and stores, and so do places that move.
// CHECK-LABEL: @stays(
// CHECK-NOT: iter_args
// CHECK: return
func.func private @stays(%x: memref<5xf32>, %s: memref<f32>) attributes {nablair.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %j = %c0 to %c5 step %c1 {
    %0 = memref.load %s[] : memref<f32>
    %1 = memref.load %x[%j] : memref<5xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %s[] : memref<f32>
  }
  return
}

// CHECK-LABEL: @moves(
// CHECK-NOT: iter_args
// CHECK: return
func.func private @moves(%s: memref<5xf32>) attributes {nablair.kernel, nablair.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %j = %c0 to %c5 step %c1 {
    %0 = memref.load %s[%c1] : memref<5xf32>
    %1 = memref.load %s[%j] : memref<5xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %s[%c1] : memref<5xf32>
  }
  return
}
