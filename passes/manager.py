"""The pass manager: runs passes in order, verifies between them, and explains what went wrong.

In: an operation (usually a `builtin.module`) and a pipeline such as

    canonicalize,cse,func.func(tile{sizes=8,16 fuse=true})

Out: the same operation, transformed in place; when a pass fails, the operation is as it was before the first pass.

A pass is a dataclass whose fields are its options:

    @dataclass
    class Tile(Pass):
        '''Tile loops.'''

        name: ClassVar = "tile"
        anchor: ClassVar = "func.func"
        sizes: tuple[int, ...] = ()

        def run(self, op: Operation) -> None: ...

In text an option is written with dashes (`max_ops` is `max-ops=8`), a bool alone means true, tuples have commas.
Options may be of type bool, int, float, str, a Literal of strings, a tuple of ints or strings, or one of them or None.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar

from ..ir.collector import without_collector
from ..ir.diagnostics import Error, PassError, Remark, origin
from ..ir.location import Location
from ..ir.operations import Operation
from .pipeline_parser import Nest, parse_pipeline
from .registry import PASS_CLASSES, suggest

ANY_OP = ""


@dataclass
class Pass:
    """Base of all passes.  `anchor` names the op that the pass runs on (`ANY_OP`: whatever it is put on)."""

    name: ClassVar[str] = ""
    anchor: ClassVar[str] = ANY_OP
    statistics: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False, compare=False)
    remarks: list[Remark] = field(default_factory=list[Remark], init=False, repr=False, compare=False)
    """What the pass had to say since the manager asked."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            PASS_CLASSES[cls.name] = cls

    def run(self, op: Operation) -> None:
        """Transform `op` in place."""
        raise NotImplementedError

    def count(self, statistic: str, amount: int = 1) -> None:
        """Add to a number that `--mlir-pass-statistics` shows."""
        self.statistics[statistic] = self.statistics.get(statistic, 0) + amount

    def remark(self, message: str, location: Location | None, severity: str = "remark") -> None:
        """Say something that is not an error, such as why what a schedule asks was not done."""
        self.remarks.append(Remark(f"pass '{self.name}' {message}", location, severity))

    @classmethod
    def options(cls) -> dict[str, Field[object]]:
        """The options by their name in text."""
        return {f.name.replace("_", "-"): f for f in fields(cls) if f.init}

    @classmethod
    def with_options(cls, texts: dict[str, str]) -> Pass:
        """A pass from option texts; PassError for an unknown option or a value that does not fit."""
        known = cls.options()
        values: dict[str, Any] = {}
        for key, text in texts.items():
            found = known.get(key.replace("_", "-"))
            if found is None:
                raise PassError(f"pass '{cls.name}' has no option '{key}'; {suggest(key, known)}")
            values[found.name] = _option_value(cls.name, key, _annotation(found), text)
        missing = [k for k, f in known.items() if f.name not in values and _default(f) is MISSING]
        if missing:
            raise PassError(f"pass '{cls.name}' needs the option '{missing[0]}'")
        return cls(**values)

    def given(self) -> Mapping[str, object]:
        """The options that differ from their defaults, by the names of their fields."""
        return {f.name: value for f in self.options().values() if (value := getattr(self, f.name)) != _default(f)}

    def __str__(self) -> str:
        """The pass in pipeline text: its name and the options that are given."""
        parts = [f"{name.replace('_', '-')}={_option_text(value)}" for name, value in self.given().items()]
        return f"{self.name}{{{' '.join(parts)}}}" if parts else self.name


def _default(option: Field[object]) -> object:
    return option.default if option.default_factory is MISSING else option.default_factory()


def _annotation(option: Field[object]) -> str:
    kind: object = option.type
    text = kind if isinstance(kind, str) else kind.__name__ if isinstance(kind, type) else str(kind)
    return text.removesuffix(" | None")


def _boolean(text: str) -> bool:
    return {"true": True, "1": True, "": True, "false": False, "0": False}[text.lower()]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.strip("[]").split(",") if item.strip()]


_CONVERTERS: dict[str, tuple[Callable[[str], object], str]] = {
    "bool": (_boolean, "true or false"),
    "int": (lambda t: int(t, 0), "an integer"),
    "float": (float, "a number"),
    "str": (str, "text"),
    "tuple[int, ...]": (lambda t: tuple(int(i, 0) for i in _items(t)), "integers separated by commas"),
    "tuple[str, ...]": (lambda t: tuple(_items(t)), "names separated by commas"),
}


def _option_value(owner: str, key: str, annotation: str, text: str) -> object:
    if annotation.startswith("Literal["):
        import ast

        choices = ast.literal_eval(annotation.removeprefix("Literal").join("()"))
        if text in choices:
            return text
        raise PassError(f"option '{key}' of pass '{owner}' is one of {', '.join(choices)}; got '{text}'")
    convert, expected = _CONVERTERS[annotation]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise PassError(f"option '{key}' of pass '{owner}' takes {expected}; got '{text}'") from None


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    text = str(value)
    return f'"{text}"' if not text or any(c.isspace() or c in "{}" for c in text) else text


class Instrumentation:
    """Sees every pass start and end; the base does nothing."""

    def start(self, op: Operation) -> None:
        """A pipeline is about to run on `op`."""

    def before(self, pass_: Pass, op: Operation) -> None:
        """`pass_` is about to run on `op`."""

    def after(self, pass_: Pass, op: Operation) -> None:
        """`pass_` ran on `op`."""

    def failed(self, pass_: Pass, op: Operation) -> None:
        """`pass_` raised; `op` is as the pass left it."""

    def remark(self, pass_: Pass, remark: Remark) -> None:
        """`pass_` had something to say."""

    def finish(self, passes: Sequence[Pass]) -> None:
        """The pipeline is done (or failed); `passes` are all of it in order."""


