"""Writes what follows from op classes: the stubs of builder methods and front-end functions, and docs/ops.md.

    python -m nablair.tools.stubs                       write those of the repository
    python -m nablair.tools.stubs --check               exit status 1 where they are not what this would write
    python -m nablair.tools.stubs --plugin FILE         print the stubs of a plugin's ops

A method takes the op's operands (a number where a tensor operand of the same type may stand) and its properties by
name.  A stub hides the module beside it from the type checker, so each of them speaks of nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from ..ir.attributes import DenseArrayAttr, FloatAttr, IntegerAttr, StringAttr, TypeAttr, UnitAttr
from ..ir.builders.methods import op_class
from ..ir.definition import MANY, ONE, OPS, OPTIONAL, Enumeration, Op, OperandField, Property
from ..ir.dialect import BUILT_IN, at_level
from ..ir.support.tensor_op import TensorOp
from .catalogue import ops_page

ROOT = Path(__file__).resolve().parents[1]
NOTE = "Written by tools/stubs.py from the op classes; `make lint` checks that it is current."

METHODS = f'''"""{NOTE}"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ..support.tensor_op import TensorOp
from ..types import Type

V = TypeVar("V")

class OpMethods(Generic[V]):
    def apply(self, cls: type[TensorOp], *operands: Any, **properties: Any) -> Any: ...
