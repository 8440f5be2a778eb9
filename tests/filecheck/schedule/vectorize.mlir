// RUN: ir-opt %s --pass-pipeline='vectorize' | FileCheck %s

// A vector is a whole number of lanes; what is left is masked.
// CHECK-LABEL: @half(
// CHECK-NEXT: %half = arith.constant 0.5 : f32
// CHECK-NEXT: scf.forall (%i) = (0) to (96) step (16) {
// CHECK-NEXT: %{{.*}} = vector.load %x[%i] : memref<100xf32>, vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.5> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK-NEXT: vector.store %{{.*}}, %y[%i] : memref<100xf32>, vector<16xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: %{{.*}} = arith.constant 96 : index
// CHECK-NEXT: %{{.*}} = arith.constant 4 : index
// CHECK-NEXT: %{{.*}} = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.0> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = vector.maskedload %x[%{{.*}}], %{{.*}}, %{{.*}} : memref<100xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.5> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK-NEXT: vector.maskedstore %y[%{{.*}}], %{{.*}}, %{{.*}} : memref<100xf32>, vector<16xi1>, vector<16xf32>
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @half(%x: memref<100xf32>, %y: memref<100xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[0, 16]]}} {
  %half = arith.constant 0.5 : f32
  scf.forall (%i) in (100) {
    %0 = memref.load %x[%i] : memref<100xf32>
    %1 = arith.mulf %0, %half : f32
    memref.store %1, %y[%i] : memref<100xf32>
  } {axis = 0 : i64}
  return
}

// Known at run time only, what is left is a loop of at most one trip.
// CHECK-LABEL: @symbolic(
// CHECK-NEXT: %{{.*}} = arith.constant 16 : index
// CHECK-NEXT: %{{.*}} = arith.remui %n, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.subi %n, %{{.*}} : index
// CHECK-NEXT: scf.forall (%i) = (0) to (%{{.*}}) step (16) {
// CHECK-NEXT: %{{.*}} = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
// CHECK-NEXT: vector.store %{{.*}}, %y[%i] : memref<?xf32>, vector<16xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: scf.forall (%i) = (%{{.*}}) to (%n) step (16) {
// CHECK-NEXT: %{{.*}} = arith.subi %n, %i : index
// CHECK-NEXT: %{{.*}} = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.0> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = vector.maskedload %x[%i], %{{.*}}, %{{.*}} : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK-NEXT: vector.maskedstore %y[%i], %{{.*}}, %{{.*}} : memref<?xf32>, vector<16xi1>, vector<16xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @symbolic(%x: memref<?xf32>, %n: index, %y: memref<?xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[0, 16]]}} {
  scf.forall (%i) in (%n) {
    %0 = memref.load %x[%i] : memref<?xf32>
    memref.store %0, %y[%i] : memref<?xf32>
  } {axis = 0 : i64}
  return
}

// A choice that lanes make differently loads under its mask.
// CHECK-LABEL: @shifted(
// CHECK-NEXT: %one = arith.constant 1 : index
// CHECK-NEXT: %c32 = arith.constant 32 : index
// CHECK-NEXT: %fill = arith.constant 0.0 : f32
// CHECK-NEXT: scf.forall (%i) = (0) to (32) step (16) {
// CHECK-NEXT: %n = arith.addi %i, %one : index
// CHECK-NEXT: %{{.*}} = vector.broadcast %n : index to vector<16xindex>
// CHECK-NEXT: %{{.*}} = vector.step : vector<16xindex>
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %{{.*}} : vector<16xindex>
// CHECK-NEXT: %{{.*}} = arith.constant dense<32> : vector<16xindex>
// CHECK-NEXT: %{{.*}} = arith.cmpi slt, %{{.*}}, %{{.*}} : vector<16xindex>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.0> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = vector.maskedload %x[%n], %{{.*}}, %{{.*}} : memref<32xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.constant dense<0.0> : vector<16xf32>
// CHECK-NEXT: %{{.*}} = arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK-NEXT: vector.store %{{.*}}, %y[%i] : memref<32xf32>, vector<16xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func private @shifted(%x: memref<32xf32>, %y: memref<32xf32>) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[0, 16]]}} {
  %one = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %fill = arith.constant 0.0 : f32
  scf.forall (%i) in (32) {
    %n = arith.addi %i, %one : index
    %in = arith.cmpi slt, %n, %c32 : index
    %0 = scf.if %in -> (f32) {
      %1 = memref.load %x[%n] : memref<32xf32>
      scf.yield %1 : f32
    } else {
      scf.yield %fill : f32
    }
    memref.store %0, %y[%i] : memref<32xf32>
  } {axis = 0 : i64}
  return
}

// Lanes that store to one place cannot be vectorized.
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
