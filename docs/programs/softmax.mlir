func.func @main(%x: tensor<?x64xf32, ["n"]>) -> tensor<?x64xf32, ["n"]> {
  %y = linalg.softmax %x {axis = 1} : tensor<?x64xf32, ["n"]>
  return %y : tensor<?x64xf32, ["n"]>
}
