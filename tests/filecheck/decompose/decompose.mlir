// RUN: ir-opt %s --decompose | FileCheck %s
// RUN: ir-opt %s --decompose=ops=loss.mse | FileCheck %s --check-prefix=ONE
// RUN: not ir-opt %s --decompose=ops=arith.addf 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: no op 'arith.addf' has an expansion

// CHECK-LABEL: @softmax
// CHECK-NOT: linalg.softmax
// CHECK: linalg.reduce_max
// CHECK: elementwise.exp
// ONE-LABEL: @softmax
// ONE: linalg.softmax
func.func @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = linalg.softmax %x {axis = 1} : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: @loss
// CHECK-NOT: loss.mse
// CHECK: linalg.reduce
// ONE-LABEL: @loss
// ONE-NOT: loss.mse
// ONE: return
func.func @loss(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<f32> {
  %0 = loss.mse %x, %y : tensor<8xf32>, tensor<8xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
