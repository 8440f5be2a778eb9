// RUN: ir-opt %s --pass-pipeline='unroll-jam' | FileCheck %s

// Four points in a step, then those that are left.
// CHECK-LABEL: @half(
// CHECK-NEXT: %half = arith.constant 0.5 : f32
// CHECK-NEXT: scf.forall (%i) = (0) to (96) step (4) {
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %{{.*}} = arith.addi %i, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 2 : index
// CHECK-NEXT: %{{.*}} = arith.addi %i, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.constant 3 : index
// CHECK-NEXT: %{{.*}} = arith.addi %i, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = memref.load %x[%i] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%i] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = memref.load %x[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = memref.load %x[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = memref.load %x[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: scf.forall (%i) = (96) to (99) step (1) {
// CHECK-NEXT: %{{.*}} = memref.load %x[%i] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %half : f32
// CHECK-NEXT: memref.store %{{.*}}, %y[%i] : memref<100xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @half(%x: memref<100xf32>, %y: memref<100xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {unroll = [[0, 4]]}} {
  %half = arith.constant 0.5 : f32
  scf.forall (%i) in (99) {
    %0 = memref.load %x[%i] : memref<100xf32>
    %1 = arith.mulf %0, %half : f32
    memref.store %1, %y[%i] : memref<100xf32>
  } {axis = 0 : i64}
  return
}

// Inner loops of the copies are one, and what they carry stands side by side.
// CHECK-LABEL: @gemm(
// CHECK-NEXT: %zero = arith.constant 0.0 : f32
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %c1 = arith.constant 1 : index
// CHECK-NEXT: %c12 = arith.constant 12 : index
// CHECK-NEXT: scf.forall (%i) in (7) {
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %{{.*}}:2 = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero, %t_0 = %zero) -> (f32, f32) {
// CHECK-NEXT: %{{.*}} = memref.load %a[%i, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x2xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t : f32
// CHECK-NEXT: %{{.*}} = memref.load %a[%i, %k] : memref<7x12xf32>
// CHECK-NEXT: %{{.*}} = memref.load %b[%k, %{{.*}}] : memref<12x2xf32>
// CHECK-NEXT: %{{.*}} = math.fma %{{.*}}, %{{.*}}, %t_0 : f32
// CHECK-NEXT: scf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NEXT: } {axis = 2 : i64}
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}#0, %{{.*}}#0 : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%i, %{{.*}}] : memref<7x2xf32>
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}#1, %{{.*}}#1 : f32
// CHECK-NEXT: memref.store %{{.*}}, %c[%i, %{{.*}}] : memref<7x2xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @gemm(%a: memref<7x12xf32>, %b: memref<12x2xf32>, %c: memref<7x2xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0, 1>, schedule = {unroll = [[1, 10]]}} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  scf.forall (%i) in (7) {
    scf.forall (%j) in (2) {
      %s = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %zero) -> (f32) {
        %0 = memref.load %a[%i, %k] : memref<7x12xf32>
        %1 = memref.load %b[%k, %j] : memref<12x2xf32>
        %2 = math.fma %0, %1, %t : f32
        scf.yield %2 : f32
      } {axis = 2 : i64}
      %3 = arith.addf %s, %s : f32
      memref.store %3, %c[%i, %j] : memref<7x2xf32>
    } {axis = 1 : i64}
  } {axis = 0 : i64}
  return
}

// Points that store to one place stay apart.
// CHECK-LABEL: @one_place(
// CHECK-NEXT: scf.forall (%i) in (32) {
// CHECK-NEXT: %{{.*}} = memref.load %x[%i] : memref<32xf32>
// CHECK-NEXT: memref.store %{{.*}}, %y[] : memref<f32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @one_place(%x: memref<32xf32>, %y: memref<f32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[0, 16]], unroll = [[0, 4]]}} {
  scf.forall (%i) in (32) {
    %0 = memref.load %x[%i] : memref<32xf32>
    memref.store %0, %y[] : memref<f32>
  } {axis = 0 : i64}
  return
}
