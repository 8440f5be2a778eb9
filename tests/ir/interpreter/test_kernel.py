"""Kernels in the interpreter: the 21 programs against NumPy, lanes against the sequential definition bit for bit."""

import math

import numpy as np
import pytest
from kernel_cases import BF16, CASES, normal, program_o, text_of

from nablair.ir.diagnostics import Error, ShapeError
from nablair.ir.interpreter.machine import Interpreter, InterpreterError
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify


def both(text, name, arguments):
    """The results side by side, after checking that the sequential definition gives the same bits."""
    module = parse_module(text)
    verify(module)
    lanes = Interpreter(module).call(name, arguments)
    sequence = Interpreter(module, lanes=False).call(name, arguments)
    assert len(lanes) == len(sequence)
    for fast, slow in zip(lanes, sequence, strict=True):
        assert fast.dtype == slow.dtype and fast.shape == slow.shape
        assert fast.tobytes() == slow.tobytes()
    return lanes


@pytest.mark.parametrize("name", CASES)
def test_programs_agree_with_numpy(name):
    arguments, wanted = CASES[name]()
    found = both(text_of(name), name, arguments)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-4, atol=2e-5)


def test_inputs_stay_as_they_are():
    arguments, _ = program_o()
    before = arguments[0].copy()
    both(text_of("o"), "o", arguments)
    assert arguments[0].tobytes() == before.tobytes()


def kernel(body, header, results, arguments):
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    types = ", ".join(results)
    return (
        f"func.func @f({arguments}) -> ({types}) {{\n{names} = kernel.launch {header} {{\n{body}\n}}\n"
        f"return {names} : {types}\n}}"
    )


def test_a_sum_starts_at_positive_zero_and_runs_in_order():
    text = kernel(
        """%s = kernel.reduce (%k) in (6) by arith.addf {
             %0 = kernel.load %x[%i, %k]
             kernel.yield %0
           }
           kernel.store %s, %y[%i]""",
        "(%i) in (3) ins(%x : tensor<3x6xf32>) outs(%y : tensor<3xf32>)",
        ["tensor<3xf32>"],
        "%x: tensor<3x6xf32>",
    )
    x = np.full((3, 6), -0.0, np.float32)
    x[1] = [1e8, 1, -1e8, 1, 0.5, 0.25]
    x[2] = [np.nan, 1, 2, 3, 4, 5]
    (y,) = both(text, "f", [x])
    assert y[0] == 0 and not np.signbit(y[0])
    assert y[1] == 1.75 and np.isnan(y[2])


@pytest.mark.parametrize(
    "type,dtype", [("f16", np.float16), ("bf16", BF16), ("f64", np.float64), ("i32", np.int32), ("i8", np.int8)]
)
def test_folds_of_every_type_are_sequential(type, dtype):
    """Scan, reduce and accumulate against loops over NumPy scalars."""
    op = "arith.addf" if "f" in type else "arith.addi"
    text = kernel(
        f"""%s = kernel.scan (%k) in (50) by {op} {{
             %0 = kernel.load %x[%i, %k]
             kernel.yield %0
           }} do (%before, %after) {{
             kernel.store %before, %a[%i, %k]
             kernel.store %after, %b[%i, %k]
             kernel.accumulate %after, %c[%k] by {op}
           }}""",
        f"(%i) in (4) ins(%x : tensor<4x50x{type}>) "
        f"outs(%a : tensor<4x50x{type}>, %b : tensor<4x50x{type}>, %c : tensor<50x{type}>)",
        [f"tensor<4x50x{type}>", f"tensor<4x50x{type}>", f"tensor<50x{type}>"],
        f"%x: tensor<4x50x{type}>",
    )
    x = (normal(4, 50) * 40).astype(dtype)
    a, b, c = both(text, "f", [x])
    total = np.zeros(50, dtype)
    with np.errstate(all="ignore"):
        for i in range(4):
            fold = dtype(0)
            for k in range(50):
                assert a[i, k] == fold
                fold = fold + x[i, k]
                assert b[i, k] == fold
            total = total + b[i]
    assert c.tobytes() == total.tobytes()


