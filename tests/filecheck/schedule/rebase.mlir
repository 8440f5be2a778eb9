// RUN: ir-opt %s --pass-pipeline='rebase' | FileCheck %s

// Rows are counted from the first one; the last axis stays.
// CHECK-LABEL: @rows(
// CHECK: scf.forall (%i0)
// CHECK-NEXT: %[[V:.*]] = memref.subview %x[%i0, 0] [3, 64] [1, 1]
// CHECK: vector.load %[[V]][%{{.*}}, %j]
// CHECK: vector.load %[[V]][%{{.*}}, %j]
// CHECK: memref.store %{{.*}}, %y[%{{.*}}]
// CHECK: memref.store %{{.*}}, %y[%{{.*}}]
func.func private @rows(%x: memref<9x64xf32>, %y: memref<9xf32>, %j: index) attributes {nablair.kernel, schedule = {unroll = [[0, 3]]}} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.forall (%i0) = (0) to (9) step (3) {
    %1 = arith.addi %i0, %c1 : index
    %2 = arith.addi %i0, %c2 : index
    %3 = vector.load %x[%1, %j] : memref<9x64xf32>, vector<4xf32>
    %4 = vector.load %x[%2, %j] : memref<9x64xf32>, vector<4xf32>
    %5 = vector.extract %3[0] : f32 from vector<4xf32>
    %6 = vector.extract %4[0] : f32 from vector<4xf32>
    memref.store %5, %y[%1] : memref<9xf32>
    memref.store %6, %y[%2] : memref<9xf32>
  } {axis = 0 : i64}
  return
}
