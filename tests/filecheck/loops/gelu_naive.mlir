// gelu(a @ b + bias), bf16 in and f32 sums.

module {
  func.func @f(%a: memref<28x8xbf16>, %b: memref<8x60xbf16>, %bias: memref<60xf32>, %y: memref<28x60xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %r = arith.constant 0.70710677 : f32
    scf.forall (%i, %j) in (28, 60) {
      %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
        %0 = memref.load %a[%i, %k] : memref<28x8xbf16>
        %1 = memref.load %b[%k, %j] : memref<8x60xbf16>
        %2 = arith.extf %0 : bf16 to f32
        %3 = arith.extf %1 : bf16 to f32
        %4 = math.fma %2, %3, %acc : f32
        scf.yield %4 : f32
      }
      %0 = memref.load %bias[%j] : memref<60xf32>
      %h = arith.addf %s, %0 : f32
      %1 = arith.mulf %h, %r : f32
      %2 = math.erf %1 : f32
      %3 = arith.addf %2, %one : f32
      %4 = arith.mulf %h, %half : f32
      %z = arith.mulf %4, %3 : f32
      memref.store %z, %y[%i, %j] : memref<28x60xf32>
    }
    return
  }
}
