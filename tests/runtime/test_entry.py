"""Entries: native and in Python, what fits and what does not, references, threads."""

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

from nablair import LoweringError
from nablair.lowering.llvm.entry import Argument, Signature, emit_entry
from nablair.runtime import entry as entries
from nablair.runtime.entry import TensorClass, compile_entry, entry_of, entry_text, find_layout, load_entry
from nablair.runtime.native import compile_ir, compile_object

Kind = Literal["tensor", "array"]

# out[i] = a[i] + b[i]; the sizes of all three follow their pointers, as the convention says.
ADD_DYNAMIC = """
define void @add(ptr %a, i64 %n, ptr %b, i64 %nb, ptr %out, i64 %no) nounwind {
start:
  br label %test
test:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %po = getelementptr float, ptr %out, i64 %i
  %x = load float, ptr %pa
  %y = load float, ptr %pb
  %z = fadd float %x, %y
  store float %z, ptr %po
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
"""
ADD_STATIC = """
define void @add(ptr %a, ptr %b, ptr %out) nounwind {
  %x = load <12 x float>, ptr %a, align 4
  %y = load <12 x float>, ptr %b, align 4
  %z = fadd <12 x float> %x, %y
  store <12 x float> %z, ptr %out, align 4
  ret void
}
"""


class Tensor:
    __slots__ = ("__weakref__", "data", "first", "kind")

    def __init__(self, kind=None, data=None):
        if kind is not None:
            self.kind = kind
        if data is not None:
            self.data = data


class Derived(Tensor):
    __slots__ = ()


TENSOR = TensorClass(Tensor, "kind", "data")
F32_3X4, OTHER = object(), object()


def array(shape, dtype: Any = np.float32, start=0):
    return (np.arange(np.prod(shape, dtype=int)) + start).reshape(shape).astype(dtype)


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.fixture(params=["native", "python"])
def both(request, monkeypatch):
    """Run a test with native entries, and with those in Python."""
    if request.param == "python":
        monkeypatch.setattr(entries, "find_layout", lambda tensor_class=None: None)
    return request.param


def static(kind: Kind = "array", release_gil=False, **more):
    signature = Signature(
        "add",
        tuple(Argument(kind, "f32", (3, 4), **more) for _ in "ab"),
        (Argument("array", "f32", (3, 4)),),
        release_gil,
    )
    return compile_entry(ADD_STATIC, signature, name="add", tensor_class=TENSOR, abstract_values=(F32_3X4, F32_3X4))


def dynamic(kind: Kind = "array", release_gil=False):
    signature = Signature(
        "add", tuple(Argument(kind, "f32", ("n",)) for _ in "ab"), (Argument("array", "f32", ("n",)),), release_gil
    )
    return compile_entry(ADD_DYNAMIC, signature, name="add", tensor_class=TENSOR)


def test_layout_is_verified_here():
    assert find_layout(TENSOR) is not None


def test_native_entries_are_built_in_functions():
    function = static()
    assert type(function) is type(len) and function.__name__ == "add"


def test_static_arrays(both):
    out = np.empty((3, 4), np.float32)
    assert static()(array((3, 4)), array((3, 4), start=100), out) is None
    assert (out == 2 * array((3, 4)) + 100).all()


@pytest.mark.parametrize("release_gil", [False, True])
def test_static_tensors(both, release_gil):
    out = np.empty((3, 4), np.float32)
    add = static("tensor", release_gil)
    assert add(Tensor(F32_3X4, array((3, 4))), Tensor(F32_3X4, array((3, 4), start=5)), out) is None
    assert (out == 2 * array((3, 4)) + 5).all()


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_sizes_that_the_call_brings(both, n, kind):
    out = np.empty(n, np.float32)
    wrap = (lambda x: Tensor(OTHER, x)) if kind == "tensor" else (lambda x: x)
    assert dynamic(kind)(wrap(array(n)), wrap(array(n, start=2)), out) is None
    assert (out == 2 * array(n) + 2).all()


