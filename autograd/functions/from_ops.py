"""Functions of the front-end that ops declare (`ir.declared.Api`), made from the declaration.

    tanh = function(Tanh)

is what one would write by hand:

    def tanh(x: ArrayLike, /) -> Tensor:
        '''The hyperbolic tangent. ..'''
        return emit("tanh", float_operand(x))

It is written as source and compiled, so that it costs no more at a call, names itself in errors and tracebacks, and has
the signature that it shows.
"""

from __future__ import annotations
import __future__

import linecache
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

from ...ir.attributes import DenseArrayAttr, FloatAttr, IntegerAttr, TypeAttr, UnitAttr
from ...ir.builders.methods import OpNames, method_of
from ...ir.declared import Api
from ...ir.definition import ONE, OPS, Enumeration, Op, Property
from ...ir.diagnostics import Error, shown
from ...ir.dialects.elementwise import Elementwise
from ...ir.location import caller_location
from ..array_like import ArrayLike, Axis, DTypeLike
from ..dtypes import as_dtype
from ..tensor import Tensor, copied
from ..trace import emit
from .array import flatten_axes, reshape
from .checks import flag, integer, integers, normal_axes, normal_axis, one_of, real
from .promotion import as_tensor, as_tensors, bool_operands, cast, chosen_operands, float_operand, operands


def element_of(dtype: DTypeLike) -> object:
    """The element type of a dtype; None for None."""
    return None if dtype is None else as_dtype(dtype).element


MODULE = f"{__package__}.declared"
"""Where the functions are found by their names, also by pickle."""

_NAMES: dict[str, Any] = {
    "__name__": MODULE,
    **{
        f.__name__: f
        for f in (
            as_dtype, as_tensor, as_tensors, bool_operands, cast, chosen_operands, copied, element_of, emit, flag,
            flatten_axes, float_operand, integer, integers, normal_axes, normal_axis, one_of, operands, real, reshape,
        )
    },
    "ArrayLike": ArrayLike, "Axis": Axis, "DTypeLike": DTypeLike, "Tensor": Tensor,
}  # fmt: skip
"""What the source of functions names."""

_FOLDER = Path(__file__).parent


class Parameter:
    """A parameter behind the arrays: its annotation, its default, and what the op is given for it."""

    def __init__(self, name: str, annotation: str, default: str | None, value: str, property: str | None = None):
        self.name = name
        self.text = f"{name}: {annotation}" + ("" if default is None else f" = {default}")
        self.given = f"{property or name}={value}"


def _parameter(cls: type[Op], api: Api, name: str) -> Parameter:
    """The parameter of a property, which is checked as its kind demands."""
    properties = cls.definition.properties
    if name == "axis" and "axes" in properties:
        return Parameter(name, "Axis", "None", "normal_axes(axis, x.ndim)", "axes")
    declared = properties.get(name)
    if declared is None:
        raise Error(f"{cls.name} declares the parameter '{name}' of ag.{api.name}, and has no such property")
    if name == "axis":
        optional = " | None" if api.default_axis is None else ""
        return Parameter(name, f"int{optional}", repr(api.default_axis), "normal_axis(axis, x.ndim)")
    annotation, value = _checked(declared, name)
    required = declared.default is None and not declared.optional
    return Parameter(name, annotation, None if required else repr(declared.default), value)


def _checked(declared: Property[Any], name: str) -> tuple[str, str]:
    """The annotation of a property's parameter, and what checks it."""
    kind = declared.kind
    if isinstance(declared, Enumeration):
        return "str", f"one_of({name!r}, {name}, {', '.join(map(repr, declared.names))})"
    if kind is UnitAttr or (kind is IntegerAttr and declared.description == "a bool"):
        return "bool", f"flag({name!r}, {name})"
    if kind is TypeAttr:
        return "DTypeLike | None", f"element_of({name})"
    several = "int | tuple[int, ...]"
    checks = {IntegerAttr: ("int", "integer"), FloatAttr: ("float", "real"), DenseArrayAttr: (several, "integers")}
    if kind not in checks:
        raise Error(f"there is no rule for the parameter '{name}', which is {declared.description}")
    annotation, check = checks[kind]
    return annotation, f"{check}({name!r}, {name})"


def array_names(cls: type[Op], api: Api) -> tuple[str, ...]:
    """The names of the arrays that a function takes."""
    fields = cls.definition.operands
    if any(f.arity != ONE for f in fields):
        raise Error(f"{cls.name} declares a function and takes operands that may be absent; write the function")
    names = [f.name for f in fields]
    if api.operands:
        return api.operands
    if len(names) == 1:
        return ("x",)
    numbered = iter(f"x{i}" for i in range(1, len(names) + 1))
    # What is no operand like the others keeps its name.
    return tuple([n if api.promote == "values" and i == 0 else next(numbered) for i, n in enumerate(names)])


def _arrays(api: Api, names: tuple[str, ...]) -> str:
    """The arrays as operands."""
    listed = ", ".join(names)
    match api.promote:
        case "float" if len(names) == 1:
            return f"float_operand({listed})"
        case "float":
            return f"*operands({listed}, floats=True)"
        case "bool":
            return f"*bool_operands({api.name!r}, {listed})"
        case "values":
            return f"*chosen_operands({api.name!r}, {listed})"
        case "same" if len(names) > 1:
            return f"*operands({listed})"
        case _:
            return f"as_tensor({listed})" if len(names) == 1 else f"*as_tensors({listed})"


