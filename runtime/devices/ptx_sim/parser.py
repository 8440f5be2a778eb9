"""PTX text -> kernels: parameters, declarations, and a flat list of instructions with their line numbers.

The reader knows the grammar (PTX ISA, section 4), not the instructions: opcode, modifiers and operands stay text.
Nested scopes are flattened by giving their registers names of their own. Debug directives are dropped.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from .faults import PtxSyntaxError
from .types import TYPES


@dataclass(frozen=True, slots=True)
class Instruction:
    line: int
    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter; `count` is 0 for a scalar, else the length of an array passed by value."""

    name: str
    type: str
    offset: int
    count: int = 0

    @property
    def size(self) -> int:
        return TYPES[self.type].size * max(self.count, 1)


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable of `space`; `size` in bytes, 0 for dynamic shared memory; `data` is its initial value."""

    name: str
    space: str
    align: int
    size: int
    data: bytes | None = None


@dataclass
class Kernel:
    name: str
    line: int
    parameters: dict[str, Parameter] = field(default_factory=dict)
    parameter_bytes: int = 0
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    max_threads: int | None = None
    required_block: tuple[int, int, int] | None = None


@dataclass
class Function(Kernel):
    """A device function; `parameters` and `results` are names that its body reads and writes in the param space."""

    results: list[str] = field(default_factory=list)


@dataclass
class ModuleText:
    version: str
    target: str
    kernels: dict[str, Kernel]
    functions: dict[str, Function]
    variables: dict[str, Variable]


_NAME = r"[A-Za-z_$%][\w$]*"
_DROPPED = re.compile(r"^[ \t]*\.(loc|file|pragma|version|target|address_size|alias)\b[^\n]*$", re.M)
_FUNCTION = re.compile(rf"\s*((?:\.(?:visible|weak|extern)\s+)*)\.(entry|func)\b\s*(?:\(([^)]*)\)\s*)?({_NAME})\s*")
_STATEMENT = re.compile(r"\s*(?:(?P<label>[\w$]+)\s*:(?!:)|(?P<brace>[{}])|(?P<text>[^;]+);)")
_VARIABLE = re.compile(
    rf"(?:\.(?:visible|weak|extern|common)\s+)*\.(shared|local|global|const)\s+(?:\.align\s+(\d+)\s+)?"
    rf"(?:\.v([24])\s+)?\.(\w+)\s+({_NAME})\s*((?:\[\s*\d*\s*\])*)\s*(?:=\s*(.*))?$",
    re.S,
)
_PARAMETER = re.compile(
    rf"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s*(?:\.(?:global|shared|const|local)\s*)?(?:\.align\s+\d+\s*)?)?"
    rf"({_NAME})\s*(?:\[\s*(\d+)\s*\])?$"
)


def parse(text: str) -> ModuleText:
    """Read PTX text. Raises PtxSyntaxError, which names the line."""
    version = re.search(r"^\s*\.version\s+([\d.]+)", text, re.M)
    target = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
    if version is None or target is None:
        raise PtxSyntaxError("a module begins with .version and .target", 1)
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731  (line numbers must survive)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = _DROPPED.sub("", text)
    module = ModuleText(version[1], target[1], {}, {}, {})
    position = 0
    while text[position:].strip():
        function = _FUNCTION.match(text, position)
        if function is not None:
            position = _parse_function(text, function, module)
            continue
        section = re.compile(r"\s*\.section\s+\S+\s*\{[^}]*\}").match(text, position)
        if section is not None:
            position = section.end()
            continue
        end = text.find(";", position)
        if end < 0:
            raise PtxSyntaxError("unexpected text", _line(text, position), text[position:].strip()[:60])
        variable = _variable(text[position:end].strip(), _line(text, position))
        module.variables[variable.name] = variable
        position = end + 1
    return module


def _line(text: str, position: int) -> int:
    blank = len(text[position:]) - len(text[position:].lstrip())
    return text.count("\n", 0, position + blank) + 1


def _parse_function(text: str, head: re.Match[str], module: ModuleText) -> int:
    line = _line(text, head.start())
    kernel = Kernel(head[4], line) if head[2] == "entry" else Function(head[4], line)
    position = head.end()
    if text[position : position + 1] == "(":
        close = text.index(")", position)
        _parameters(kernel, text[position + 1 : close], line)
        position = close + 1
    brace, semicolon = text.find("{", position), text.find(";", position)
    if brace < 0 or 0 <= semicolon < brace:
        return semicolon + 1
    _directives(kernel, text[position:brace])
    end = _body(kernel, text, brace + 1)
    if isinstance(kernel, Function):
        results = Kernel("", line)
        _parameters(results, head[3] or "", line)
        kernel.results = list(results.parameters)
        module.functions[kernel.name] = kernel
    else:
        module.kernels[kernel.name] = kernel
    return end


def _parameters(kernel: Kernel, text: str, line: int) -> None:
    offset = 0
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _PARAMETER.match(item)
        if match is None or match[2] not in TYPES:
            raise PtxSyntaxError("cannot read this parameter", line, item)
        align = int(match[1] or TYPES[match[2]].size)
        offset = -(-offset // align) * align
        parameter = Parameter(match[3], match[2], offset, int(match[4] or 0))
        kernel.parameters[parameter.name] = parameter
        offset += parameter.size
    kernel.parameter_bytes = offset


def _directives(kernel: Kernel, text: str) -> None:
    for name, values in re.findall(r"\.(maxntid|reqntid)\s+([\d\s,]+)", text):
        x, y, z = ([int(value) for value in values.split(",")] + [1, 1])[:3]
        if name == "maxntid":
            kernel.max_threads = x * y * z
        else:
            kernel.required_block = (x, y, z)


class _Scopes:
    """Register names by nested scope: an inner declaration hides an outer one and gets a name of its own."""

    def __init__(self) -> None:
        self.stack: list[dict[str, str]] = [{}]
        self.opened = 0

    def open(self) -> None:
        self.stack.append({})
        self.opened += 1

    def declare(self, name: str) -> str:
        unique = name if len(self.stack) == 1 else f"{name}.{self.opened}"
        self.stack[-1][name] = unique
        return unique

    def resolve(self, text: str) -> str:
        if len(self.stack) == 1:
            return text
        return re.sub(rf"(?<![\w$%]){_NAME}", lambda match: self.lookup(match[0]), text)

    def lookup(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self.stack) if name in scope), name)


def _body(kernel: Kernel, text: str, position: int) -> int:
    """Read statements up to the closing brace; returns the position after it."""
    scopes = _Scopes()
    line, counted = _line(text, position), position
    while True:
        match = _STATEMENT.match(text, position)
        if match is None:
            raise PtxSyntaxError(f"the body of `{kernel.name}` does not end", kernel.line)
        kind = match.lastgroup
        assert kind is not None
        start = match.start(kind)
        line, counted = (
            (_line(text, start), start) if counted == position else (line + text.count("\n", counted, start), start)
        )
        position = match.end()
        if kind == "label":
            kernel.labels[match["label"]] = len(kernel.instructions)
        elif match["brace"] == "{":
            scopes.open()
        elif match["brace"] == "}":
            scopes.stack.pop()
            if not scopes.stack:
                return position
        else:
            _statement(kernel, scopes, match["text"].strip(), line)


def _statement(kernel: Kernel, scopes: _Scopes, text: str, line: int) -> None:
    if text.startswith(".reg"):
        match = re.match(r"\.reg\s+\.(\w+)\s+(.*)$", text, re.S)
        if match is None or match[1] not in TYPES:
            raise PtxSyntaxError("cannot read this register declaration", line, text)
        for name in (part.strip() for part in match[2].split(",")):
            many = re.match(r"(.*)<(\d+)>$", name)
            for one in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name]:
                kernel.registers[scopes.declare(one)] = match[1]
    elif re.match(r"\.(?:extern\s+\.|visible\s+\.)?(shared|local|const|global)\b", text):
        variable = _variable(text, line)
        kernel.variables[variable.name] = variable
    elif text.startswith(".param"):
        # The argument of a call: memory that the caller and the callee share, so a local variable where it is expanded.
        match = _PARAMETER.match(text)
        if match is None or match[2] not in TYPES:
            raise PtxSyntaxError("cannot read this parameter", line, text)
        size = TYPES[match[2]].size
        name = scopes.declare(match[3])
        kernel.variables[name] = Variable(name, "local", int(match[1] or size), size * int(match[4] or 1))
    elif not text.startswith("."):
        kernel.instructions.append(_instruction(scopes, text, line))


def _instruction(scopes: _Scopes, text: str, line: int) -> Instruction:
    text = " ".join(text.split())
    match = re.match(rf"(?:@(!?)\s*({_NAME})\s+)?([a-z]\w*)((?:\.[\w:]+)*)(?:\s+(.*))?$", text)
    if match is None:
        raise PtxSyntaxError("cannot read this instruction", line, text)
    modifiers = tuple(part.split("::")[0] if part.endswith("::cta") else part for part in match[4].split(".")[1:])
    operands = re.findall(r"\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|[^,\s][^,]*", scopes.resolve(match[5] or ""))
    guard = scopes.resolve(match[2]) if match[2] else None
    return Instruction(
        line, text, match[3], modifiers, tuple(part.strip() for part in operands), guard, match[1] == "!"
    )


def _variable(text: str, line: int) -> Variable:
    match = _VARIABLE.match(text)
    if match is None or match[4] not in TYPES:
        raise PtxSyntaxError("cannot read this declaration", line, text)
    element = TYPES[match[4]]
    lengths = re.findall(r"\[\s*(\d*)\s*\]", match[6])
    count = int(match[3] or 1)
    for length in lengths:
        count *= int(length or 0)
    align = int(match[2] or element.size * int(match[3] or 1))
    data = None if match[7] is None else _initial(match[7], element.name, count, line)
    return Variable(match[5], match[1], align, count * element.size, data)


def _initial(text: str, type_name: str, count: int, line: int) -> bytes:
    values = [part.strip() for part in re.sub(r"[{}]", " ", text).split(",") if part.strip()]
    try:
        raw = b"".join(immediate_bytes(value, type_name) for value in values)
    except ValueError:
        raise PtxSyntaxError("cannot read this initial value", line, text[:60]) from None
    return raw.ljust(count * TYPES[type_name].size, b"\0")


def immediate_bytes(text: str, type_name: str) -> bytes:
    """Little-endian bytes of a literal as a value of that type. Raises ValueError for what is not a literal."""
    kind = TYPES[type_name]
    negative = text.startswith("-")
    body = text.lstrip("+-").strip()
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", body):
        value: float | int = struct.unpack(">f", bytes.fromhex(body[2:]))[0]
        if kind.kind != "f" and not negative:
            return int(body[2:], 16).to_bytes(4, "little")[: kind.size].ljust(kind.size, b"\0")
    elif re.fullmatch(r"0[dD][0-9a-fA-F]{16}", body):
        value = struct.unpack(">d", bytes.fromhex(body[2:]))[0]
        if kind.kind != "f" and not negative:
            return int(body[2:], 16).to_bytes(8, "little")[: kind.size].ljust(kind.size, b"\0")
    elif re.fullmatch(r"\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", body):
        value = float(body)
    else:
        digits = body.rstrip("U")
        octal = re.fullmatch(r"0[0-7]+", digits)
        value = int(digits, 8 if octal else 0)
    value = -value if negative else value
    if kind.kind == "f":
        # A hexadecimal float is exact in its own width, NaN payload included; only its sign may have been changed.
        exact = {"f32": "0f", "f64": "0d"}.get(type_name)
        if exact is not None and body[:2].lower() == exact and not negative:
            return int(body[2:], 16).to_bytes(kind.size, "little")
        return kind.dtype.type(value).tobytes()
    if isinstance(value, float):
        raise ValueError(text)
    return (value & ((1 << kind.bits) - 1)).to_bytes(kind.size, "little")
