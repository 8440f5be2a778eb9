// RUN: ir-opt %s --pass-pipeline='block-reduction' | FileCheck %s

// The fold goes block by block; the results hold what it has so far.
// CHECK-LABEL: @gemm(
// CHECK-NEXT: %zero = arith.constant 0.0 : f32
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %c12 = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 5 : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: scf.for %k0 = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT: %{{.*}} = arith.cmpi eq, %k0, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 12 : index
// CHECK-NEXT: %{{.*}} = arith.subi %{{.*}}, %k0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 5 : index
// CHECK-NEXT: %{{.*}} = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: scf.forall (%i) in (7) {
// CHECK-NEXT: scf.forall (%j) in (10) {
// CHECK-NEXT: %{{.*}} = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: scf.yield %zero : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %{{.*}} = memref.load %c[%i, %j] : memref<7x10xf32>
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %s = scf.for %k = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK-NEXT: %{{.*}} = arith.addi %k0, %k : index
// CHECK-NEXT: %{{.*}} = memref.load %a[%i, %{{.*}}] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%{{.*}}, %j] : memref<12x10xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK-NEXT: %{{.*}} = arith.addf %s, %s : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%i, %j] : memref<7x10xf32>
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store %s, %c[%i, %j] : memref<7x10xf32>
// CHECK-NEXT: }
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: } {axis = 2 : i64, block = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @gemm(%a: memref<7x12xf32>, %b: memref<12x10xf32>, %c: memref<7x10xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0, 1>, schedule = {loops = [[2, 5], [0, 4], [1, 8]]}} {
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