def _body(cls: type[Op], api: Api, names: tuple[str, ...], parameters: list[Parameter]) -> Iterator[str]:
    """The lines of a function."""
    method = method_of(cls)
    arrays, properties = _arrays(api, names), cls.definition.properties
    given = {p.name: p.given for p in parameters}
    casts = "dtype" in api.keywords and "dtype" not in properties
    if casts or "axis" in given or api.promote == "stay":
        yield f"x = {arrays}"
        arrays = "x"
    if casts:
        yield "if dtype is not None:"
        yield "    x = cast(x, as_dtype(dtype))"
    if "axis" in given and "axes" not in properties and api.default_axis is None:
        keeps = "keepdims" in given
        rest = {**given, "axis": "axis=0", **({"keepdims": "keepdims=False"} if keeps else {})}
        yield "if axis is None:"
        yield f"    made = emit({method!r}, flatten_axes(x), {', '.join(rest.values())})"
        yield f"    return reshape(made, (1,) * x.ndim) if {_flag} else made" if keeps else "    return made"
    call = f"emit({', '.join([repr(method), arrays, *given.values()])})"
    if api.promote == "stay":
        yield f"return {call} if x.dtype.is_float else copied(x)"
    elif casts:
        yield f"made = {call}"
        yield "return made if dtype is None else cast(made, as_dtype(dtype))"
    else:
        yield f"return {call}"


_flag = "flag('keepdims', keepdims)"


def source(cls: type[Op]) -> str:
    """The function that an op declares, as Python would have it."""
    api = cls.api
    if api is None:
        raise Error(f"{cls.name} declares no function")
    names = array_names(cls, api)
    made: dict[str, Parameter | None] = {
        n: None if n == "dtype" and n not in cls.definition.properties else _parameter(cls, api, n)
        for n in (*api.options, *api.keywords)
    }
    head = [f"{n}: ArrayLike" for n in names]
    if not api.operands:
        head.append("/")
    for number, (name, parameter) in enumerate(made.items()):
        if number == len(api.options):
            head.append("*")
        head.append(f"{name}: DTypeLike | None = None" if parameter is None else parameter.text)
    parameters = [p for p in made.values() if p is not None]
    result = "Tensor" if len(cls.definition.results) == 1 else "tuple[Tensor, ...]"
    lines = [f"def {api.name}({', '.join(head)}) -> {result}:", *_body(cls, api, names, parameters)]
    return "\n    ".join(lines) + "\n"


def _dtype_name(found: re.Match[str]) -> str:
    """The dtype of an element type."""
    kinds = {"f": "float", "bf": "bfloat", "i": "int", "ui": "uint"}
    return kinds[found[0].rstrip("0123456789")] + found[1]


def docstring(cls: type[Op]) -> str:
    """What a function says of itself: the words of its op, in the names of its parameters, shapes and dtypes."""
    api = cls.api
    assert api is not None
    names, text = array_names(cls, api), api.doc or cls.__doc__ or ""
    if not api.doc:
        for field, name in zip(cls.definition.operands, names, strict=True):
            text = re.sub(rf"\b{field.name}\b", name, text)
        text = re.sub(r"\bi1\b", "bool", re.sub(r"\b(?:b?f|u?i)(8|16|32|64)\b", _dtype_name, text))
    said = [text.strip()]
    if issubclass(cls, Elementwise):
        said.append(
            "The result has the shape of x."
            if len(names) == 1
            else "Shapes broadcast as in NumPy; ShapeError where they do not."
        )
    parameters = (*api.options, *api.keywords)
    if "axis" in parameters:
        one = "the last one" if api.default_axis is not None else "that of the flattened array"
        default = f"the axis is {one}" if "axis" in cls.definition.properties else "all axes"
        said.append(f"By default {default}.")
        said.append("DTypeError for an axis that is not an integer, ShapeError for one that there is not.")
    said.append(
        {
            "same": "Their dtypes are promoted to one.",
            "float": "Integers and bools are taken as float32.",
            "stay": "Integers and bools stay what they are.",
            "none": "",
            "bool": "DTypeError for anything but bools.",
            "values": f"{' and '.join(names[1:])} take one dtype; DTypeError where {names[0]} has other than bools.",
        }[api.promote]
    )
    if "dtype" in parameters and "dtype" not in cls.definition.properties:
        said.append("The elements are cast to `dtype` before, and the result is of that dtype.")
    first, *others = said
    rest = fill("  ".join(filter(None, others)), 116, initial_indent="    ", subsequent_indent="    ")
    return f"{first}\n\n{rest}" if rest else first


_MADE: dict[type[Op], Callable[..., Any]] = {}


def function(cls: type[Op]) -> Callable[..., Any]:
    """The function of the front-end that an op declares by its `api`; that of a plugin's op is also found by its name,
    as an attribute of `autograd`.

    Error for an op that declares none, and for a declaration that does not fit the op."""
    if not (isinstance(cls, type) and issubclass(cls, Op)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Error(f"function: needs the class of an op, got {shown(cls)}", caller_location())
    if cls in _MADE:
        return _MADE[cls]
    text = source(cls)
    assert cls.api is not None
    file = str(_FOLDER / f"<{cls.name}>")
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec", __future__.annotations.compiler_flag, dont_inherit=True), _NAMES, scope)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    made = _MADE[cls] = scope[cls.api.name]
    made.__doc__ = docstring(cls)
    return made


_DECLARED = OpNames(lambda cls: cls.api.name if cls.api else None)


def declaring() -> dict[str, type[Op]]:
    """The ops that declare functions of the front-end, by the function's name."""
    return {function: OPS[name] for function, name in _DECLARED.find().items() if name in OPS}


def op_of(function: str) -> type[Op] | None:
    """The op that declares a function of this name."""
    return OPS.get(_DECLARED.find().get(function, ""))
