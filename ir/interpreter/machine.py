"""The reference interpreter: what a module means, computed with NumPy.

    Interpreter(module).call("main", [x, y])    ->  list of results

It is for tests and for reading, never a tier of execution.  An op without regions and memory means what its class's
`evaluate` says; every other op has a handler, `handler(machine, op, env) -> results`, in the table `HANDLERS`, which
the modules that the rows of `ir.dialect` name fill when an op of the dialect is first met.

Values in `env`: a scalar is a NumPy scalar (index: int64, i1: bool), a vector or tensor an array, which nobody writes
to, a memref an array or a view of one, which stores write to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from ..builders.sizes import contradiction
from ..definition import TERMINATOR, Op
from ..diagnostics import Error, ShapeError
from ..dialect import dialect_of
from ..interfaces import Evaluates
from ..numeric import dtype
from ..operations import Operation, Region
from ..types import DYNAMIC, INDEX, MemRefType, ShapedType, Type
from ..values import Value
from .memory import InterpreterError, Memory, failed

Env = dict[Value, Any]
Results = Sequence[object] | None
"""Values of an op's results in their order; None for an op without results."""
Handler = Callable[["Interpreter", Any, Env], Results]
_O = TypeVar("_O", bound=Operation)

MAX_DEPTH = 100
"""Calls within calls; beyond it a program is taken to recurse without end."""

HANDLERS: dict[str, Handler] = {}
"""Op name -> its handler; None as the result stands for no results."""


def handler(
    *names: str,
) -> Callable[[Callable[[Interpreter, _O, Env], Results]], Callable[[Interpreter, _O, Env], Results]]:
    """Register the handler of ops."""

    def register(function: Callable[[Interpreter, _O, Env], Results]) -> Callable[[Interpreter, _O, Env], Results]:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