def unaligned(shape):
    return np.zeros(4 * np.prod(shape) + 1, np.int8)[1:].view(np.float32).reshape(shape)


class Subclass(np.ndarray):
    pass


WRONG_ARRAYS = {
    "dtype": lambda: array((3, 4), np.float64),
    "same-size dtype": lambda: array((3, 4), np.int32),
    "byte order": lambda: array((3, 4), ">f4"),
    "size": lambda: array((3, 5)),
    "rank": lambda: array((12,)),
    "rank 0": lambda: np.array(1, np.float32),
    "more ranks": lambda: array((3, 4, 1)),
    "transposed": lambda: array((4, 3)).T,
    "strided": lambda: array((3, 8))[:, ::2],
    "reversed": lambda: array((3, 4))[::-1],
    "broadcast": lambda: np.broadcast_to(np.float32(1), (3, 4)),
    "unaligned": lambda: unaligned((3, 4)),
    "subclass": lambda: array((3, 4)).view(Subclass),
    "scalar": lambda: np.float32(1),
    "number": lambda: 1.0,
    "list": lambda: [1.0],
    "none": lambda: None,
    "type": lambda: np.ndarray,
}


@pytest.mark.parametrize("fault", WRONG_ARRAYS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_arrays_that_do_not_fit(both, fault, place):
    arguments = [array((3, 4)), array((3, 4)), np.full((3, 4), -1, np.float32)]
    out = arguments[2]
    arguments[place] = WRONG_ARRAYS[fault]()
    assert static()(*arguments) is NotImplemented
    assert (out == -1).all()


def test_outputs_are_writable(both):
    out = read_only(np.zeros((3, 4), np.float32))
    inputs = read_only(array((3, 4))), read_only(array((3, 4)))
    assert static()(*inputs, out) is NotImplemented
    assert static()(*inputs, np.empty((3, 4), np.float32)) is None


@pytest.mark.parametrize("count", [0, 1, 2, 4, 9])
def test_number_of_arguments(both, count):
    assert static()(*[array((3, 4))] * count) is NotImplemented


def test_keywords_are_an_error():
    with pytest.raises(TypeError):
        static()(a=1)


@pytest.mark.parametrize(
    "tensor",
    [
        lambda: Tensor(),
        lambda: Tensor(F32_3X4),
        lambda: Tensor(OTHER, array((3, 4))),
        lambda: Tensor(data=array((3, 4))),
        lambda: Tensor(F32_3X4, "pending"),
        lambda: Tensor(F32_3X4, array((4, 3)).T),
        lambda: Tensor(F32_3X4, array((3, 4)).view(Subclass)),
        lambda: Derived(F32_3X4, array((3, 4))),
        lambda: array((3, 4)),
        lambda: None,
    ],
)
def test_tensors_that_do_not_fit(both, tensor):
    good, out = Tensor(F32_3X4, array((3, 4))), np.empty((3, 4), np.float32)
    add = static("tensor")
    assert add(good, good, out) is None
    assert add(tensor(), good, out) is NotImplemented
    assert add(good, tensor(), out) is NotImplemented


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize(("a", "b", "out"), [(4, 5, 4), (4, 4, 5), (0, 1, 1)])
def test_equal_names_are_equal_sizes(both, kind, a, b, out):
    wrap = (lambda x: Tensor(OTHER, x)) if kind == "tensor" else (lambda x: x)
    assert dynamic(kind)(wrap(array(a)), wrap(array(b)), np.empty(out, np.float32)) is NotImplemented


def test_alignment_on_demand(both):
    memory = np.zeros(64, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    aligned, shifted = (memory[start + by :][:12].reshape(3, 4) for by in (0, 1))
    add, out = static(alignment=64), np.empty((3, 4), np.float32)
    assert add(aligned, aligned, out) is None
    assert add(aligned, shifted, out) is NotImplemented


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("i1", np.bool_),
        ("i8", np.int8),
        ("ui8", np.uint8),
        ("i64", np.int64),
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f64", np.float64),
    ],
)
def test_dtypes(both, name, dtype):
    size = np.dtype(dtype).itemsize
    text = f"""define void @copy(ptr %a, ptr %out) {{
      %x = load i{8 * size}, ptr %a
      store i{8 * size} %x, ptr %out
      ret void }}"""
    signature = Signature("copy", (Argument("array", name, ()),), (Argument("array", name, (1, 1)),))
    copy = compile_entry(text, signature, name="copy")
    out = np.zeros((1, 1), dtype)
    assert copy(np.array(1, dtype), out) is None
    assert out[0, 0] == 1
    assert copy(np.array(1, np.float32), out) is NotImplemented


