// RUN: ir-opt %s --pass-pipeline='parallel{least-work=10}' | FileCheck %s

// Tasks of neighbouring points.
// CHECK-LABEL: @half(
// CHECK-NEXT: %half = arith.constant 0.5 : f32
// CHECK-NEXT: scf.forall (%t) in (32) {
// CHECK-NEXT: %{{.*}} = arith.constant 32 : index
// CHECK-NEXT: %{{.*}} = arith.muli %t, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 32 : index
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 1000 : index
// CHECK-NEXT: %{{.*}} = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: scf.forall (%i) = (%{{.*}}) to (%{{.*}}) step (1) {
// CHECK-NEXT: %{{.*}} = memref.load %x[%i] : memref<1000xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%i] : memref<1000xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {nablair.worker}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @half(%x: memref<1000xf32>, %y: memref<1000xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {}} {
  %half = arith.constant 0.5 : f32
  scf.forall (%i) in (1000) {
    %0 = memref.load %x[%i] : memref<1000xf32>
    %1 = arith.mulf %0, %half : f32
    memref.store %1, %y[%i] : memref<1000xf32>
  } {axis = 0 : i64}
  return
}

// Too little to share.
// CHECK-LABEL: @little(
// CHECK-NEXT: %half = arith.constant 0.5 : f32
// CHECK-NEXT: scf.forall (%i) in (4) {
// CHECK-NEXT: %{{.*}} = memref.load %x[%i] : memref<4xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%i] : memref<4xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @little(%x: memref<4xf32>, %y: memref<4xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {}} {
  %half = arith.constant 0.5 : f32
  scf.forall (%i) in (4) {
    %0 = memref.load %x[%i] : memref<4xf32>
    %1 = arith.mulf %0, %half : f32
    memref.store %1, %y[%i] : memref<4xf32>
  } {axis = 0 : i64}
  return
}