def test_two_accumulates_of_one_out_interleave():
    text = kernel(
        """%0 = kernel.load %x[%i]
           kernel.accumulate %0, %y[] by arith.addf
           kernel.sweep (%k) in (3) {
             %1 = kernel.load %z[%i, %k]
             kernel.accumulate %1, %y[] by arith.addf
           }
           %2 = arith.negf %0 : f32
           kernel.accumulate %2, %y[] by arith.addf""",
        "(%i) in (40) ins(%x : tensor<40xf32>, %z : tensor<40x3xf32>) outs(%y : tensor<f32>)",
        ["tensor<f32>"],
        "%x: tensor<40xf32>, %z: tensor<40x3xf32>",
    )
    x, z = normal(40) * 1e7, normal(40, 3)
    want = np.float32(0)
    for i in range(40):
        for value in (x[i], *z[i], -x[i]):
            want = want + value
    (y,) = both(text, "f", [x.astype(np.float32), z])
    assert y[()] == want


def test_accumulate_of_a_tuple_and_of_a_maximum():
    text = kernel(
        """%0 = kernel.load %x[%i, %j]
           %1 = arith.index_cast %j : index to i64
           kernel.accumulate %0, %top[%j] by arith.maximumf
           kernel.accumulate (%0, %1), (%m[%i], %at[%i]) from (0xFF800000 : f32, -1 : i64) combine (%a, %ia, %b, %ib) {
             %c = arith.cmpf ogt, %b, %a : f32
             %v = arith.select %c, %b, %a : f32
             %iv = arith.select %c, %ib, %ia : i64
             kernel.yield %v, %iv
           }""",
        "(%i, %j) in (8, 5) ins(%x : tensor<8x5xf32>) "
        "outs(%m : tensor<8xf32>, %at : tensor<8xi64>, %top : tensor<5xf32>)",
        ["tensor<8xf32>", "tensor<8xi64>", "tensor<5xf32>"],
        "%x: tensor<8x5xf32>",
    )
    x = normal(8, 5)
    m, at, top = both(text, "f", [x])
    assert m.tobytes() == x.max(1).tobytes() and at.tolist() == x.argmax(1).tolist()
    assert top.tobytes() == x.max(0).tobytes()


def test_accumulate_starts_from_its_init():
    text = kernel(
        "%0 = kernel.load %x[%i]\nkernel.accumulate %0, %y[%i mod 2] by arith.addf",
        "(%i) in (6) ins(%x : tensor<6xf32>) outs(%y = %z : tensor<2xf32>)",
        ["tensor<2xf32>"],
        "%x: tensor<6xf32>, %z: tensor<2xf32>",
    )
    (y,) = both(text, "f", [np.arange(6, dtype=np.float32), np.array([10, 20], np.float32)])
    assert y.tolist() == [16.0, 29.0]


def test_extents_that_depend_on_the_point():
    """Causal sums, a ragged local, a ragged scan."""
    text = kernel(
        """%one = arith.constant 1 : index
           %n = arith.addi %i, %one : index
           %e = kernel.local (%k) in (%i) : tensor<?xf32> {
             %0 = kernel.load %x[%k]
             %1 = arith.mulf %0, %0 : f32
             kernel.yield %1
           }
           %s = kernel.reduce (%k) in (%i) by arith.addf {
             %0 = kernel.load %e[%k]
             kernel.yield %0
           }
           %p, %t = kernel.scan (%k) in (%n) by (arith.mulf, arith.maximumf) {
             %0 = kernel.load %x[%k]
             kernel.yield %0, %0
           } do (%p0, %t0, %p1, %t1) {
             kernel.accumulate %p1, %c[%k] by arith.addf
           }
           kernel.store %s, %a[%i]
           kernel.store %t, %b[%i]""",
        "(%i) in (7) ins(%x : tensor<7xf32>) outs(%a : tensor<7xf32>, %b : tensor<7xf32>, %c : tensor<7xf32>)",
        ["tensor<7xf32>"] * 3,
        "%x: tensor<7xf32>",
    )
    x = normal(7)
    a, b, c = both(text, "f", [x])
    np.testing.assert_allclose(a, [(x[:i] ** 2).sum() for i in range(7)], rtol=1e-5)
    assert b.tolist() == [x[: i + 1].max() for i in range(7)]
    np.testing.assert_allclose(c, x.cumprod() * np.arange(7, 0, -1), rtol=1e-4)


