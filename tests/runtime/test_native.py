"""Native modules: compiling, loading, errors, memory, and what must not change in the process."""

import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nablair import LoweringError
from nablair.runtime import host, native
from nablair.runtime.host import host_features

TABLE = """
@table = private constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@counter = global i32 5
declare double @cos(double)
declare ptr @memset(ptr, i32, i64)
declare i32 @far(i32)
@far_data = external global i32
define i32 @pick(i64 %i) nounwind {
  %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
  %v = load i32, ptr %p
  ret i32 %v
}
define double @cosine(double %x) nounwind {
  %r = call double @cos(double %x)
  ret double %r
}
define i32 @count() nounwind {
  %v = load i32, ptr @counter
  %n = add i32 %v, 1
  store i32 %n, ptr @counter
  ret i32 %n
}
define void @clear(ptr %p, i64 %n) nounwind {
  %r = call ptr @memset(ptr %p, i32 0, i64 %n)
  ret void
}
define i32 @both(i32 %x) nounwind {
  %a = call i32 @far(i32 %x)
  %b = load i32, ptr @far_data
  %r = add i32 %a, %b
  ret i32 %r
}
"""


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def triple(x):
    return 3 * x


DATA = ctypes.c_int(1000)
SYMBOLS = {"far": ctypes.cast(triple, ctypes.c_void_p).value, "far_data": ctypes.addressof(DATA)}


def call(module, symbol, result, *arguments):
    types = [ctypes.c_double if isinstance(x, float) else ctypes.c_int64 for x in arguments]
    return ctypes.CFUNCTYPE(result, *types)(module.address(symbol))(*arguments)


def exercise(module):
    assert [call(module, "pick", ctypes.c_int, i) for i in range(4)] == [10, 20, 30, 40]
    assert call(module, "cosine", ctypes.c_double, 0.0) == 1.0
    assert [call(module, "count", ctypes.c_int) for _ in range(2)] == [6, 7]
    x = np.ones(100)
    call(module, "clear", None, x.ctypes.data, 800)
    assert not x.any()
    assert call(module, "both", ctypes.c_int, 7) == 1021


def test_code_constants_data_and_external_symbols():
    exercise(native.compile_ir(TABLE, name="table", symbols=SYMBOLS))


def test_object_runs_again_without_its_text():
    data = native.compile_object(TABLE, name="table")
    module = native.load_object(data, name="again", symbols=SYMBOLS)
    exercise(module)
    with pytest.raises(LoweringError, match="'again' was loaded from an object"):
        module.assembly()


def test_orc_loads_the_same_objects(monkeypatch):
    monkeypatch.setattr(native.platform, "machine", lambda: "other")
    module = native.compile_ir(TABLE, name="orc", symbols=SYMBOLS)
    exercise(module)
    with pytest.raises(LoweringError, match="'orc' defines no symbol 'nothing'"):
        module.address("nothing")
    module.close()


def test_loading_an_object_imports_no_llvmlite(tmp_path: Path):
    (tmp_path / "k.o").write_bytes(native.compile_object(TABLE, name="table"))
    script = (
        "import ctypes, sys; from nablair.runtime.native import load_object, host_features\n"
        f"data = open({str(tmp_path / 'k.o')!r}, 'rb').read()\n"
        "m = load_object(data, name='k', symbols={'far': 1, 'far_data': 2})\n"
        "assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(m.address('pick'))(2) == 30\n"
        "assert host_features().vector_bits >= 128\n"
        "assert not any(n.startswith('llvmlite') for n in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_assembly_names_the_function():
    assert "pick:" in native.compile_ir(TABLE, name="table", symbols=SYMBOLS).assembly()


def test_no_page_is_writable_and_executable():
    module = native.compile_ir(TABLE, name="table", symbols=SYMBOLS)
    modes = {}
    for symbol in ("pick", "counter"):
        address = module.address(symbol)
        for line in Path("/proc/self/maps").read_text().splitlines():
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if low <= address < high:
                modes[symbol] = line.split()[1]
    assert modes == {"pick": "r-xp", "counter": "rw-p"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define void @f() { ret i32 }", r"LLVM rejects module 'bad': (.|\n)*1:\d+"),
        ("define void @f() { br label %x }", "LLVM rejects module 'bad'"),
        (
            "define float @f(float %a) {\n %x = fadd float %y, %a\n %y = fadd float %x, %a\n ret float %y }",
            "LLVM rejects module 'bad': (.|\\n)*dominate",
        ),
        ("@x = constant i32 " + "add (i32 1, i32 " * 20000 + "1" + ")" * 20000, "line 1 nests more than 256 levels"),
        ("@x = constant " + "[1 x " * 200000 + "i8" + "]" * 200000 + " undef", "line 1 nests more than 256 levels"),
        ("define void @f() { call void @nowhere()\n ret void }\ndeclare void @nowhere()", "symbol 'nowhere'"),
    ],
)
def test_bad_modules_raise_and_name_the_module(text, message):
    with pytest.raises(LoweringError, match=message) as caught:
        native.compile_ir(text, name="bad")
    assert "'bad'" in str(caught.value)