@dataclass
class PassManager:
    """A pipeline that is ready to run.

    `verify_each` checks the IR after every pass.  `restore` keeps a copy of the input, to put it back when a pass
    fails; a caller that drops the IR on failure may turn it off.  `reproducer` names a file that receives the input IR
    and the pipeline when a pass fails.  `warn`: what passes warn of becomes warnings of Python; off where an
    instrumentation shows it.
    """

    passes: list[Pass | Nest]
    anchor: str = "builtin.module"
    verify_each: bool = True
    restore: bool = True
    reproducer: str | None = None
    warn: bool = True
    instrumentations: list[Instrumentation] = field(default_factory=list[Instrumentation])

    @classmethod
    def parse(cls, text: str, **settings: Any) -> PassManager:
        """A manager from pipeline text, `builtin.module(...)` around it or not; PassError when it is malformed."""
        passes = parse_pipeline(text)
        anchor = "builtin.module"
        if len(passes) == 1 and isinstance(outer := passes[0], Nest) and outer.anchor == anchor:
            passes = outer.passes
        return cls(passes, anchor, **settings)

    def __str__(self) -> str:
        """The pipeline as text that `parse` reads."""
        return str(Nest(self.anchor, self.passes))

    def all_passes(self) -> Iterator[Pass]:
        """Every pass in order, nested ones too."""
        pending: list[Pass | Nest] = list(reversed(self.passes))
        while pending:
            item = pending.pop()
            if isinstance(item, Nest):
                pending += reversed(item.passes)
            else:
                yield item

    def run(self, op: Operation) -> None:
        """Run all passes on `op`, in place.

        Errors: PassError (or the pass's own `nablair.Error`, with a note that names the pass) when a pass raises or
        leaves invalid IR.  `op` is then as it was, if `restore` is on.
        """
        saved = op.clone() if self.restore or self.reproducer else None
        for instrumentation in self.instrumentations:
            instrumentation.start(op)
        try:
            self._run(self.passes, op)
        except BaseException as error:
            if saved is not None:
                if self.reproducer and isinstance(error, Error):
                    self._write_reproducer(saved, error)
                if self.restore:
                    _put_back(op, saved)
            raise
        finally:
            everything = list(self.all_passes())
            for instrumentation in self.instrumentations:
                instrumentation.finish(everything)

    def _run(self, passes: Sequence[Pass | Nest], op: Operation) -> None:
        for item in passes:
            anchor = item.anchor
            if isinstance(item, Nest):
                for child in _children(op, anchor):
                    self._run(item.passes, child)
            elif anchor in (ANY_OP, op.name):
                self._run_pass(item, op)
            else:
                children = _children(op, anchor)
                if not children and op.name != self.anchor:
                    raise PassError(f"pass '{item.name}' runs on {anchor}, not on {op.name}", op.location)
                for child in children:
                    self._run_pass(item, child)

    def _run_pass(self, pass_: Pass, op: Operation) -> None:
        for instrumentation in self.instrumentations:
            instrumentation.before(pass_, op)
        try:
            without_collector(pass_.run, op)
            if self.verify_each:
                _verify_after(pass_, op)
        except Exception as error:
            for instrumentation in self.instrumentations:
                instrumentation.failed(pass_, op)
            if isinstance(error, Error):
                if not any(n.message.startswith("in pass ") for n in error.notes):
                    error.note(f"in pass '{pass_}'").from_plugin(error)
                raise
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            failure = PassError(f"pass '{pass_}' failed on {_describe(op)}: {reason}", op.location)
            raise failure.note("raised here", origin(error)) from error
        for instrumentation in self.instrumentations:
            instrumentation.after(pass_, op)
        for remark in pass_.remarks:
            for instrumentation in self.instrumentations:
                instrumentation.remark(pass_, remark)
            if self.warn and remark.severity == "warning":
                warnings.warn(remark.render(), stacklevel=2)
        pass_.remarks.clear()

    def _write_reproducer(self, saved: Operation, error: Error) -> None:
        assert self.reproducer is not None
        try:
            with open(self.reproducer, "w", encoding="utf-8") as out:
                out.write(f"// configuration: --pass-pipeline='{self}'{' --verify-each' if self.verify_each else ''}\n")
                out.write(f"// note: {error.message.splitlines()[0]}\n{saved}\n")
        except OSError as problem:
            error.note(f"the reproducer could not be written to '{self.reproducer}': {problem.strerror}")
        else:
            error.note(f"to reproduce: ir-opt {self.reproducer} --pass-pipeline='{self}'")


def _children(op: Operation, anchor: str) -> list[Operation]:
    return [
        child for region in op.regions for block in region.blocks for child in block if anchor in ("any", child.name)
    ]


def _describe(op: Operation) -> str:
    symbol = op.properties.get("sym_name")
    return op.name if symbol is None else f"{op.name} @{getattr(symbol, 'value', symbol)}"


def _verify_after(pass_: Pass, op: Operation) -> None:
    from ..ir.verifier import verify  # late

    try:
        verify(op)
    except Error as error:
        message = f"the IR is invalid after pass '{pass_}': {error.message}"
        raise PassError(message, error.location, error.notes) from error


def _put_back(op: Operation, saved: Operation) -> None:
    """Give `op` the contents of its copy `saved`."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block:
                inner.drop_references()
    for region in saved.regions:
        region.parent = op
    op.regions, saved.regions = saved.regions, ()
    op.properties, op.attributes, op.location = saved.properties, saved.attributes, saved.location
    saved.drop_references()
