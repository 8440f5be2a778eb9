"""Functions drawn at random that read from outside in many ways, and changes of what they read.

A way to read is a container of a value: code that sets it up, an expression that reads it, and statements that change
it.  Ways nest: the value of one may be read through another.
"""

from __future__ import annotations

import itertools
import sys
from random import Random
from types import ModuleType
from typing import Any

PRELUDE = """
import dataclasses, enum, functools, operator, types, weakref
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from functools import partial
import numpy as np
from nablair import autograd as ag

Pair = namedtuple("Pair", "first second")

@dataclasses.dataclass
class Point:
    x: object
    y: object = 0

@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object

class Plain:
    def __init__(self, v): self.v = v

class Called:
    def __init__(self, v): self.v = v
    def __call__(self): return self.v
    def method(self): return self.helper()
    def helper(self): return self.v
    @property
    def prop(self): return self.v
    def __getitem__(self, i): return self.v
    def __len__(self): return 3
    def __getattr__(self, name):
        if name == "dynamic": return self.v
        raise AttributeError(name)

class Child(Called):
    pass

class Property(property): pass
class Ref(weakref.ref): pass
class Text(str): pass
class DoubledDict(dict):
    def __getitem__(self, key): return 1

class Slotted:
    __slots__ = ("v",)
    def __init__(self, v): self.v = v

class Descriptor:
    def __init__(self, v): self.v = v
    def __get__(self, instance, owner=None): return self.v
"""