def test_branches_touch_only_their_points():
    """The load of the branch not taken would lie outside."""
    text = kernel(
        """%zero = arith.constant 0.0 : f32
           %three = arith.constant 3 : index
           %c = arith.cmpi slt, %i, %three : index
           %v, %w = scf.if %c -> (f32, f32) {
             %0 = kernel.load %x[%i]
             %1 = kernel.reduce (%k) in (3) by arith.addf {
               %2 = kernel.load %x[%k]
               %3 = arith.mulf %2, %0 : f32
               kernel.yield %3
             }
             scf.yield %0, %1 : f32, f32
           } else {
             scf.yield %zero, %zero : f32, f32
           }
           kernel.store %v, %y[%i]
           kernel.store %w, %z[%i]""",
        "(%i) in (5) ins(%x : tensor<?xf32>) outs(%y : tensor<5xf32>, %z : tensor<5xf32>)",
        ["tensor<5xf32>"] * 2,
        "%x: tensor<?xf32>",
    )
    y, z = both(text, "f", [np.array([1, 2, 3], np.float32)])
    assert y.tolist() == [1, 2, 3, 0, 0] and z.tolist() == [6, 12, 18, 0, 0]


def test_everything_at_once():
    """Locals through a branch and as elements of a monoid, ragged loops in loops, a scan of rows that accumulates."""
    text = kernel(
        """           %one = arith.constant 1 : index
           %zero = arith.constant 0.0 : f32
           %two = arith.constant 2 : index
           %h = kernel.load %x[%i, 0]
           %c = arith.cmpf ogt, %h, %zero : f32
           %n = arith.remsi %i, %two : index
           %n1 = arith.addi %n, %one : index
           %e = scf.if %c -> (tensor<3xf32>) {
             %l = kernel.local (%d) in (3) : tensor<3xf32> {
               %0 = kernel.load %x[%i, %d]
               kernel.yield %0
             }
             scf.yield %l : tensor<3xf32>
           } else {
             %l = kernel.local (%d) in (3) : tensor<3xf32> {
               %0 = arith.index_cast %d : index to i32
               %1 = arith.sitofp %0 : i32 to f32
               kernel.yield %1
             }
             scf.yield %l : tensor<3xf32>
           }
           %m, %o = kernel.reduce (%j, %k) in (%n1, %i) from (0xFF7FFFFF : f32, 0.0 : tensor<3xf32>) {
             %s = kernel.reduce (%q) in (%n) by arith.addf {
               %0 = kernel.load %e[%q]
               kernel.yield %0
             }
             %v = kernel.load %x[%k, %j]
             %t = arith.addf %s, %v : f32
             %r = kernel.local (%d) in (3) : tensor<3xf32> {
               %0 = kernel.load %e[%d]
               %1 = arith.mulf %0, %t : f32
               kernel.yield %1
             }
             kernel.yield %t, %r
           } combine (%ma, %oa, %mb, %ob) {
             %mm = arith.maximumf %ma, %mb : f32
             %oo = kernel.local (%d) in (3) : tensor<3xf32> {
               %0 = kernel.load %oa[%d]
               %1 = kernel.load %ob[%d]
               %2 = arith.addf %0, %1 : f32
               kernel.yield %2
             }
             kernel.yield %mm, %oo
           }
           %sm, %so = kernel.scan (%k) in (%n1) from (0xFF7FFFFF : f32, 0.0 : tensor<3xf32>) {
             kernel.yield %m, %o
           } combine (%ma, %oa, %mb, %ob) {
             %mm = arith.addf %ma, %mb : f32
             %oo = kernel.local (%d) in (3) : tensor<3xf32> {
               %0 = kernel.load %oa[%d]
               %1 = kernel.load %ob[%d]
               %2 = arith.subf %0, %1 : f32
               kernel.yield %2
             }
             kernel.yield %mm, %oo
           } do (%b0, %b1, %a0, %a1) {
             kernel.sweep (%d) in (3) {
               %0 = kernel.load %a1[%d]
               %1 = kernel.load %b1[%d]
               %2 = arith.addf %0, %1 : f32
               kernel.accumulate %2, %z[%d, %k] by arith.addf
               kernel.accumulate %b0, %z[%k, %k] by arith.addf
             }
           }
           kernel.store %sm, %y[%i]
           kernel.sweep (%d) in (3) {
             %0 = kernel.load %so[%d]
             kernel.store %0, %w[%d, %i]
           }""",
        "(%i) in (6) ins(%x : tensor<6x3xf32>) outs(%y : tensor<6xf32>, %z : tensor<3x3xf32>, %w : tensor<3x6xf32>)",
        ["tensor<6xf32>", "tensor<3x3xf32>", "tensor<3x6xf32>"],
        "%x: tensor<6x3xf32>",
    )
    for seed in range(4):
        both(text, "f", [normal(6, 3, seed=seed)])