def test_an_object_serves_other_abstract_values():
    signature = Signature("add", (Argument("tensor", "f32", (3, 4)),) * 2, (Argument("array", "f32", (3, 4)),))
    data = compile_object(ADD_STATIC + entry_text(signature, TENSOR), name="add")
    kind = object()
    add = load_entry(data, signature, name="add", tensor_class=TENSOR, abstract_values=(kind, kind))
    good, out = Tensor(kind, array((3, 4))), np.empty((3, 4), np.float32)
    assert add(good, good, out) is None
    assert add(good, Tensor(F32_3X4, array((3, 4))), out) is NotImplemented


def test_an_entry_stands_as_a_module_of_its_own():
    signature = Signature("add", (Argument("array", "f32", (3, 4)),) * 2, (Argument("array", "f32", (3, 4)),))
    host = compile_ir(ADD_STATIC, name="host")
    add = load_entry(
        compile_object(emit_entry(signature), name="entry"),
        signature,
        name="add",
        symbols={"add": host.address("add")},
    )
    out = np.empty((3, 4), np.float32)
    assert add(array((3, 4)), array((3, 4)), out) is None
    assert (out == 2 * array((3, 4))).all()


def test_the_entry_of_a_loaded_function_keeps_its_code(both):
    signature = Signature("add", (Argument("array", "f32", (3, 4)),) * 2, (Argument("array", "f32", (3, 4)),))
    host = compile_ir(ADD_STATIC, name="host")
    alive = weakref.ref(host)
    add = entry_of(host, signature, name="add")
    del host
    gc.collect()
    out = np.empty((3, 4), np.float32)
    assert add(array((3, 4)), array((3, 4)), out) is None
    assert (out == 2 * array((3, 4))).all()
    assert add(array((3, 4)), array((4, 3)), out) is NotImplemented
    assert alive() is not None
    del add
    gc.collect()
    assert alive() is None


def test_host_functions_may_use_the_shared_threads(both):
    text = """
    declare void @"nablair.parallel"(ptr, ptr, i64)
    define void @task(ptr %out, i64 %task) nounwind {
      %p = getelementptr i64, ptr %out, i64 %task
      store i64 %task, ptr %p
      ret void
    }
    define void @iota(ptr %out, i64 %n) nounwind {
      call void @"nablair.parallel"(ptr @task, ptr %out, i64 %n)
      ret void
    }
    """
    iota = compile_entry(text, Signature("iota", (), (Argument("array", "i64", ("n",)),)), name="iota")
    out = np.empty(1000, np.int64)
    assert iota(out) is None
    assert (out == np.arange(1000)).all()


def test_what_cannot_be_an_entry():
    f32 = Argument("array", "f32", (3, 4))
    tensor = Argument("tensor", "f32", (3, 4))
    with pytest.raises(LoweringError, match="arrays of f8E5M2 cannot pass"):
        compile_entry(ADD_STATIC, Signature("add", (f32, f32), (Argument("array", "f8E5M2", (3, 4)),)), name="add")
    with pytest.raises(LoweringError, match="input 1 is a tensor of no class"):
        compile_entry(ADD_STATIC, Signature("add", (f32, tensor), (f32,)), name="add")
    with pytest.raises(LoweringError, match="input 0 needs its abstract value"):
        compile_entry(ADD_STATIC, Signature("add", (tensor, f32), (f32,)), name="add", tensor_class=TENSOR)