class Draw:
    """The source of one function and the changes to what it reads."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.numbers = itertools.count()
        self.setup: list[str] = []
        self.changes: list[str] = []

    def name(self, stem: str) -> str:
        return f"{stem}{next(self.numbers)}"

    # Values: an expression for a new one, and how a reading becomes an operand.

    def value(self) -> tuple[Any, str]:
        """A function that gives the text of a new value, and the text of what is computed from it."""
        r = self.random
        number = lambda: r.choice(["2", "2.0", "True", "0.0", "-0.0", "1", "1.0", "3.5", "-4", "np.float32(2.5)", "7"])  # noqa: E731
        array = lambda: f"np.array([{r.randint(1, 9)}, {r.randint(1, 9)}.5], np.float32)"  # noqa: E731
        tensor = lambda: f"ag.asarray({array()})"  # noqa: E731
        return r.choice(
            [
                (number, "{}"),
                (number, "{}"),
                (array, "{}"),
                (array, "{}[0]"),
                (array, "float({}.max())"),
                (array, "x[:int({}[0]) % 3].sum_()"),
                (array, "ag.asarray(np.asarray({}) * 2)"),
                (array, "np.add({0}, {0})"),
                (array, "float(memoryview({})[1])"),
                (tensor, "{}"),
                (tensor, "ag.sum({})"),
                (lambda: r.choice(["'a'", "'bb'", "'ccc'"]), "len({})"),
                (lambda: f"frozenset([{r.choice(['1', '1.0', 'True', '5'])}])", "sum({})"),
                (lambda: r.choice(["(1, 2)", "(1.0, 2)", "(True, 2)", "(4, 5)"]), "{}[0]"),
                (lambda: r.choice(["{1: 2}", "{1.0: 2}", "{True: 2}", "{3: 4}"]), "(next(iter({})) + 1)"),
                (lambda: r.choice(["[1, 2]", "[2, 1]", "[1]", "[1, 2, 3.0]"]), "sum({})"),
            ]
        )

    def way(self, depth: int) -> tuple[str, list[str], Any, str]:
        """What reads a value, templates of statements that change it (`{}` is a new value), the values, their use."""
        new, use = self.value()
        if depth == 0:
            name = self.name("g")
            self.setup.append(f"{name} = {new()}")
            return name, [f"{name} = {{}}"], new, use
        inner, changes, new, use = self.way(depth - 1)
        return (*self.wrapped(inner, changes), new, use)

    def wrapped(self, inner: str, changes: list[str]) -> tuple[str, list[str]]:
        """The value of `inner` read through something else."""
        r, n = self.random, self.name
        kind = r.randrange(43)
        c = n("c")
        if kind < 13:
            made, read, write = [
                ("[{}, 0]", "{}[0]", "{}[0] = {{}}"),
                ("({}, 0)", "{}[0]", "{} = ({{}}, 0)"),
                ("{{'a': {}}}", "{}['a']", "{}['a'] = {{}}"),
                ("deque([{}])", "{}[0]", "{}[0] = {{}}"),
                ("Plain({})", "{}.v", "{}.v = {{}}"),
                ("Slotted({})", "{}.v", "{}.v = {{}}"),
                ("Point({})", "{}.x", "{}.x = {{}}"),
                ("Frozen({})", "{}.x", "object.__setattr__({}, 'x', {{}})"),
                ("Pair({}, 1)", "{}.first", "{} = Pair({{}}, 1)"),
                ("types.SimpleNamespace(k={})", "{}.k", "{}.k = {{}}"),
                ("OrderedDict(a={})", "{}['a']", "{}['a'] = {{}}"),
                ("([{}],)", "{}[0][0]", "{}[0][0] = {{}}"),
                ("types.MappingProxyType(dict(a={}))", "{}['a']", "{} = types.MappingProxyType(dict(a={{}}))"),
            ][kind]
            self.setup.append(f"{c} = {made.format(inner)}")
            return read.format(c), [write.format(c)]
        if kind < 22:
            cls = r.choice(["Called", "Child"])
            self.setup.append(f"{c} = {cls}({inner})")
            read = r.choice(
                [f"{c}()", f"{c}.method()", f"{c}.prop", f"{c}[1]", f"{c}.dynamic", f"getattr({c}, 'v')",
                 f"vars({c})['v']", f"operator.attrgetter('v')({c})", f"getattr({c}, chr(118))"]
            )  # fmt: skip
            return read, [f"{c}.v = {{}}"]
        if kind == 22:
            self.setup.append(f"class {c}:\n    v = {inner}")
            return r.choice([f"{c}.v", f"{c}().v"]), [f"{c}.v = {{}}"]
        if kind == 23:
            self.setup.append(f"class {c}b:\n    v = {inner}\nclass {c}({c}b): pass\n{c}i = {c}()")
            return f"{c}i.v", [f"{c}b.v = {{}}", f"{c}.v = {{}}", f"{c}i.v = {{}}"]
        if kind == 24:
            self.setup.append(f"{c}d = Descriptor({inner})\nclass {c}:\n    v = {c}d\n{c}i = {c}()")
            return f"{c}i.v", [f"{c}d.v = {{}}"]
        if kind == 25:
            self.setup.append(f"def {c}(): return {inner}")
            return r.choice([f"{c}()", f"[{c}][0]()", f"(lambda: {c}())()"]), changes
        if kind == 26:
            self.setup.append(f"{c} = [lambda: {inner}]")
            return f"{c}[0]()", changes
        if kind == 27:
            self.setup.append(f"def {c}(v={inner}): return v")
            return f"{c}()", [f"{c}.__defaults__ = ({{}},)"]
        if kind == 28:
            self.setup.append(f"def {c}(*, v={inner}): return v")
            return f"{c}()", [f"{c}.__kwdefaults__['v'] = {{}}"]
        if kind == 29:
            self.setup.append(f"{c}l = [{inner}]\n{c} = partial(lambda l: l[0], {c}l)")
            return f"{c}()", [f"{c}l[0] = {{}}"]
        if kind == 30:
            self.setup.append(f"{c} = partial(lambda v: v, v={inner})")
            return f"{c}()", [f"{c}.keywords['v'] = {{}}"]
        if kind == 31:
            self.setup.append(
                f"def {c}m():\n    v = {inner}\n    def get(): return v\n    def put(new):\n"
                f"        nonlocal v\n        v = new\n    return get, put\n{c}, {c}p = {c}m()"
            )
            return f"{c}()", [f"{c}p({{}})"]
        if kind == 32:
            self.setup.append(f"{c} = types.ModuleType('{c}')\n{c}.v = {inner}")
            return r.choice([f"{c}.v", f"getattr({c}, 'v')", f"vars({c})['v']"]), [f"{c}.v = {{}}"]
        if kind == 33:
            self.setup.append(f"{c} = OrderedDict(a={inner}, b={inner})")
            return f"next(iter({c}.values()))", [f"{c}['a'] = {{}}", f"{c}['b'] = {{}}; {c}.move_to_end('a')"]
        if kind == 34:
            made = r.choice(["partial(len)", "functools.lru_cache(len)", "property(len)", "Ref(Plain)", "lambda: 0"])
            self.setup.append(f"{c} = {made.replace('property', 'Property')}\n{c}.v = {inner}")
            return r.choice([f"{c}.v", f"vars({c})['v']"]), [f"{c}.v = {{}}", f"vars({c})['v'] = {{}}"]
        if kind == 35:
            self.setup.append(f"{c} = lambda: 0\n{c}v = {inner}")
            return f"getattr({c}, 'v', {c}v)", [f"{c}.v = {{}}", f"vars({c}).pop('v', {{}})"]
        if kind == 36:
            self.setup.append(f"{c} = ValueError({inner})")
            return f"{c}.args[0]", [f"{c}.args = ({{}},)"]
        if kind == 37:
            self.setup.append(f"{c} = partial(lambda v: v, {inner})")
            return f"{c}()", [f"{c}.__setstate__(({c}.func, ({{}},), {{{{}}}}, None))"]
        if kind == 38:
            self.setup.append(f"class {c}:\n    v = property(lambda self: {inner})\n{c}i = {c}()")
            return f"{c}i.v", [f"vars({c})['v'].__init__(lambda self: {{}})", f"{c}.v = property(lambda self: {{}})"]
        if kind == 39:
            self.setup.append(f"{c}u = UserDict(a={inner})\n{c} = types.MappingProxyType({c}u)")
            return f"{c}['a']", [f"{c}u['a'] = {{}}", f"{c}u.data = {{{{'a': {{}}}}}}"]
        if kind == 40:
            self.setup.append(f"{c} = DoubledDict(a={inner})\n{c}p = types.MappingProxyType({c})")
            return f"{c}p.get('a')", [f"{c}['a'] = {{}}"]
        if kind == 41:
            self.setup.append(f"{c} = {{'a': {inner}}}")
            return f"{{k: v for k, v in {c}.items() if type(k) is str}}.get('a', 5)", [
                f"{c}.clear(); {c}['a'] = {{}}", f"{c}.clear(); {c}[Text('a')] = {{}}",
            ]  # fmt: skip
        self.setup.append(
            f"def {c}w(f):\n    @functools.wraps(f)\n    def g(): return f()\n    return g\n"
            f"@{c}w\ndef {c}(): return {inner}\n{c}.factor = 1"
        )
        return f"{c}()", changes


class Program:
    """A module with a function `f(x)`, and statements to run in it between calls."""

    def __init__(self, seed: int) -> None:
        draw = Draw(seed)
        terms: list[str] = []
        self.changes: list[str] = []
        for _ in range(draw.random.randint(1, 3)):
            read, changes, new, use = draw.way(draw.random.choice([0, 1, 1, 2, 3]))
            used = use.replace("x[:int({}[0]) % 3].sum_()", "ag.sum(x[:int({}[0]) % 3])").format(read)
            terms.append(used)
            self.changes += [draw.random.choice(changes).format(new()) for _ in range(3)]
        draw.random.shuffle(self.changes)
        body = "x * 1.5"
        for term in terms:
            body = f"({body}) {draw.random.choice('*+-')} {term}"
        style = draw.random.randrange(4)
        lines = [f"def f(x):\n    return {body}"]
        if style == 1:
            lines = [f"class Model:\n    def __call__(self, x): return {body}\nf = Model()"]
        elif style == 2:
            lines = [f"def inner(x): return {body}\ndef f(x): return sum([g(x) for g in (inner,)])"]
        elif style == 3:
            lines = [f"f = partial(lambda a, x: {body}, 1)"]
        self.source = "\n".join([*draw.setup, *lines])
        self.module = ModuleType(f"drawn_{seed}")
        sys.modules[self.module.__name__] = self.module  # dataclasses look there
        try:
            exec(compile(PRELUDE + self.source, self.module.__name__, "exec"), vars(self.module))
        finally:
            del sys.modules[self.module.__name__]

    def change(self, statement: str) -> None:
        """Run a statement in the module."""
        exec(statement, vars(self.module))