def test_a_tree_halves():
    text = kernel(
        """%s = kernel.reduce tree (%k) in (5) by arith.addf {
             %0 = kernel.load %x[%i, %k]
             kernel.yield %0
           }
           kernel.store %s, %y[%i]""",
        "(%i) in (30) ins(%x : tensor<30x5xf32>) outs(%y : tensor<30xf32>)",
        ["tensor<30xf32>"],
        "%x: tensor<30x5xf32>",
    )
    x = normal(30, 5)
    (y,) = both(text, "f", [x])
    assert y.tobytes() == (((x[:, 0] + x[:, 3]) + x[:, 2]) + (x[:, 1] + x[:, 4])).tobytes()


def test_buffers_are_written_in_place():
    text = """
    func.func @f(%n: index, %x: memref<?x8xf32>, %y: memref<?x8xf32>, %s: memref<8xi8>, %m: memref<8xi8>) {
      kernel.launch (%i, %j) in (%n, 8) ins(%x : memref<?x8xf32>, %s : memref<8xi8>)
          outs(%z into %x : memref<?x8xf32>, %y = %y : memref<?x8xf32>) {
        %0 = kernel.load %x[%i, %j]
        %1 = kernel.load %s[%j] : i1
        %2 = arith.negf %0 : f32
        %3 = arith.select %1, %2, %0 : f32
        kernel.store %3, %z[%i, %j]
        kernel.accumulate %0, %y[%i, %j] by arith.addf
      }
      kernel.launch (%i) in (8) ins(%s : memref<8xi8>) outs(%m : memref<8xi8>) {
        %0 = kernel.load %s[%i] : i1
        %true = arith.constant true
        %1 = arith.xori %0, %true : i1
        kernel.store %1, %m[7 - %i]
      }
      return
    }
    """
    module = parse_module(text)
    verify(module)
    for lanes in (True, False):
        x, y = normal(3, 8), normal(3, 8, seed=1)
        s, m = np.array([0, 1] * 4, np.int8), np.full(8, 9, np.int8)
        want_x, want_y = np.where(s == 1, -x, x), y + x
        assert Interpreter(module, lanes).call("f", [3, x, y, s, m]) == []
        assert x.tobytes() == want_x.tobytes() and y.tobytes() == want_y.tobytes()
        assert m.tolist() == (1 - s)[::-1].tolist()


def test_unsigned_elements_keep_their_bits():
    text = kernel(
        "%0 = kernel.load %x[%i]\n%1 = arith.uitofp %0 : i8 to f32\nkernel.store %1, %y[%i]\n"
        "%2 = arith.addi %0, %0 : i8\nkernel.store %2, %z[%i]",
        "(%i) in (3) ins(%x : tensor<3xui8>) outs(%y : tensor<3xf32>, %z : tensor<3xui8>)",
        ["tensor<3xf32>", "tensor<3xui8>"],
        "%x: tensor<3xui8>",
    )
    y, z = both(text, "f", [np.array([1, 200, 255], np.uint8)])
    assert y.tolist() == [1, 200, 255] and z.tolist() == [2, 144, 254] and z.dtype == np.uint8


