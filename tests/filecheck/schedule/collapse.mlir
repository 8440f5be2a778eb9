// RUN: ir-opt %s --pass-pipeline='collapse' | FileCheck %s

// Rows of a contiguous buffer are one.
// CHECK-LABEL: @rows(
// CHECK-NEXT: %{{.*}} = memref.collapse_shape %x {{\[\[}}0, 1{{\]\]}} : memref<64x3xf32> into memref<192xf32>
// CHECK-NEXT: %{{.*}} = memref.collapse_shape %y {{\[\[}}0, 1{{\]\]}} : memref<64x3xf32> into memref<192xf32>
// CHECK-NEXT: scf.forall (%j) in (192) {
// CHECK-NEXT: %{{.*}} = memref.load %{{.*}}[%j] : memref<192xf32>
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%j] : memref<192xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @rows(%x: memref<64x3xf32>, %b: memref<3xf32>, %y: memref<64x3xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[1, 16]]}} {
  scf.forall (%i) in (64) {
    scf.forall (%j) in (3) {
      %0 = memref.load %x[%i, %j] : memref<64x3xf32>
      memref.store %0, %y[%i, %j] : memref<64x3xf32>
    } {axis = 1 : i64}
  } {axis = 0 : i64}
  return
}

// An operand that is read again for each row keeps them apart.
// CHECK-LABEL: @broadcast(
// CHECK-NEXT: scf.forall (%i) in (64) {
// CHECK-NEXT: scf.forall (%j) in (3) {
// CHECK-NEXT: %{{.*}} = memref.load %b[%j] : memref<3xf32>
// CHECK-NEXT: memref.store %{{.*}}, %y[%i, %j] : memref<64x3xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @broadcast(%x: memref<64x3xf32>, %b: memref<3xf32>, %y: memref<64x3xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[1, 16]]}} {
  scf.forall (%i) in (64) {
    scf.forall (%j) in (3) {
      %0 = memref.load %b[%j] : memref<3xf32>
      memref.store %0, %y[%i, %j] : memref<64x3xf32>
    } {axis = 1 : i64}
  } {axis = 0 : i64}
  return
}
