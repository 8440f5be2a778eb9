// relu(a @ b + bias) tiled, packed, vectorized and jammed along the columns.

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
            %15 = arith.constant 0 : index
            %16 = arith.constant 16 : index
            %17 = arith.addi %10, %14 : index
            %18 = arith.addi %11, %15 : index
            %19 = vector.load %c[%17, %18] : memref<28x64xf32>, vector<16xf32>
            %20 = vector.broadcast %0 : f32 to vector<16xf32>
            %21 = arith.select %8, %20, %19 : vector<16xf32>
            %22 = arith.addi %10, %14 : index
            %23 = arith.addi %11, %16 : index
            %24 = vector.load %c[%22, %23] : memref<28x64xf32>, vector<16xf32>
            %25 = vector.broadcast %0 : f32 to vector<16xf32>
            %26 = arith.select %8, %25, %24 : vector<16xf32>
            %27 = arith.constant 0 : index
            %28 = arith.constant 4 : index
            %29 = arith.constant 1 : index
            %30:2 = scf.for %31 = %27 to %28 step %29 iter_args(%32 = %21, %33 = %26) -> (vector<16xf32>, vector<16xf32>) {
              %34 = arith.addi %7, %31 : index
              %35 = memref.load %a[%17, %34] : memref<28x8xf32>
              %36 = vector.load %3[%13, %31, %15] : memref<2x4x32xf32>, vector<16xf32>
              %37 = vector.broadcast %35 : f32 to vector<16xf32>
              %38 = math.fma %37, %36, %32 : vector<16xf32>
              %39 = arith.addi %7, %31 : index
              %40 = memref.load %a[%22, %39] : memref<28x8xf32>
              %41 = vector.load %3[%13, %31, %16] : memref<2x4x32xf32>, vector<16xf32>
              %42 = vector.broadcast %40 : f32 to vector<16xf32>
              %43 = math.fma %42, %41, %33 : vector<16xf32>
              scf.yield %38, %43 : vector<16xf32>, vector<16xf32>
            }
            scf.if %9 {
              %31 = vector.load %bias[%18] : memref<64xf32>, vector<16xf32>
              %32 = arith.addf %30#0, %31 : vector<16xf32>
              %33 = vector.broadcast %0 : f32 to vector<16xf32>
              %negative34 = arith.cmpf ogt, %33, %32 : vector<16xf32>
              %34 = arith.select %negative34, %33, %32 : vector<16xi1>, vector<16xf32>
              vector.store %34, %c[%17, %18] : memref<28x64xf32>, vector<16xf32>
              %35 = vector.load %bias[%23] : memref<64xf32>, vector<16xf32>
              %36 = arith.addf %30#1, %35 : vector<16xf32>
              %37 = vector.broadcast %0 : f32 to vector<16xf32>
              %negative38 = arith.cmpf ogt, %37, %36 : vector<16xf32>
              %38 = arith.select %negative38, %37, %36 : vector<16xi1>, vector<16xf32>
              vector.store %38, %c[%22, %23] : memref<28x64xf32>, vector<16xf32>
            } else {
              vector.store %30#0, %c[%17, %18] : memref<28x64xf32>, vector<16xf32>
              vector.store %30#1, %c[%22, %23] : memref<28x64xf32>, vector<16xf32>
            }
          }
        }
      }
    }
    return
  }
}
