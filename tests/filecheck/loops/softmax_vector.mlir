// Softmax of the rows of 32x60 in vectors of 16; the sum's lanes fold as a halving tree.

module {
  func.func @d(%x: memref<32x60xf32>, %y: memref<32x60xf32>) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %tail = vector.constant_mask [12] : vector<16xi1>
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %ninf = arith.constant dense<0xFF800000> : vector<16xf32>
    scf.forall (%i) in (32) {
      %e = memref.alloca() {alignment = 64} : memref<64xf32>
      %t = vector.maskedload %x[%i, %c48], %tail, %ninf : memref<32x60xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %m0 = scf.for %k = %c0 to %c48 step %c16 iter_args(%a = %ninf) -> (vector<16xf32>) {
        %0 = vector.load %x[%i, %k] : memref<32x60xf32>, vector<16xf32>
        %1 = arith.maximumf %a, %0 : vector<16xf32>
        scf.yield %1 : vector<16xf32>
      }
      %m1 = arith.maximumf %m0, %t : vector<16xf32>
      %m2 = vector.reduction <maximumf>, %m1 : vector<16xf32> into f32
      %m = vector.broadcast %m2 : f32 to vector<16xf32>
      %s0 = scf.for %k = %c0 to %c48 step %c16 iter_args(%a = %zero) -> (vector<16xf32>) {
        %0 = vector.load %x[%i, %k] : memref<32x60xf32>, vector<16xf32>
        %1 = arith.subf %0, %m : vector<16xf32>
        %2 = math.exp %1 : vector<16xf32>
        vector.store %2, %e[%k] : memref<64xf32>, vector<16xf32>
        %3 = arith.addf %a, %2 : vector<16xf32>
        scf.yield %3 : vector<16xf32>
      }
      %u = arith.subf %t, %m : vector<16xf32>
      %v = math.exp %u : vector<16xf32>
      %w = arith.select %tail, %v, %zero : vector<16xi1>, vector<16xf32>
      vector.store %w, %e[%c48] : memref<64xf32>, vector<16xf32>
      %s1 = arith.addf %s0, %w : vector<16xf32>
      %s2 = vector.reduction <add>, %s1 fastmath<reassoc> : vector<16xf32> into f32
      %s = vector.broadcast %s2 : f32 to vector<16xf32>
      scf.for %j = %c0 to %c48 step %c16 {
        %0 = vector.load %e[%j] : memref<64xf32>, vector<16xf32>
        %1 = arith.divf %0, %s : vector<16xf32>
        vector.store %1, %y[%i, %j] : memref<32x60xf32>, vector<16xf32>
      }
      %0 = vector.load %e[%c48] : memref<64xf32>, vector<16xf32>
      %1 = arith.divf %0, %s : vector<16xf32>
      vector.maskedstore %y[%i, %c48], %tail, %1 : memref<32x60xf32>, vector<16xi1>, vector<16xf32>
    }
    return
  }
}