def test_dynamic_outs_take_their_size_from_symbols_or_axes():
    text = kernel(
        "%0 = kernel.load %x[%i]\nkernel.store %0, %y[%j, %i]",
        '(%i, %j) in (%n, %m) ins(%x : tensor<?xf32, ["n"]>) outs(%y : tensor<?x?xf32, ["m", "n"]>)',
        ['tensor<?x?xf32, ["m", "n"]>'],
        '%n: index, %m: index, %x: tensor<?xf32, ["n"]>',
    )
    (y,) = both(text, "f", [3, 2, np.array([1, 2, 3], np.float32)])
    assert y.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_no_points_and_empty_loops():
    text = kernel(
        """%s = kernel.reduce (%k) in (%n) by arith.maximumf {
             %0 = kernel.load %x[%i, %k]
             kernel.yield %0
           }
           kernel.store %s, %y[%i]
           kernel.accumulate %s, %z[] by arith.addf""",
        "(%i) in (%m) ins(%x : tensor<?x?xf32>, %n : index) outs(%y : tensor<?xf32>, %z : tensor<f32>)",
        ["tensor<?xf32>", "tensor<f32>"],
        "%m: index, %n: index, %x: tensor<?x?xf32>",
    )
    y, z = both(text, "f", [0, 3, np.zeros((0, 3), np.float32)])
    assert y.shape == (0,) and z[()] == 0
    y, z = both(text, "f", [2, 0, np.zeros((2, 0), np.float32)])
    assert y.tolist() == [-math.inf] * 2 and z[()] == -math.inf


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize(
    "store,load,message",
    [
        ("[%i]", "[%i + 1]", "'kernel.load' op reads element [4] of an array of shape 4"),
        ("[%i + 1]", "[%i]", "'kernel.store' op writes element [4] of an array of shape 4"),
        ("[%i * 0 + 1]", "[%i]", "stores element [0] of out 0 0 times"),
        ("[%i floordiv 2]", "[%i]", "stores element [0] of out 0 2 times"),
    ],
)
def test_faults_are_reported(lanes, store, load, message):
    """On dynamic sizes, where the verifier leaves the matter to the interpreter."""
    text = (
        "func.func @f(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {\n"
        "  kernel.launch (%i) in (%n) ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {\n"
        f"    %0 = kernel.load %x{load}\n    kernel.store %0, %y{store}\n  }}\n  return\n}}"
    )
    x = np.zeros(4, np.float32)
    with pytest.raises(InterpreterError) as caught:
        Interpreter(parse_module(text, "k.mlir"), lanes).call("f", [4, x, x.copy()])
    assert message in caught.value.message
    place = caught.value.location and caught.value.location.file_position()
    assert place is not None and place.file == "k.mlir"


def test_faults_inside_a_lane_name_the_place():
    text = kernel(
        """%0 = kernel.load %at[%i]
           %c = arith.index_cast %0 : i64 to index
           %1 = kernel.load %x[%c, %i]
           kernel.store %1, %y[%i]""",
        "(%i) in (3) ins(%x : tensor<4x3xf32>, %at : tensor<3xi64>) outs(%y : tensor<3xf32>)",
        ["tensor<3xf32>"],
        "%x: tensor<4x3xf32>, %at: tensor<3xi64>",
    )
    for lanes in (True, False):
        with pytest.raises(InterpreterError, match=r"reads element \[-1, 1\] of an array of shape 4x3"):
            Interpreter(parse_module(text), lanes).call("f", [normal(4, 3), np.array([0, -1, 2])])


