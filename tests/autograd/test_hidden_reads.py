"""What functions read by ways that the names in their code do not tell, and ordinary code that only looks like it."""

from __future__ import annotations

import builtins
import sys
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

JIT: Any = ag.jit
PRELUDE = """
import abc, builtins, collections, ctypes, dataclasses, datetime, functools, inspect, io, logging, operator, os
import pathlib, random, sys, threading, time, types
import numpy as np
from nablair import autograd as ag
class Plain: pass
o = Plain()
o.v, o.aa, o.bb = 2.0, Plain(), 3.0
o.aa.bb = 2.0
values = [2.0]
k = 2.0
array = np.array([1.0, 2.0], np.float32)
def helper(): return 2.0
"""

READS = [
    # Code, memory and what objects of C hold.
    ("", "helper()", "helper.__code__ = (lambda: 3.0).__code__"),
    ("class A:\n    def m(self): return 2.0\na = A()", "a.m()", "A.m.__code__ = (lambda self: 3.0).__code__"),
    ("d = collections.defaultdict(lambda: k)", "d.default_factory()", "d.default_factory = lambda: 9.0"),
    ("d = collections.defaultdict(lambda: k)", "d.default_factory()", "k = 9.0"),
    ("g = operator.attrgetter('aa.bb')", "g(o)", "o.aa.bb = 3.0"),
    ("o.m = lambda a: a[0]\ng = operator.methodcaller('m', values)", "g(o)", "values[0] = 3.0"),
    ("key = functools.cmp_to_key(lambda a, b: values[0] * (a - b))", "sorted([1, 2], key=key)[0]", "values[0] = -1"),
    ("b = (ctypes.c_float * 2)(1.0, 2.0)", "b[1]", "b[1] = 5.0"),
    ("b = ctypes.c_float(2.0)", "b.value", "b.value = 5.0"),
    # Names in texts and in classes.
    ("", "float('{o.v}'.format(o=o))", "o.v = 3.0"),
    ("text = '{o.v' + '}'", "float(text.format(o=o))", "o.v = 3.0"),
    ("", "inspect.getattr_static(o, chr(118))", "o.v = 3.0"),
    ("def f0(a: 2.0): pass", "f0.__annotations__['a']", "f0.__annotations__['a'] = 3.0"),
    ("", "len(Plain.__name__)", "Plain.__name__ = 'Other name'"),
    ("", "len(helper.__doc__ or '')", "helper.__doc__ = 'Some text'"),
    (
        "class P:\n    __match_args__ = ('xx',)\n    def __init__(self): setattr(self, 'x' + 'x', 2.0)\np = P()\n"
        "def read(q):\n    match q:\n        case P(u): return u",
        "read(p)",
        "setattr(p, 'x' + 'x', 3.0)",
    ),
    ("class B(abc.ABC): pass", "(2.0 if isinstance(o, B) else 3.0)", "B.register(Plain)"),
    ("", "len(Plain.__subclasses__())", "class Child(Plain): pass"),
    # What the type of an ndarray, its layout and its attributes tell.
    ("", "(2.0 if type(array) is np.ndarray else 3.0)", "array[0] = 5.0"),
    ("table = {np.ndarray: 2.0}", "table.get(type(array), 7.0)", "array[0] = 5.0"),
    ("", "len(type(array).__name__)", "array[0] = 5.0"),
    ("", "array.strides[0]", "array = np.ones(4, np.float32)[::2]"),
    ("", "(2.0 if array.flags.writeable else 3.0)", "array.setflags(write=False)"),
    ("class A(np.ndarray): pass\na = array.view(A)\na.s = 2.0", "a.s", "a.s = 3.0"),
    ("a = np.ma.array([1.0, 2.0], mask=[0, 1])", "float(a.sum())", "a.mask = [0, 0]"),
    ("a = np.ma.array([1.0, 2.0], mask=[0, 1])", "float(a.data[1])", "a.data[1] = 5.0"),
    # Python's own state.
    ("builtins.set_by_us = 2.0", "set_by_us", "builtins.set_by_us = 3.0"),
    ("sys.argv = ['a']", "len(sys.argv)", "sys.argv = ['a', 'b']"),
    ("os.environ['SET'] = '2'", "float(os.path.expandvars('$SET'))", "os.environ['SET'] = '3'"),
    ("os.environ['SET'] = '2'", "float(os.environb[b'SET'])", "os.environ['SET'] = '3'"),
]

