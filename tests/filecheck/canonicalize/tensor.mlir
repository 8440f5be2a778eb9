// RUN: ir-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @views
// CHECK-NEXT: %[[T:.*]] = array.transpose %x {permutation = [2, 0, 1]} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT: %[[R:.*]] = array.reshape %x : tensor<2x3x4xf32> -> tensor<24xf32>
// CHECK-NEXT: return %[[T]], %[[R]]
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<24xf32>) {
  %0 = array.transpose %x {permutation = [1, 2, 0]} : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = array.transpose %0 {permutation = [1, 2, 0]} : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  %2 = array.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %3 = array.reshape %2 : tensor<6x4xf32> -> tensor<24xf32>
  return %1, %3 : tensor<4x2x3xf32>, tensor<24xf32>
}

// x + -0.0 is x, but not where x is broadcast.
// CHECK-LABEL: @broadcast
// CHECK: %[[B:.*]] = elementwise.add %x
// CHECK-NEXT: return %x, %[[B]]
func.func @broadcast(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {
  %z = array.constant dense<-0.0> : tensor<f32>
  %w = array.constant dense<-0.0> : tensor<2x1xf32>
  %0 = elementwise.add %x, %z : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = elementwise.add %x, %w : tensor<4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  return %0, %1 : tensor<4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @signs
// CHECK-NEXT: elementwise.sub %x, %y
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = elementwise.neg %y : tensor<4xf32>
  %1 = elementwise.add %x, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
