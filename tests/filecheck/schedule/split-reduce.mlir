// RUN: ir-opt %s --pass-pipeline='split-reduce' | FileCheck %s

// Lanes, each with every 16th element, and a tree over them.
// CHECK-LABEL: @sum(
// CHECK-NEXT: %y = kernel.launch () in () ins(%x : tensor<100xf32>) outs(%y : tensor<f32>) schedule {vector = {{\[\[}}0, 16{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce tree (%l) in (16) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.reduce (%k) in (6) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%k * 16 + %l]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.constant 4 : index
// CHECK-NEXT: %{{.*}} = arith.cmpi slt, %l, %{{.*}} : index
// CHECK-NEXT: %{{.*}} = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%l + 96]
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %{{.*}} = arith.constant 0.0 : f32
// CHECK-NEXT: scf.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<f32>
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

// An axis of the domain becomes lanes where accumulates lack it.
// CHECK-LABEL: @squares(
// CHECK-NEXT: %y, %s_parts = kernel.launch (%l) in (16) ins(%x : tensor<100xf32>) outs(%y : tensor<100xf32>, %s : tensor<16xf32>) schedule {vector = {{\[\[}}0, 16{{\]\]}}} {
// CHECK-NEXT: %{{.*}} = arith.constant 115 : index
// CHECK-NEXT: %{{.*}} = arith.subi %{{.*}}, %l : index
// CHECK-NEXT: %{{.*}} = arith.constant 16 : index
// CHECK-NEXT: %{{.*}} = arith.divui %{{.*}}, %{{.*}} : index
// CHECK-NEXT: kernel.sweep (%s_0) in (%{{.*}}) {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%s_0 * 16 + %l]
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.store %{{.*}}, %y[%s_0 * 16 + %l]
// CHECK-NEXT: kernel.accumulate %{{.*}}, %s[%l] by arith.addf
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %s = kernel.launch () in () ins(%s_parts : tensor<16xf32>) outs(%{{.*}} : tensor<f32>) schedule {vector = {{\[\[}}0, 16{{\]\]}}} {
// CHECK-NEXT: %{{.*}} = kernel.reduce tree (%l) in (16) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %s_parts[%l]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %{{.*}}, %{{.*}}[]
// CHECK-NEXT: }
// CHECK-NEXT: return %y, %s : tensor<100xf32>, tensor<f32>
// CHECK-NEXT: }
func.func @squares(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<f32>) {
  %y, %s = kernel.launch (%i) in (100) ins(%x : tensor<100xf32>) outs(%y : tensor<100xf32>, %s : tensor<f32>) schedule {split = [[0, 16]], vector = [[0, 16]]} {
    %0 = kernel.load %x[%i]
    %1 = arith.mulf %0, %0 : f32
    kernel.store %1, %y[%i]
    kernel.accumulate %1, %s[] by arith.addf
  }
  return %y, %s : tensor<100xf32>, tensor<f32>
}

// Blocks for workers.
// CHECK-LABEL: @blocks(
// CHECK-NEXT: %{{.*}} = kernel.launch (%b) in (32) ins(%x : tensor<4096xf32>) outs(%{{.*}} : tensor<32xf32>) schedule {} {
// CHECK-NEXT: %s = kernel.reduce (%k) in (128) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%b * 128 + %k]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %{{.*}}[%b]
// CHECK-NEXT: }
// CHECK-NEXT: %y = kernel.launch () in () ins(%{{.*}} : tensor<32xf32>) outs(%y : tensor<f32>) schedule {unroll = {{\[\[}}0, 4{{\]\]}}, vector = {{\[\[}}0, 8{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce tree (%l) in (32) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.reduce (%b) in (1) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %{{.*}}[%b * 32 + %l]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[]
// CHECK-NEXT: }
// CHECK-NEXT: return %y : tensor<f32>
// CHECK-NEXT: }
func.func @blocks(%x: tensor<4096xf32>) -> tensor<f32> {
  %y = kernel.launch () in () ins(%x : tensor<4096xf32>) outs(%y : tensor<f32>) schedule {loops = [[0, 128]], map = ["worker"]} {
    %s = kernel.reduce (%k) in (4096) by arith.addf {
      %0 = kernel.load %x[%k]
      kernel.yield %0
    }
    kernel.store %s, %y[]
  }
  return %y : tensor<f32>
}

// Chains of chains: 40 of 25 rows.
// CHECK-LABEL: @columns(
// CHECK-NEXT: %y = kernel.launch (%i) in (64) ins(%x : tensor<1000x64xf32>) outs(%y : tensor<64xf32>) schedule {loops = {{\[\[}}1, 1], [0, 16{{\]\]}}} {
// CHECK-NEXT: %s = kernel.reduce (%p) in (40) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.reduce (%k) in (25) by arith.addf {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%p * 25 + %k, %i]
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: kernel.store %s, %y[%i]
func.func @columns(%x: tensor<1000x64xf32>) -> tensor<64xf32> {
  %y = kernel.launch (%i) in (64) ins(%x : tensor<1000x64xf32>) outs(%y : tensor<64xf32>) schedule {chain = [[1, 32]], loops = [[1, 32], [0, 16]]} {
    %s = kernel.reduce (%k) in (1000) by arith.addf {
      %0 = kernel.load %x[%k, %i]
      kernel.yield %0
    }
    kernel.store %s, %y[%i]
  }
  return %y : tensor<64xf32>
}

// Blocks of an axis that accumulates lack, the last of them shorter.
// CHECK-LABEL: @bias(
// CHECK-NEXT: %y, %g_parts = kernel.launch (%b) in (4) ins(%x : tensor<100x64xf32>) outs(%y : tensor<100x64xf32>, %g : tensor<4x64xf32>) schedule {vector = {{\[\[}}2, 16{{\]\]}}} {
// CHECK: %{{.*}} = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: kernel.sweep (%i, %j) in (%{{.*}}, 64) {
// CHECK-NEXT: %{{.*}} = kernel.load %x[%b * 32 + %i, %j]
// CHECK-NEXT: %{{.*}} = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: kernel.store %{{.*}}, %y[%b * 32 + %i, %j]
// CHECK-NEXT: kernel.accumulate %{{.*}}, %g[%b, %j] by arith.addf
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %g = kernel.launch (%i) in (64) ins(%g_parts : tensor<4x64xf32>)
// CHECK-NEXT: %{{.*}} = kernel.reduce (%b) in (4) by arith.addf {
func.func @bias(%x: tensor<100x64xf32>) -> (tensor<100x64xf32>, tensor<64xf32>) {
  %y, %g = kernel.launch (%i, %j) in (100, 64) ins(%x : tensor<100x64xf32>) outs(%y : tensor<100x64xf32>, %g : tensor<64xf32>) schedule {chain = [[0, 32]], vector = [[1, 16]]} {
    %0 = kernel.load %x[%i, %j]
    %1 = arith.mulf %0, %0 : f32
    kernel.store %1, %y[%i, %j]
    kernel.accumulate %1, %g[%j] by arith.addf
  }
  return %y, %g : tensor<100x64xf32>, tensor<64xf32>
}