REFUSED = [
    ("", "f.__globals__['k']"),
    ("", "(lambda: 0).__globals__[chr(107)]"),
    ("", "np.random.default_rng().random()"),
    ("make = np.random.default_rng", "make().random()"),
    ("", "random.Random().random()"),
    ("", "datetime.datetime.now().microsecond"),
    ("from datetime import datetime", "datetime.now().microsecond"),
    ("", "os.path.exists('/')"),
    ("", "pathlib.Path('/').exists()"),
    ("p = pathlib.Path('/')", "p.exists()"),
    ("s = io.StringIO('2')", "float(s.getvalue())"),
    ("", "np.loadtxt(io.StringIO('2'))"),
    ("", "threading.active_count()"),
    ("u = np.frompyfunc(lambda v: v * k, 1, 1)", "float(u(1.0))"),
]

ORDINARY = [
    """
class Model:
    def __init__(self):
        self.started, self.now, self.text = time.time(), datetime.datetime.now(), open(os.devnull)
        self.rng, self.path, self.log = np.random.default_rng(), pathlib.Path.cwd(), logging.getLogger("model")
        self.lock, self.thread, self.stream = threading.Lock(), threading.current_thread(), io.StringIO()
        self.k = 2.0
    def __repr__(self): return f"{type(self).__name__}({self.k})"
    def age(self): return time.time() - self.started
class Deep(Model):
    def __init__(self): super().__init__()
    def __call__(self, x):
        self.log.debug("shape %s", x.shape)
        print(x.shape, file=self.stream)
        return x * self.k * large * ag.asarray(large)
large = np.ones((600, 600, 1), np.float32)
f = Deep()
""",
    """
def f(x): return x * np.random.default_rng(0).normal() * len(f"{x.shape} {{}}")
""",
    """
def f(x): return x * (2.0 if isinstance(array, np.ndarray) and not isinstance(array, type) else 3.0) * large
large = np.ones((600, 600, 1), np.float32)
""",
]


def module(source: str) -> Any:
    made = ModuleType("hidden")
    sys.modules["hidden"] = made  # classes look their modules up there
    try:
        exec(compile(PRELUDE + source, __file__, "exec", dont_inherit=True), vars(made))
    finally:
        del sys.modules["hidden"]
    return made


def styled(read: str, seed: int) -> str:
    """A function that reads: by itself, in a method, in a function in a list."""
    return [
        f"def f(x): return x * {read}",
        f"class Reader:\n    def __call__(self, x): return x * {read}\nf = Reader()",
        f"def f(x): return x * [lambda: {read}][0]()",
    ][seed % 3]


@pytest.mark.parametrize("number", range(len(READS)))
def test_what_is_read_unseen_is_never_stale(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("SET", "1")
    monkeypatch.setattr(builtins, "set_by_us", 1.0, raising=False)
    setup, read, change = READS[number]
    for seed in Random(number).sample(range(3), 2):
        made = module(f"{setup}\n{styled(read, seed)}")
        compiled = JIT(made.f)
        x = ag.asarray(np.array([1.0, -2.0], np.float32))
        for statement in ["", change, ""]:
            exec(statement, vars(made))
            for _ in range(4):
                assert compiled(x).tolist() == made.f(x).tolist(), (statement, read)


@pytest.mark.parametrize(("setup", "read"), REFUSED)
def test_what_differs_at_each_call_is_refused(setup: str, read: str) -> None:
    for seed in range(3):
        made = module(f"{setup}\n{styled(read, seed).replace('f.__g', 'helper.__g')}")
        with pytest.raises(nablair.Error, match="jit: "):
            JIT(made.f)(ag.asarray([1.0]))


@pytest.mark.parametrize("source", ORDINARY)
def test_ordinary_code_is_taken(source: str) -> None:
    made = module(source)
    compiled, x = JIT(made.f), ag.asarray(np.array([1.0, -2.0], np.float32))
    for _ in range(4):
        np.testing.assert_allclose(compiled(x).numpy(), made.f(x).numpy(), rtol=1e-6)
    assert compiled.stats().compiles == 1