def test_a_class_without_slots_is_served_by_python():
    class Loose:
        def __init__(self, data):
            self.inside = data

        data = property(lambda self: self.inside)
        kind = property(lambda self: F32_3X4)

    loose = TensorClass(Loose, "kind", "data")
    assert find_layout(loose) is None
    signature = Signature("add", (Argument("tensor", "f32", (3, 4)),) * 2, (Argument("array", "f32", (3, 4)),))
    add = compile_entry(ADD_STATIC, signature, name="add", tensor_class=loose, abstract_values=(F32_3X4, F32_3X4))
    out = np.empty((3, 4), np.float32)
    assert add(Loose(array((3, 4))), Loose(array((3, 4))), out) is None
    assert (out == 2 * array((3, 4))).all()


@pytest.mark.parametrize("release_gil", [False, True])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_no_reference_is_lost_or_kept(both, release_gil, kind):
    x, out, wrong = array((3, 4)), np.empty((3, 4), np.float32), array((3, 4), np.float64)
    wrap = (lambda data: Tensor(F32_3X4, data)) if kind == "tensor" else (lambda data: data)
    good = wrap(x)
    watched = [x, good, out, wrong, F32_3X4, None, NotImplemented, np.dtype(np.float32), np.ndarray, Tensor]
    add = static(kind, release_gil)
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(100_000 if both == "native" else 100):
        add(good, good, out)
        add(good, good, wrong)
        add(good)
    after = [sys.getrefcount(thing) for thing in watched]
    assert [b - a for a, b in zip(before, after)] == pytest.approx([0] * len(watched), abs=3)


def test_an_entry_keeps_its_code_and_dies_with_it(both):
    kind = type("Kind", (), {})()
    alive = weakref.ref(kind)
    signature = Signature("add", (Argument("tensor", "f32", (3, 4)),) * 2, (Argument("array", "f32", (3, 4)),))
    add = compile_entry(ADD_STATIC, signature, name="add", tensor_class=TENSOR, abstract_values=(kind, kind))
    good, out = Tensor(kind, array((3, 4))), np.empty((3, 4), np.float32)
    del kind
    gc.collect()
    assert add(good, good, out) is None
    del good, add
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("release_gil", [False, True])
def test_eight_threads(both, release_gil):
    add = dynamic("tensor", release_gil)
    faults = []

    def work(seed):
        for i in range(1000):
            n = 1 + (seed * i) % 300
            x, out = Tensor(OTHER, array(n, start=seed)), np.empty(n, np.float32)
            if add(x, x, out) is not None or not (out == 2 * array(n, start=seed)).all():
                faults.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_value_that_is_rebound_meanwhile_outlives_the_call(both):
    """The host function hands control to Python: there, as another thread could, the Tensor drops its array."""
    text = """
    declare void @rebind()
    define void @read(ptr %a, ptr %out) nounwind {
      call void @rebind()
      %x = load <12 x float>, ptr %a, align 4
      store <12 x float> %x, ptr %out, align 4
      ret void
    }
    """
    tensor, died = Tensor(F32_3X4, array((3, 4), start=9)), []
    weakref.finalize(tensor.data, died.append, True)
    died_inside = []

    @ctypes.CFUNCTYPE(None)
    def rebind():
        tensor.data = array((3, 4))
        died_inside.append(bool(died))

    signature = Signature(
        "read", (Argument("tensor", "f32", (3, 4)),), (Argument("array", "f32", (3, 4)),), release_gil=True
    )
    address = ctypes.cast(rebind, ctypes.c_void_p).value
    assert address is not None
    symbols = {"rebind": address}
    read = compile_entry(text, signature, name="read", tensor_class=TENSOR, abstract_values=(F32_3X4,), symbols=symbols)
    out = np.empty((3, 4), np.float32)
    assert read(tensor, out) is None
    assert (out == array((3, 4), start=9)).all()
    assert died_inside == [False] and died == [True]