'''

TYPES = {
    DenseArrayAttr: "Sequence[int]",
    FloatAttr: "float",
    UnitAttr: "bool",
    StringAttr: "str",
    TypeAttr: "Type",
}
"""What is given for properties, by the kind of the attribute."""


def property_parameter(name: str, declared: Property[object]) -> str:
    """A property as a parameter."""
    type = TYPES.get(declared.kind, "Attribute")
    if declared.kind is IntegerAttr:
        type = "str" if isinstance(declared, Enumeration) else "bool" if declared.description == "a bool" else "int"
    if not declared.optional:
        return f"{name}: {type}"
    return f"{name}: {type} = ..." if declared.default is not None else f"{name}: {type} | None = ..."


def operand_parameter(field: OperandField, tensor: str) -> str:
    """An operand as a parameter; a number may stand where another operand says the element type."""
    if field.arity == MANY:
        return f"{field.name}: Sequence[{tensor}]"
    return f"{field.name}: {tensor} | None = ..." if field.arity == OPTIONAL else f"{field.name}: {tensor}"


def result_type(cls: type[Op], tensor: str) -> str:
    """What a method gives."""
    results = cls.definition.results
    if any(f.arity != ONE for f in results):
        return f"tuple[{tensor}, ...]"
    return tensor if len(results) == 1 else f"tuple[{', '.join([tensor] * len(results))}]"


def summary(text: str | None) -> str:
    """The first sentence of a docstring as one line of a stub, in quotes."""
    first = " ".join((text or "").partition("\n\n")[0].split()).replace("\\", "\\\\")
    return f'"""{first}"""'


def method(cls: type[Op], tensor: str) -> str:
    """The stub of an op's method."""
    definition = cls.definition
    given = tensor if len(definition.operands) == 1 else f"{tensor} | float"
    parts = ["self", *[operand_parameter(f, given) for f in definition.operands]]
    if definition.properties:
        parts += ["*", *[property_parameter(n, p) for n, p in definition.properties.items()]]
    name = cls.name.partition(".")[2]
    return f"    def {name}({', '.join(parts)}) -> {result_type(cls, tensor)}:\n        {summary(cls.__doc__)}\n"


def known_ops() -> list[type[Op]]:
    """The tensor-level ops that are known now."""
    for dialect in at_level("tensor"):
        dialect.load()
    return [cls for cls in OPS.values() if issubclass(cls, TensorOp)]


def built_in_ops() -> list[type[Op]]:
    """Our own of them."""
    return [cls for cls in known_ops() if cls.name.partition(".")[0] in BUILT_IN]


def method_stubs(ops: Iterable[type[Op]], tensor: str) -> list[str]:
    """The stubs of those ops that have methods by their names, in the order of the names."""
    from ..ir.builders.tensor import TensorBuilder  # late

    named = {cls.name.partition(".")[2]: cls for cls in ops}
    return [
        method(cls, tensor)
        for name, cls in sorted(named.items())
        if name not in vars(TensorBuilder) and op_class(name) is cls
    ]


def methods_stub() -> str:
    """`ir/builders/op_methods.pyi`."""
    methods = "".join(f"\n{stub}" for stub in method_stubs(built_in_ops(), "V"))
    uses = "from ..attributes import Attribute\n" if "Attribute" in methods else ""
    return METHODS.replace("from ..support", f"{uses}from ..support", 1) + methods


def function_stub(cls: type[Op]) -> str:
    """The stub of the function that an op declares."""
    from ..autograd.functions.from_ops import docstring, source  # late

    return f"{source(cls).splitlines()[0]}\n    {summary(docstring(cls))}\n"


def declared(ops: Iterable[type[Op]]) -> dict[str, type[Op]]:
    """Those ops that declare functions, by the functions' names, in their order."""
    return {name: cls for name, cls in sorted((cls.api.name, cls) for cls in ops if cls.api)}


def functions_stub() -> str:
    """`autograd/functions/declared.pyi`."""
    head = f'"""{NOTE}"""\n\nfrom ..array_like import ArrayLike, Axis, DTypeLike\nfrom ..tensor import Tensor\n'
    return head + "".join(f"\n{function_stub(cls)}" for cls in declared(built_in_ops()).values())


def imports(module: str, names: Iterable[str]) -> str:
    """Names that a stub passes on."""
    return f"from {module} import (\n" + "".join(f"    {n} as {n},\n" for n in sorted(names)) + ")\n"


def package_stub() -> str:
    """`autograd/functions/__init__.pyi`."""
    from ..autograd import functions  # late

    functions.names()
    modules: dict[str, list[str]] = {"declared": list(declared(built_in_ops()))}
    for name, function in functions.PUBLIC.items():
        modules.setdefault(function.__module__.rpartition(".")[2], []).append(name)
    modules.update(from_ops=["function"], indexing=["getitem", "with_item"], promotion=["cast"], public=["PUBLIC"])
    head = f'"""{NOTE}"""\n\nfrom collections.abc import Callable\nfrom typing import Any\n\n'
    tail = (
        "\ndef names() -> list[str]: ...\ndef find(name: str) -> Callable[..., Any] | None: ...\n"
        "def is_ours(name: str) -> bool: ...\n"
    )
    return head + "".join(imports(f".{m}", names) for m, names in sorted(modules.items())) + tail


def front_stub() -> str:
    """`autograd/__init__.pyi`."""
    from .. import autograd as ag  # late

    known = vars(ag)
    functions = [*ag.functions.PUBLIC, *declared(built_in_ops())]
    modules: dict[str, list[str]] = {"functions": functions}
    for name, module in known["_PLACES"].items():
        modules.setdefault(module, []).append(name)
    modules["dtypes"].remove("bool")
    head = f'"""{NOTE}"""\n\n' + imports(".", [*known["_MODULES"], *known["_INNER_MODULES"]])
    listed = "".join(imports(f".{m}", names) for m, names in sorted(modules.items()))
    constants = "".join(f"{n}: {'None' if known[n] is None else 'float'}\n" for n in known["_CONSTANTS"])
    return f"{head}{listed}\n{constants}bool: DType\n__all__: list[str]\n"


WRITERS = {
    "ir/builders/op_methods.pyi": methods_stub,
    "autograd/functions/declared.pyi": functions_stub,
    "autograd/functions/__init__.pyi": package_stub,
    "autograd/__init__.pyi": front_stub,
    "docs/ops.md": ops_page,
}
"""What writes each file of the repository."""


def plugin_stub(file: str) -> str:
    """The stub of a plugin's ops: a builder with their methods, and their functions."""
    from .ir_opt import load_plugin  # late

    before = set(known_ops())
    load_plugin(file)
    ops = [cls for cls in known_ops() if cls not in before]
    head = (
        "from collections.abc import Sequence\nfrom typing import Any\n\nfrom nablair.autograd import Tensor\n"
        "from nablair.autograd.array_like import ArrayLike, Axis, DTypeLike\n"
        "from nablair.ir.attributes import Attribute\nfrom nablair.ir.builders.tensor import TensorBuilder\n"
        "from nablair.ir.types import Type\nfrom nablair.ir.values import Value\n\nclass Builder(TensorBuilder):\n"
    )
    methods = "\n".join(method_stubs(ops, "Value")) or "    pass\n"
    return head + methods + "".join(f"\n{function_stub(cls)}" for cls in declared(ops).values())


def main(arguments: list[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="stubs", description="Write the stubs that follow from op classes.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a stub is not current")
    parser.add_argument("--plugin", metavar="FILE", help="print the stubs of a plugin's ops")
    given = parser.parse_args(arguments)
    if given.plugin:
        print(plugin_stub(given.plugin), end="")
        return 0
    made = {ROOT / name: write() for name, write in WRITERS.items()}
    old = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in old:
        if given.check:
            print(f"{path.relative_to(ROOT)} is not current: run python -m nablair.tools.stubs", file=sys.stderr)
        else:
            path.write_text(made[path])
    return int(given.check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
