// RUN: ir-opt %s --cse | FileCheck %s

// CHECK-LABEL: @loads
// CHECK: %[[A:.*]] = memref.load %m
// CHECK: memref.store
// CHECK-NEXT: %[[B:.*]] = memref.load %m
// CHECK-NEXT: return %[[A]], %[[A]], %[[B]]
func.func @loads(%m: memref<8xf32>, %i: index, %x: f32) -> (f32, f32, f32) {
  %0 = memref.load %m[%i] : memref<8xf32>
  %1 = memref.load %m[%i] : memref<8xf32>
  memref.store %x, %m[%i] : memref<8xf32>
  %2 = memref.load %m[%i] : memref<8xf32>
  return %0, %1, %2 : f32, f32, f32
}

// Arguments may be the same buffer, unless one is said to be read only.
// CHECK-LABEL: @arguments
// CHECK: %[[A:.*]] = memref.load %a
// CHECK: %[[R:.*]] = memref.load %r
// CHECK: memref.store
// CHECK-NEXT: %[[B:.*]] = memref.load %a
// CHECK-NEXT: return %[[A]], %[[B]], %[[R]], %[[R]]
func.func @arguments(%a: memref<8xf32>, %b: memref<8xf32>, %r: memref<8xf32> {nablair.readonly}, %i: index, %x: f32) -> (f32, f32, f32, f32) {
  %0 = memref.load %a[%i] : memref<8xf32>
  %1 = memref.load %r[%i] : memref<8xf32>
  memref.store %x, %b[%i] : memref<8xf32>
  %2 = memref.load %a[%i] : memref<8xf32>
  %3 = memref.load %r[%i] : memref<8xf32>
  return %0, %2, %1, %3 : f32, f32, f32, f32
}

// CHECK-LABEL: @apart
// CHECK: %[[A:.*]] = memref.load %a
// CHECK: %[[R:.*]] = memref.load %r
// CHECK: memref.store
// CHECK-NEXT: return %[[A]], %[[A]], %[[R]], %[[R]]
func.func @apart(%a: memref<8xf32>, %b: memref<8xf32>, %r: memref<8xf32>, %i: index, %x: f32) -> (f32, f32, f32, f32) attributes {nablair.noalias, nablair.readonly = array<i64: 2>} {
  %0 = memref.load %a[%i] : memref<8xf32>
  %1 = memref.load %r[%i] : memref<8xf32>
  memref.store %x, %b[%i] : memref<8xf32>
  %2 = memref.load %a[%i] : memref<8xf32>
  %3 = memref.load %r[%i] : memref<8xf32>
  return %0, %2, %1, %3 : f32, f32, f32, f32
}

// A fresh buffer aliases nothing; a view of it aliases it.
// CHECK-LABEL: @fresh
// CHECK: %[[A:.*]] = memref.load %{{.*}}[%i] : memref<8xf32>
// CHECK: memref.store %x, %b
// CHECK-NEXT: memref.store %x, %{{.*}} : memref<4xf32
// CHECK-NEXT: %[[B:.*]] = memref.load
// CHECK-NEXT: return %[[A]], %[[A]], %[[B]]
func.func @fresh(%b: memref<8xf32>, %i: index, %x: f32) -> (f32, f32, f32) {
  %t = memref.alloc() : memref<8xf32>
  memref.store %x, %t[%i] : memref<8xf32>
  %v = memref.subview %t[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %0 = memref.load %t[%i] : memref<8xf32>
  memref.store %x, %b[%i] : memref<8xf32>
  %1 = memref.load %t[%i] : memref<8xf32>
  memref.store %x, %v[%i] : memref<4xf32, strided<[1]>>
  %2 = memref.load %t[%i] : memref<8xf32>
  return %0, %1, %2 : f32, f32, f32
}

// The second trip of the loop sees what the first has stored.
// CHECK-LABEL: @loop
// CHECK: %[[A:.*]] = memref.load %m
// CHECK: scf.for
// CHECK-NEXT: %[[B:.*]] = memref.load %m
// CHECK-NEXT: arith.addf %[[A]], %[[B]]
// CHECK: }
// CHECK: memref.load %m
func.func @loop(%m: memref<8xf32>, %i: index, %n: index) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = memref.load %m[%i] : memref<8xf32>
  scf.for %k = %zero to %n step %one {
    %1 = memref.load %m[%i] : memref<8xf32>
    %2 = arith.addf %0, %1 : f32
    memref.store %2, %m[%i] : memref<8xf32>
  }
  %3 = memref.load %m[%i] : memref<8xf32>
  return %3 : f32
}

// CHECK-LABEL: @quiet_loop
// CHECK: %[[A:.*]] = memref.load %m
// CHECK: scf.for
// CHECK-NEXT: memref.store %[[A]], %b
func.func @quiet_loop(%m: memref<8xf32> {nablair.readonly}, %b: memref<8xf32>, %i: index, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = memref.load %m[%i] : memref<8xf32>
  memref.store %0, %b[%zero] : memref<8xf32>
  scf.for %k = %zero to %n step %one {
    %1 = memref.load %m[%i] : memref<8xf32>
    memref.store %1, %b[%k] : memref<8xf32>
  }
  return
}

// A call may do anything, but not write what is read only.
// CHECK-LABEL: @calls
// CHECK: %[[A:.*]] = memref.load %m
// CHECK: %[[R:.*]] = memref.load %r
// CHECK: call @unknown
// CHECK-NEXT: %[[B:.*]] = memref.load %m
// CHECK-NEXT: return %[[A]], %[[B]], %[[R]], %[[R]]
func.func private @unknown()
func.func @calls(%m: memref<8xf32>, %r: memref<8xf32> {nablair.readonly}, %i: index) -> (f32, f32, f32, f32) {
  %0 = memref.load %m[%i] : memref<8xf32>
  %1 = memref.load %r[%i] : memref<8xf32>
  call @unknown() : () -> ()
  %2 = memref.load %m[%i] : memref<8xf32>
  %3 = memref.load %r[%i] : memref<8xf32>
  return %0, %2, %1, %3 : f32, f32, f32, f32
}
