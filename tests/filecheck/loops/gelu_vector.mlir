// gelu(a @ b + bias), bf16 in and f32 sums, 16 columns at a time.

module {
  func.func @f(%a: memref<28x8xbf16>, %b: memref<8x60xbf16>, %bias: memref<60xf32>, %y: memref<28x60xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c60 = arith.constant 60 : index
    %zb = arith.constant dense<0.0> : vector<16xbf16>
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %half = arith.constant dense<0.5> : vector<16xf32>
    %one = arith.constant dense<1.0> : vector<16xf32>
    %r = arith.constant dense<0.70710677> : vector<16xf32>
    scf.forall (%i) in (28) {
      scf.for %j = %c0 to %c60 step %c16 {
        %left = arith.subi %c60, %j : index
        %mask = vector.create_mask %left : vector<16xi1>
        %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<16xf32>) {
          %0 = memref.load %a[%i, %k] : memref<28x8xbf16>
          %1 = vector.maskedload %b[%k, %j], %mask, %zb : memref<8x60xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
          %2 = arith.extf %0 : bf16 to f32
          %3 = arith.extf %1 : vector<16xbf16> to vector<16xf32>
          %4 = vector.broadcast %2 : f32 to vector<16xf32>
          %5 = math.fma %4, %3, %acc : vector<16xf32>
          scf.yield %5 : vector<16xf32>
        }
        %0 = vector.maskedload %bias[%j], %mask, %zero : memref<60xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
        %h = arith.addf %s, %0 : vector<16xf32>
        %1 = arith.mulf %h, %r : vector<16xf32>
        %2 = math.erf %1 : vector<16xf32>
        %3 = arith.addf %2, %one : vector<16xf32>
        %4 = arith.mulf %h, %half : vector<16xf32>
        %z = arith.mulf %4, %3 : vector<16xf32>
        vector.maskedstore %y[%i, %j], %mask, %z : memref<28x60xf32>, vector<16xi1>, vector<16xf32>
      }
    }
    return
  }
}
