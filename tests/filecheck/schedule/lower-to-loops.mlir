// RUN: ir-opt %s --pass-pipeline='split-reduce,bufferize,lower-to-loops' | FileCheck %s

// The elements of a tree lie in a buffer, then one op folds them.
// CHECK-LABEL: @sum_k0(
// CHECK-NEXT: %{{.*}} = memref.alloca() {alignment = 64} : memref<16xf32>
// CHECK-NEXT: scf.forall (%l) in (16) {
// CHECK-NEXT: %{{.*}} = arith.constant 0.0 : f32
// CHECK-NEXT: %{{.*}} = arith.constant 6 : index
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = arith.constant 1 : index
// CHECK-NEXT: %{{.*}} = scf.for %k = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK-NEXT: %{{.*}} = arith.constant 16 : index
// CHECK-NEXT: %{{.*}} = arith.muli %k, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = arith.addi %{{.*}}, %l : index
// CHECK-NEXT: %{{.*}} = memref.load %x[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } {axis = 1 : i64}
// CHECK-NEXT: %{{.*}} = arith.constant 4 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi slt, %l, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: %{{.*}} = arith.constant 96 : index
// CHECK-NEXT: %{{.*}} = arith.addi %l, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = memref.load %x[%{{.*}}] : memref<100xf32>
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %{{.*}} = arith.constant 0.0 : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%l] : memref<16xf32>
// CHECK-NEXT: } {axis = 0 : i64}
// CHECK-NEXT: %{{.*}} = arith.constant 0 : index
// CHECK-NEXT: %{{.*}} = vector.load %{{.*}}[%{{.*}}] : memref<16xf32>, vector<16xf32>
// CHECK-NEXT: %{{.*}} = vector.reduction <add>, %{{.*}} fastmath<reassoc> : vector<16xf32> into f32
// CHECK-NEXT: memref.store %{{.*}}, %y[] : memref<f32>
// CHECK-NEXT: return
// CHECK-NEXT: }
// CHECK-NEXT: func.func @sum(%x: memref<100xf32>, %y: memref<f32>) {
// CHECK-NEXT: func.call @sum_k0(%x, %y) : (memref<100xf32>, memref<f32>) -> ()
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @sum(%x: tensor<100xf32>) -> tensor<f32> {
  %y = kernel.launch () in () ins(%x : tensor<100xf32>) outs(%y : tensor<f32>) schedule {split = [[0, 16]], vector = [[0, 16]]} {
    %s = kernel.reduce (%k) in (100) by arith.addf {
      %0 = kernel.load %x[%k]
      kernel.yield %0
    }
    kernel.store %s, %y[]
  }
  return %y : tensor<f32>
}
