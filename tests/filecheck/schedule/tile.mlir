// RUN: ir-opt %s --pass-pipeline='tile' | FileCheck %s

// Rows in blocks of two neighbouring heights; columns in whole blocks and one that is left.
// CHECK-LABEL: @gemm(
// CHECK-NEXT: %zero = arith.constant 0.0 : f32
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %c12 = arith.constant 12 : index
// CHECK-NEXT: scf.forall (%i0) = (0) to (4) step (4) {
// CHECK-NEXT: scf.forall (%j0) = (0) to (8) step (8) {
// CHECK-NEXT: scf.forall (%i) in (4) {
// CHECK-NEXT: scf.forall (%j) in (8) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
// CHECK-NEXT: %{{.*}} = memref.load %a[%{{.*}}, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 1 : i64}
// CHECK-NEXT: scf.forall (%j0) = (8) to (10) step (2) {
// CHECK-NEXT: scf.forall (%i) in (4) {
// CHECK-NEXT: scf.forall (%j) in (2) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
// CHECK-NEXT: %{{.*}} = memref.load %a[%{{.*}}, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64, block = 0 : i64}
// CHECK-NEXT: scf.forall (%i0) = (4) to (7) step (3) {
// CHECK-NEXT: scf.forall (%j0) = (0) to (8) step (8) {
// CHECK-NEXT: scf.forall (%i) in (3) {
// CHECK-NEXT: scf.forall (%j) in (8) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
// CHECK-NEXT: %{{.*}} = memref.load %a[%{{.*}}, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 1 : i64}
// CHECK-NEXT: scf.forall (%j0) = (8) to (10) step (2) {
// CHECK-NEXT: scf.forall (%i) in (3) {
// CHECK-NEXT: scf.forall (%j) in (2) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
// CHECK-NEXT: %{{.*}} = memref.load %a[%{{.*}}, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64, block = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @gemm(%a: memref<7x12xf32>, %b: memref<12x10xf32>, %c: memref<7x10xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0, 1>, schedule = {loops = [[0, 4], [1, 8]], vector = [[1, 4]], unroll = [[0, 4]]}} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  scf.forall (%i) in (7) {
    scf.forall (%j) in (10) {
      %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
        %0 = memref.load %a[%i, %k] : memref<7x12xf32>
        %1 = memref.load %b[%k, %j] : memref<12x10xf32>
        %2 = math.fma %0, %1, %t : f32
        scf.yield %2 : f32
      } {axis = 2 : i64}
      %3 = arith.addf %s, %s : f32
      memref.store %3, %c[%i, %j] : memref<7x10xf32>
    } {axis = 1 : i64}
  } {axis = 0 : i64}
  return
}
