// RUN: ir-opt %s --pass-pipeline='plan' | FileCheck %s

// Vectors along the last axis.
// CHECK-LABEL: @chain(
// CHECK-NEXT: %y = kernel.launch (%i, %j) in (64, 64) ins(%x : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) schedule {unroll = {{\[\[}}1, 4{{\]\]}}, vector = {{\[\[}}1, 8{{\]\]}}} {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%i, %j]
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.store %{{.*}}, %y[%i, %j]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<64x64xf32>
// CHECK-NEXT: }
func.func @chain(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = kernel.launch (%i, %j) in (64, 64) ins(%x : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) {
    %0 = kernel.load %x[%i, %j]
    %1 = arith.addf %0, %0 : f32
    kernel.store %1, %y[%i, %j]
  }
  return %y : tensor<64x64xf32>
}

// A schedule that is there is kept.
// CHECK-LABEL: @kept(
// CHECK-NEXT: %y = kernel.launch (%i, %j) in (64, 64) ins(%x : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) schedule {vector = {{\[\[}}0, 4{{\]\]}}} attributes {nablair.given} {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%i, %j]
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.store %{{.*}}, %y[%i, %j]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<64x64xf32>
// CHECK-NEXT: }
func.func @kept(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = kernel.launch (%i, %j) in (64, 64) ins(%x : tensor<64x64xf32>) outs(%y : tensor<64x64xf32>) schedule {vector = [[0, 4]]} {
    %0 = kernel.load %x[%i, %j]
    %1 = arith.addf %0, %0 : f32
    kernel.store %1, %y[%i, %j]
  }
  return %y : tensor<64x64xf32>
}

// A register tile.
// CHECK-LABEL: @product(
// CHECK-NEXT: %c = kernel.launch (%i, %j) in (512, 512) ins(%a : tensor<512x512xf32>, %b : tensor<512x512xf32>) outs(%c : tensor<512x512xf32>) schedule {chain = {{\[\[}}2, 256{{\]\]}}, loops = {{\[\[}}2, 256], [0, 6], [1, 16{{\]\]}}, pack = [{at = 1, operand = 1, panel = 16}, {at = 2, operand = 0, pad = 16}], unroll = {{\[\[}}1, 2], [0, 6{{\]\]}}, vector = {{\[\[}}1, 8], [2, 8{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce (%k) in (512) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %a[%i, %k]
// CHECK-NEXT: %{{.*}} = kernel.load %b[%k, %j]
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %c[%i, %j]
// CHECK-NEXT: }
// CHECK-NEXT: return %c : tensor<512x512xf32>
// CHECK-NEXT: }
func.func @product(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %c = kernel.launch (%i, %j) in (512, 512) ins(%a : tensor<512x512xf32>, %b : tensor<512x512xf32>) outs(%c : tensor<512x512xf32>) {
    %s = kernel.reduce (%k) in (512) by arith.addf {
      %0 = kernel.load %a[%i, %k]
      %1 = kernel.load %b[%k, %j]
      %2 = arith.mulf %0, %1 : f32
      kernel.yield %2
    }
    kernel.store %s, %c[%i, %j]
  }
  return %c : tensor<512x512xf32>
}

// A fold along neighbours gets lanes.
// CHECK-LABEL: @row_sum(
// CHECK-NEXT: %y = kernel.launch (%i) in (32) ins(%x : tensor<32x200xf32>) outs(%y : tensor<32xf32>) schedule {split = {{\[\[}}1, 32{{\]\]}}, unroll = {{\[\[}}1, 4{{\]\]}}, vector = {{\[\[}}1, 8{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce (%k) in (200) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%i, %k]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[%i]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<32xf32>
// CHECK-NEXT: }
func.func @row_sum(%x: tensor<32x200xf32>) -> tensor<32xf32> {
  %y = kernel.launch (%i) in (32) ins(%x : tensor<32x200xf32>) outs(%y : tensor<32xf32>) {
    %s = kernel.reduce (%k) in (200) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
    kernel.store %s, %y[%i]
  }
  return %y : tensor<32xf32>
}

// A fold across rows is vectorized along the row.
// CHECK-LABEL: @column_sum(
// CHECK-NEXT: %y = kernel.launch (%i) in (32) ins(%x : tensor<200x32xf32>) outs(%y : tensor<32xf32>) schedule {chain = {{\[\[}}1, 32{{\]\]}}, unroll = {{\[\[}}0, 8{{\]\]}}, vector = {{\[\[}}0, 8{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce (%k) in (200) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%k, %i]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[%i]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<32xf32>
// CHECK-NEXT: }
func.func @column_sum(%x: tensor<200x32xf32>) -> tensor<32xf32> {
  %y = kernel.launch (%i) in (32) ins(%x : tensor<200x32xf32>) outs(%y : tensor<32xf32>) {
    %s = kernel.reduce (%k) in (200) by arith.addf {
      %0 = kernel.load %x[%k, %i]
      kernel.yield %0
    }
    kernel.store %s, %y[%i]
  }
  return %y : tensor<32xf32>
}

// A large sum is cut for workers.
// CHECK-LABEL: @large_sum(
// CHECK-NEXT: %y = kernel.launch () in () ins(%x : tensor<4096x1024xf32>) outs(%y : tensor<f32>) schedule {chain = {{\[\[}}0, 2{{\]\]}}, loops = {{\[\[}}0, 128{{\]\]}}, map = ["worker"], split = {{\[\[}}1, 32{{\]\]}}, unroll = {{\[\[}}1, 4{{\]\]}}, vector = {{\[\[}}1, 8{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce (%k, %p) in (4096, 1024) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%k, %p]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<f32>
// CHECK-NEXT: }
func.func @large_sum(%x: tensor<4096x1024xf32>) -> tensor<f32> {
  %y = kernel.launch () in () ins(%x : tensor<4096x1024xf32>) outs(%y : tensor<f32>) {
    %s = kernel.reduce (%k, %p) in (4096, 1024) by arith.addf {
      %0 = kernel.load %x[%k, %p]
      kernel.yield %0
    }
    kernel.store %s, %y[]
  }
  return %y : tensor<f32>
}
