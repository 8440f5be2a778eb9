// Symbolic rows
func.func @n(%n : index, %x : tensor<?x64xf32, ["n"]>, %z : tensor<?x64xf32, ["n"]>) -> tensor<?x64xf32, ["n"]> {
  %y = kernel.launch (%i, %j) in (%n, 64)
      ins(%x : tensor<?x64xf32, ["n"]>, %z : tensor<?x64xf32, ["n"]>) outs(%y : tensor<?x64xf32, ["n"]>) {
    %0 = kernel.load %x[%i, %j]
    %1 = kernel.load %z[%i, %j]
    %2 = arith.mulf %0, %1 : f32
    kernel.store %2, %y[%i, %j]
  }
  return %y : tensor<?x64xf32, ["n"]>
}
