// max(x * 0.5, 0) + 1 in vectors of 16, the ragged end under a mask.

module {
  func.func @a(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %half = arith.constant dense<0.5> : vector<16xf32>
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %one = arith.constant dense<1.0> : vector<16xf32>
    %r = arith.remui %n, %c16 : index
    %whole = arith.subi %n, %r : index
    scf.for %i = %c0 to %whole step %c16 {
      %0 = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
      %1 = arith.mulf %0, %half : vector<16xf32>
      %negative2 = arith.cmpf ogt, %zero, %1 : vector<16xf32>
      %2 = arith.select %negative2, %zero, %1 : vector<16xi1>, vector<16xf32>
      %3 = arith.addf %2, %one : vector<16xf32>
      vector.store %3, %y[%i] : memref<?xf32>, vector<16xf32>
    }
    scf.for %i = %whole to %n step %c16 {
      %left = arith.subi %n, %i : index
      %mask = vector.create_mask %left : vector<16xi1>
      %0 = vector.maskedload %x[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %1 = arith.mulf %0, %half : vector<16xf32>
      %negative2 = arith.cmpf ogt, %zero, %1 : vector<16xf32>
      %2 = arith.select %negative2, %zero, %1 : vector<16xi1>, vector<16xf32>
      %3 = arith.addf %2, %one : vector<16xf32>
      vector.maskedstore %y[%i], %mask, %3 : memref<?xf32>, vector<16xi1>, vector<16xf32>
    }
    return
  }
}
