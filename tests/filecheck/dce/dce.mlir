// RUN: ir-opt %s --dce | FileCheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: return %x
func.func @chain(%x: f32, %m: memref<8xf32>, %i: index) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = arith.mulf %0, %0 : f32
  %2 = memref.load %m[%i] : memref<8xf32>
  %3 = arith.addf %1, %2 : f32
  %t = memref.alloc() : memref<8xf32>
  return %x : f32
}

// CHECK-LABEL: @loops
// CHECK: scf.for
// CHECK-NEXT: memref.store
// CHECK-NOT: scf.for
// CHECK: return
func.func @loops(%x: f32, %m: memref<8xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    memref.store %x, %m[%i] : memref<8xf32>
    %0 = arith.addf %x, %x : f32
  }
  %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (f32) {
    %v = memref.load %m[%i] : memref<8xf32>
    %0 = arith.addf %a, %v : f32
    scf.yield %0 : f32
  }
  return
}

// A launch on tensors has no effect; one on buffers has.
// CHECK-LABEL: @launches
// CHECK-NEXT: kernel.launch {{.*}} outs(%{{.*}} : memref<8xf32>)
// CHECK-NOT: tensor<8xf32>)
// CHECK: return
func.func @launches(%x: tensor<8xf32>, %a: memref<8xf32>, %b: memref<8xf32>) {
  %y = kernel.launch (%i) in (8) ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
    %0 = kernel.load %x[%i]
    kernel.store %0, %y[%i]
  }
  kernel.launch (%i) in (8) ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {
    %0 = kernel.load %a[%i]
    kernel.store %0, %b[%i]
  }
  return
}
