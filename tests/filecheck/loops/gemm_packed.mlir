// relu(a @ b + bias) tiled 14x32, with packed panels of both operands.

module {
  func.func @gemm(%a: memref<28x8xf32>, %b: memref<8x64xf32>, %bias: memref<64xf32>, %c: memref<28x64xf32>) {
    %0 = arith.constant 0.0 : f32
    %1 = arith.constant 0 : index
    %2 = arith.constant 4 : index
    %3 = memref.alloca() {alignment = 64} : memref<2x4x32xf32>
    %4 = arith.constant 0 : index
    %5 = arith.constant 8 : index
    %6 = arith.constant 4 : index
    scf.for %7 = %4 to %5 step %6 {
      %8 = arith.cmpi eq, %7, %1 : index
      %9 = arith.cmpi eq, %7, %2 : index
      scf.forall (%10) in (2) {
        scf.forall (%11) in (4) {
          scf.forall (%12) in (32) {
            %13 = arith.constant 32 : index
            %14 = arith.muli %10, %13 : index
            %15 = arith.addi %14, %12 : index
            %16 = arith.addi %7, %11 : index
            %17 = memref.load %b[%16, %15] : memref<8x64xf32>
            memref.store %17, %3[%10, %11, %12] : memref<2x4x32xf32>
          }
        }
      }
      scf.forall (%10) = (0) to (28) step (14) {
        scf.forall (%11) = (0) to (64) step (32) {
          %12 = arith.constant 32 : index
          %13 = arith.divui %11, %12 : index
          scf.forall (%14) in (14) {
            scf.forall (%15) in (32) {
              %16 = arith.addi %10, %14 : index
              %17 = arith.addi %11, %15 : index
              %18 = memref.load %c[%16, %17] : memref<28x64xf32>
              %19 = arith.select %8, %0, %18 : f32
              %20 = arith.constant 0 : index
              %21 = arith.constant 4 : index
              %22 = arith.constant 1 : index
              %23 = scf.for %24 = %20 to %21 step %22 iter_args(%25 = %19) -> (f32) {
                %26 = arith.addi %7, %24 : index
                %27 = memref.load %a[%16, %26] : memref<28x8xf32>
                %28 = memref.load %3[%13, %24, %15] : memref<2x4x32xf32>
                %29 = math.fma %27, %28, %25 : f32
                scf.yield %29 : f32
              }
              scf.if %9 {
                %24 = memref.load %bias[%17] : memref<64xf32>
                %25 = arith.addf %23, %24 : f32
                %negative26 = arith.cmpf ogt, %0, %25 : f32
                %26 = arith.select %negative26, %0, %25 : f32
                memref.store %26, %c[%16, %17] : memref<28x64xf32>
              } else {
                memref.store %23, %c[%16, %17] : memref<28x64xf32>
              }
            }
          }
        }
      }
    }
    return
  }
}
