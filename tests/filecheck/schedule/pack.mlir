// RUN: ir-opt %s --pass-pipeline='block-reduction,tile,pack' | FileCheck %s

// Panels of one factor inside the block loop of the fold, rows of the other inside that of rows.
// CHECK-LABEL: @gemm(
// CHECK-NEXT: %{{.*}} = memref.alloca() {alignment = 64} : memref<7x10xf32>
// CHECK-NEXT: %{{.*}} = memref.alloca() {alignment = 64} : memref<2x6x8xf32>
// CHECK-NEXT: %zero = arith.constant 0.0 : f32
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %c12 = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 6 : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: scf.for %k0 = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: scf.forall (%p) in (1) {
// CHECK-NEXT: scf.forall (%q) in (6) {
// CHECK-NEXT: scf.forall (%w) in (8) {
// CHECK-NEXT: %{{.*}} = arith.constant 8 : index
// CHECK-NEXT: %{{.*}} = arith.muli %p, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %w : index
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %q : index
// CHECK-NEXT: %{{.*}} = memref.load %b[%{{.*}}, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%p, %q, %w] : memref<2x6x8xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: scf.forall (%q) in (6) {
// CHECK-NEXT: scf.forall (%w) in (2) {
// CHECK-NEXT: %{{.*}} = arith.constant 8 : index
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %w : index
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %q : index
// CHECK-NEXT: %{{.*}} = memref.load %b[%{{.*}}, %{{.*}}] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %q, %w] : memref<2x6x8xf32>
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.cmpi eq, %k0, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.subi %{{.*}}, %k0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 6 : index
// CHECK-NEXT: scf.forall (%i0) = (0) to (7) step (7) {
// CHECK-NEXT: scf.forall (%q) in (7) {
// CHECK-NEXT: scf.forall (%q_0) in (6) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %q : index
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %q_0 : index
// CHECK-NEXT: %{{.*}} = memref.load %a[%{{.*}}, %{{.*}}] : memref<7x12xf32>
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%q, %q_0] : memref<7x10xf32>
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: scf.forall (%j0) = (0) to (8) step (8) {
// CHECK-NEXT: %{{.*}} = arith.constant 8 : index
// CHECK-NEXT: %{{.*}} = arith.divui %j0, %{{.*}} : index
// CHECK-NEXT: scf.forall (%i) in (7) {
// CHECK-NEXT: scf.forall (%j) in (8) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %{{.*}} = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: scf.yield %zero : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %{{.*}} = memref.load %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %s = scf.for %k = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %k : index
// CHECK-NEXT: %{{.*}} = memref.load %{{.*}}[%i, %k] : memref<7x10xf32>
// CHECK-NEXT: %{{.*}} = memref.load %{{.*}}[%{{.*}}, %k, %j] : memref<2x6x8xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store %s, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 2 : i64}
// CHECK-NEXT: scf.forall (%j0) = (8) to (10) step (2) {
// CHECK-NEXT: %{{.*}} = arith.constant 8 : index
// CHECK-NEXT: %{{.*}} = arith.divui %j0, %{{.*}} : index
// CHECK-NEXT: scf.forall (%i) in (7) {
// CHECK-NEXT: scf.forall (%j) in (2) {
// CHECK-NEXT: %{{.*}} = arith.addi %i0, %i : index
// CHECK-NEXT: %{{.*}} = arith.addi %j0, %j : index
// CHECK-NEXT: %{{.*}} = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: scf.yield %zero : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %{{.*}} = memref.load %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %s = scf.for %k = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %k : index
// CHECK-NEXT: %{{.*}} = memref.load %{{.*}}[%i, %k] : memref<7x10xf32>
// CHECK-NEXT: %{{.*}} = memref.load %{{.*}}[%{{.*}}, %k, %j] : memref<2x6x8xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store %s, %c[%{{.*}}, %{{.*}}] : memref<7x10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 1 : i64, block = 2 : i64}
// CHECK-NEXT: } {axis = 0 : i64, block = 1 : i64}
// CHECK-NEXT: } {axis = 2 : i64, block = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @gemm(%a: memref<7x12xf32>, %b: memref<12x10xf32>, %c: memref<7x10xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0, 1>, schedule = {loops = [[2, 6], [0, 7], [1, 8]], vector = [[1, 4], [2, 4]], pack = [{operand = 1, at = 1, panel = 8}, {operand = 0, at = 2, pad = 4}]}} {
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