def test_a_hundred_thousand_points():
    text = kernel(
        "%0 = kernel.load %x[%i]\n%1 = math.exp %0 : f32\nkernel.store %1, %y[%i]\n"
        "kernel.accumulate %0, %s[] by arith.addf",
        "(%i) in (300000) ins(%x : tensor<300000xf32>) outs(%y : tensor<300000xf32>, %s : tensor<f32>)",
        ["tensor<300000xf32>", "tensor<f32>"],
        "%x: tensor<300000xf32>",
    )
    x = normal(300000)
    y, s = Interpreter(parse_module(text)).call("f", [x])
    assert y.tobytes() == np.exp(x.astype(np.float64)).astype(np.float32).tobytes()
    assert s[()] == np.add.accumulate(x)[-1]


def test_one_long_fold_is_split_into_chunks():
    text = kernel(
        "%s = kernel.reduce (%k) in (300000) by arith.addf {\n%0 = kernel.load %x[%k]\nkernel.yield %0\n}\n"
        "kernel.store %s, %y[]",
        "() in () ins(%x : tensor<300000xf32>) outs(%y : tensor<f32>)",
        ["tensor<f32>"],
        "%x: tensor<300000xf32>",
    )
    x = normal(300000)
    (y,) = Interpreter(parse_module(text)).call("f", [x])
    assert y[()] == np.add.accumulate(x)[-1]


def test_functions_call_functions():
    text = """
    func.func private @double(%x: f32) -> f32 {
      %0 = arith.addf %x, %x : f32
      return %0 : f32
    }
    func.func @f(%x: f32) -> f32 {
      %0 = call @double(%x) : (f32) -> f32
      %1 = call @double(%0) : (f32) -> f32
      return %1 : f32
    }
    func.func @loop(%x: f32) -> f32 {
      %0 = call @loop(%x) : (f32) -> f32
      return %0 : f32
    }
    """
    machine = Interpreter(parse_module(text))
    assert machine.call("f", [1.5]) == [6.0]
    with pytest.raises(InterpreterError, match="more than 100 calls within calls"):
        machine.call("loop", [1.0])
    assert machine.call("f", [1.5]) == [6.0] and machine.depth == 0


def test_symbols_belong_to_a_function():
    text = """
    func.func private @twice(%m: index, %x: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> {
      %y = kernel.launch (%i) in (%m) ins(%x : tensor<?xf32, ["m"]>) outs(%y : tensor<?xf32, ["n"]>) {
        %0 = kernel.load %x[%i]
        kernel.store %0, %y[%i]
      }
      return %y : tensor<?xf32, ["n"]>
    }
    func.func @f(%m: index, %x: tensor<?xf32, ["m"]>, %z: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
      %y = call @twice(%m, %x) : (index, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
      return %y : tensor<?xf32, ["n"]>
    }
    """
    (y,) = both(text, "f", [2, normal(2), normal(3)])
    assert y.tobytes() == normal(2).tobytes()


def test_arguments_are_checked():
    text = (
        'func.func @f(%x: tensor<2x?xf32, ["n"]>, %y: tensor<?xf32, ["n"]>) -> tensor<2x?xf32, ["n"]> {\n'
        '  return %x : tensor<2x?xf32, ["n"]>\n}'
    )
    machine = Interpreter(parse_module(text))
    x, y = normal(2, 3), normal(3)
    assert machine.call("f", [x, y])[0] is x
    with pytest.raises(ShapeError, match=r"argument 0 of '@f' must have the shape of tensor<2x\?xf32.*got \(3, 3\)"):
        machine.call("f", [normal(3, 3), y])
    with pytest.raises(ShapeError, match="symbol 'n' stands for 3 and for 4"):
        machine.call("f", [x, normal(4)])
    with pytest.raises(InterpreterError, match="must hold float32"):
        machine.call("f", [x.astype(np.int32), y])
    with pytest.raises(InterpreterError, match="takes 2 arguments, got 1"):
        machine.call("f", [x])
    with pytest.raises(InterpreterError, match="no function '@g' in the module; there are: f"):
        machine.call("g")
    with pytest.raises(Error, match="no meaning"):
        bad = 'func.func @f() {\n  "other.op"() : () -> ()\n  return\n}'
        Interpreter(parse_module(bad, allow_unregistered=True)).call("f")