class Interpreter:
    """Runs the functions of a module.

    With `lanes` the points of a kernel are computed side by side, else one after the other as the definition says;
    the results are the same bit for bit.  `check` looks for reads of memory that nothing has written and for races
    between the threads of a block; `seed` runs the points of `scf.forall` in an order that it shuffles.
    """

    def __init__(self, module: Operation, lanes: bool = True, check: bool = False, seed: int | None = None) -> None:
        self.module = module
        self.lanes = lanes
        self.seed = seed
        self.memory = Memory(check, check)
        self.functions: dict[str, Operation] = {}
        for op in module.walk():
            symbol = getattr(op.properties.get("sym_name"), "value", None)
            # A kernel may have the name of the function that launches it, which is the one to be called.
            is_kernel = op.name == "gpu.func" and symbol not in self.functions
            if symbol is not None and (op.name == "func.func" or is_kernel):
                self.functions[symbol] = op
        self.depth = 0
        self.symbols: dict[str, int] = {}
        self._handlers: dict[type[Operation], Handler | None] = {}

    def call(self, name: str, arguments: Sequence[object] = ()) -> list[Any]:
        """The results of a function.

        Arguments are NumPy arrays and scalars, or Python numbers and lists; those of memref type must be arrays of the
        right dtype, which the function may write to.
        """
        import numpy as np

        function = self.functions.get(name)
        if function is None:
            known = ", ".join(sorted(self.functions)) or "none"
            raise InterpreterError(f"no function '@{name}' in the module; there are: {known}", self.module.location)
        body = function.regions[0]
        if not body.blocks:
            raise InterpreterError(f"'@{name}' is only declared, it has no body", function.location)
        types = [a.type for a in body.entry.arguments]
        if len(arguments) != len(types):
            raise InterpreterError(f"'@{name}' takes {len(types)} arguments, got {len(arguments)}", function.location)
        values = [self._argument(f"argument {i} of '@{name}'", v, t) for i, (v, t) in enumerate(zip(arguments, types))]
        with np.errstate(all="ignore"):
            return self.invoke(function, values)

    def invoke(self, function: Operation, values: Sequence[Any]) -> list[Any]:
        """Run the body of a function in an environment of its own, where symbols have the sizes of its arguments."""
        if self.depth >= MAX_DEPTH:
            raise InterpreterError(f"more than {MAX_DEPTH} calls within calls", function.location)
        saved, self.symbols = self.symbols, {}
        self.depth += 1
        try:
            region = function.regions[0]
            for argument, value in zip(region.entry.arguments, values):
                self._note_symbols(argument.type, value)
                if argument.type is INDEX and argument.name is not None:
                    self._note_size(argument.name, int(value))
            wrong = contradiction(self.symbols)
            if wrong is not None:
                raise ShapeError(f"the arguments contradict each other: {wrong}")
            return self.run(region, values, {})
        finally:
            self.depth -= 1
            self.symbols = saved

    def _note_symbols(self, type: Type, value: object) -> None:
        """Enter the sizes that the symbols of an argument's type stand for."""
        for name, extent in zip(getattr(type, "symbols", ()), getattr(value, "shape", ())):
            if name is not None:
                self._note_size(name, extent)

    def _note_size(self, name: str, extent: int) -> None:
        known = self.symbols.setdefault(name, extent)
        if known != extent:
            raise ShapeError(f"symbol '{name}' stands for {known} and for {extent}")

    def _argument(self, what: str, value: object, type: Type) -> object:
        """An argument as a value of its type."""
        import numpy as np

        if not isinstance(type, ShapedType):
            return dtype(type).type(value)
        array = np.asarray(value)
        wanted = dtype(type)
        if array.dtype != wanted:
            other_kind = hasattr(value, "dtype") and array.dtype.kind != wanted.kind
            if isinstance(type, MemRefType) or other_kind:
                raise InterpreterError(f"{what} must hold {wanted} for {type}, got {array.dtype}")
            array = array.astype(wanted)
        shape = array.shape
        if len(shape) != type.rank or any(n not in (DYNAMIC, s) for n, s in zip(type.shape, shape)):
            raise ShapeError(f"{what} must have the shape of {type}, got {shape}")
        return array

    def run(self, region: Region, arguments: Sequence[object], env: Env) -> list[Any]:
        """Run a region of one block on values of its arguments; the values of its terminator's operands."""
        block = region.entry
        env.update(zip(block.arguments, arguments, strict=True))
        op = block.first
        while op is not None:
            if TERMINATOR in op.traits and not op.regions:
                return [env[v] for v in op.operands]
            self.execute(op, env)
            op = op.next
        return []

    def execute(self, op: Operation, env: Env) -> None:
        """Run one op and bind its results."""
        try:
            found = self.handler(op)
            if found is not None:
                results = found(self, op, env)
            else:
                results = self.evaluate(op, [env[v] for v in op.operands])
        except Error:
            raise
        except Exception as error:
            raise failed(op, error) from error
        if results is not None:
            env.update(zip(op.results, results, strict=True))

    def handler(self, op: Operation) -> Handler | None:
        """The handler of an op's class; None where `evaluate` says all."""
        cls = type(op)
        if cls in self._handlers and isinstance(op, Op):
            return self._handlers[cls]
        found = HANDLERS.get(op.name)
        if found is None:
            dialect = dialect_of(op.name)
            if dialect is not None and dialect.meaning:
                import_module(dialect.meaning)
                found = HANDLERS.get(op.name)
        self._handlers[cls] = found
        return found

    def evaluate(self, op: Operation, operands: Sequence[Any]) -> list[Any]:
        """The results of an op that its class gives a meaning with `evaluate`."""
        if not isinstance(op, Evaluates):
            raise InterpreterError(f"'{op.name}' op has no meaning in the interpreter", op.location)
        found = op.evaluate(*operands)
        several = isinstance(found, list | tuple)
        return [found] if len(op.results) == 1 and not several else [*found]