def test_intrinsics_that_the_processor_lacks(monkeypatch):
    class Old:
        features = frozenset({"avx2", "fma"})

    monkeypatch.setattr(native, "host_features", lambda: Old)
    with pytest.raises(LoweringError, match=r"'k' uses llvm.x86.avx512.\*, but this processor has no avx512f"):
        native.compile_object("declare <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float>)", name="k")


@pytest.mark.parametrize("damage", [b"", b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe" * 40])
def test_what_is_no_object(damage):
    with pytest.raises(LoweringError, match="object of 'k'"):
        native.load_object(damage, name="k")


def test_a_cut_object_is_no_crash():
    data = native.compile_object(TABLE, name="table")
    for length in range(0, len(data) - 1, 37):
        with pytest.raises(LoweringError):
            native.load_object(data[:length], name="cut", symbols=SYMBOLS)


def test_closed_module_has_no_addresses():
    with native.compile_ir(TABLE, name="table", symbols=SYMBOLS) as module:
        assert module.address("pick")
    with pytest.raises(LoweringError, match="'table' is closed"):
        module.address("pick")


def _anonymous_kib() -> int:
    gc.collect()
    return int(Path("/proc/self/smaps_rollup").read_text().split("Anonymous:")[1].split()[0])


def test_discarded_modules_keep_no_memory():
    def growth(count, base):
        before = _anonymous_kib()
        for i in range(count):
            native.compile_ir(TABLE.replace("@pick", f"@pick{base + i}"), name=f"m{base + i}", symbols=SYMBOLS)
        return _anonymous_kib() - before

    # What is kept shows in every round; a new arena of Python's allocator in one.
    assert min(growth(150, 1000 * turn) for turn in range(4)) <= 150


def test_compiling_leaves_the_floating_point_mode_alone():
    native.compile_ir(TABLE, name="table", symbols=SYMBOLS)
    tiny = np.full(16, 1e-40, np.float32)
    assert (tiny * np.float32(1) == tiny).all() and tiny.any()
    assert np.full(8, 5e-324)[0] * 1.0 == 5e-324


def test_host_facts():
    found = host_features()
    assert found.vector_bits in (128, 256, 512)
    assert 8 << 10 <= found.l1 <= found.l2 <= found.l3
    assert found.name and found.features


@pytest.mark.parametrize(
    ("told", "way", "line"),
    [
        ({"ways_of_associativity": "8", "coherency_line_size": "128"}, 8 << 10, 128),
        ({"ways_of_associativity": "0", "coherency_line_size": "64"}, 4 << 10, 64),
        ({"ways_of_associativity": "?"}, 4 << 10, 64),
        ({}, 4 << 10, 64),
    ],
)
def test_what_the_system_does_not_tell_of_a_cache_is_the_usual(
    told: dict[str, str], way: int, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, text in {"level": "1", "type": "Data", "size": "64K", **told}.items():
        (tmp_path / "index0").mkdir(exist_ok=True)
        (tmp_path / "index0" / name).write_text(f"{text}\n")
    monkeypatch.setattr(host, "_CACHES", tmp_path)
    found = host.host_features.__wrapped__()
    assert (found.l1, found.l1_way, found.line) == (64 << 10, way, line)


def test_host_facts_agree_with_llvm():
    import llvmlite.binding as llvm

    present = llvm.get_host_cpu_features()
    for feature in ("avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bw", "avx512bf16", "sse4.2"):
        assert (feature in host_features().features) == present.get(feature, False), feature
