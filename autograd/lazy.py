"""Eager ops: recorded at once, computed when a value is needed, compiled once for each structure of a chain.

An op checks shapes and dtypes and adds a node to the graph.  A value that is read (or a graph of `LIMIT` nodes) makes a
*plan*: the nodes it needs as one function, which also gives whatever else of them a Tensor still shows.  Plans are kept
by structure, so a chain compiles once.  Its sizes are

    collapsed    elementwise ops on Tensors of one shape (and scalars): every array is seen as tensor<?xf32, ["n"]>
    symbolic     each extent becomes a symbol, equal extents equal symbols; 0 and 1 stay numbers, so that nothing
                 unknown is ever stretched: a new shape compiles nothing unless other extents coincide in it.  Where ops
                 hold sizes themselves (reshape, broadcast, slice, pad, concat, arange ..), these, and where slices and
                 paddings start, are index arguments of the plan
    static       a call of a compiled function, which has its own sizes, and sums of many updates at places from data:
                 one plan for each shape

Python numbers in eager ops are inputs of the plan rather than constants, apart from small whole numbers and 0.5: a
learning rate that changes compiles nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ReferenceType, ref

import numpy as np

from ..ir.attributes import scalar_attr
from ..ir.bounded_cache import BoundedCache
from ..ir.builders.methods import op_class
from ..ir.builders.tensor import TensorBuilder
from ..ir.definition import ON_REDEFINITION
from ..ir.diagnostics import Error
from ..ir.dialects import builtin, func
from ..ir.dialects.elementwise import Elementwise
from ..ir.dialects.linalg.indexing import MANY, Adding, Reading
from ..ir.forking import PLANNER
from ..ir.support.shapes import Dims, reassociation, tensor_type
from ..ir.support.tensor_op import ResultTyped
from ..ir.types import INDEX, TensorType, Type
from ..ir.values import Value
from .abstract import AbstractValue
from .context import at_caller
from .graph import Lazy, Node, ancestors, replay

if TYPE_CHECKING:
    from ..runtime.executable import Executable

LIMIT = 64
"""How many nodes wait before they are computed anyway."""

OFTEN = 8
"""After how many runs a plan gets a native entry, which costs a compilation and saves some 20 us a run."""

PLANS = 1024
"""How many plans are kept; the one not used for longest goes first."""

T = TypeVar("T")


@dataclass
class EagerStatistics:
    """`ops` recorded, `runs` of plans, `compiles`: plans that were made (the rest of the runs found theirs)."""

    ops: int = 0
    runs: int = 0
    compiles: int = 0


STATISTICS = EagerStatistics()
"""The counts of this process, of `backward` too."""


def eager_stats() -> EagerStatistics:
    """A copy of the counts of eager ops and of the plans that computed them."""
    return EagerStatistics(STATISTICS.ops, STATISTICS.runs, STATISTICS.compiles)


class _Pending(threading.local):
    """The values of this thread that wait."""

    def __init__(self) -> None:
        self.values: list[ReferenceType[Lazy]] = []


_pending = _Pending()


def record(node: Node, avals: Sequence[AbstractValue]) -> list[Lazy]:
    """The results of a node as values to be computed later."""
    STATISTICS.ops += 1
    results = [Lazy(aval, None, node, i) for i, aval in enumerate(avals)]
    node.results = [ref(r) for r in results]
    values = _pending.values
    values += node.results
    if len(values) > LIMIT:
        alive = [v for r in values if (v := r()) is not None and v.value is None]
        values[:] = [ref(v) for v in alive]
        if len(alive) > LIMIT:
            values[:] = [ref(v) for v in results]
            # What was just recorded has no Tensor yet: it waits.
            shown = [v for v in alive if v.live_tensor() is not None]
            for device in dict.fromkeys(v.aval.device for v in shown):
                evaluate([v for v in shown if v.aval.device == device])
    return results


def evaluate(wanted: Sequence[Lazy]) -> None:
    """Compute values, and whatever on the way to them a Tensor shows."""
    wanted = [v for v in wanted if v.value is None]
    if not wanted:
        return
    nodes = ancestors(wanted, lambda v: v.value is None)
    if any(n.method == "reshape" for n in nodes):
        for node in nodes:
            if node.method == "reshape":
                _regroup(node)
        wanted = [v for v in wanted if v.value is None]
        if not wanted:
            return
        nodes = ancestors(wanted, lambda v: v.value is None)
    graph = Graph(nodes)
    outputs = dict.fromkeys(wanted)
    for node in nodes:
        for reference in node.results:
            value = reference()
            if value is not None and value.value is None and value.live_tensor() is not None:
                outputs[value] = None
    results = list(outputs)
    references = tuple([graph.number(v) for v in results])
    try:
        arrays = run_plan(graph, references, [v.aval.shape for v in results], wanted[0].aval.device)
    except Error as error:
        at_caller(error, [v.aval for v in results])
        raise
    for value, array in zip(results, arrays, strict=True):
        materialize(value, array)


def _regroup(node: Node) -> None:
    """Let the result of a reshape be the array of its operand under another shape, where that is known, or where the
    subscripts of its elements are quotients by sizes, which cost more than an array in between."""
    (source,), dims = node.operands, dict(node.properties)["dims"]
    value = node.results[0]()
    if source.value is None and _divides(source.aval.shape, dims):
        evaluate([source])
    if value is not None and value.value is None and source.value is not None:
        materialize(value, source.value.reshape(dims))


@lru_cache(maxsize=1024)
def _divides(old: Dims, new: Dims) -> bool:
    """Whether a reshape joins axes whose extents are symbols."""
    named = [tuple([d if d in (0, 1) else f"n{d}" for d in dims]) for dims in (old, new)]
    return any(len(mine) > 1 for mine, _ in reassociation(*named) or ())


def materialize(value: Lazy, array: Any) -> None:
    """Give a value its array; without gradients to come, what it was computed from may go."""
    value.value = array
    if not value.aval.requires_grad:
        value.node = None
    tensor = value.live_tensor()
    if tensor is not None:
        tensor._value = array


class Graph:
    """Nodes and their inputs, numbered: the structure that plans are kept by."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.inputs: list[Lazy] = []
        self._places = {node: i for i, node in enumerate(nodes)}
        self._inputs: dict[Lazy, int] = {}
        self.structure = tuple([(n.signature(), tuple([self.number(v) for v in n.operands])) for n in nodes])

    def number(self, value: Lazy) -> tuple[int, int]:
        """(-1, number of the input), or (number of the node, number of its result)."""
        node = value.node
        place = None if node is None else self._places.get(node)
        if place is not None:
            return place, value.index
        known = self._inputs.get(value)
        if known is None:
            known = self._inputs[value] = len(self.inputs)
            self.inputs.append(value)
        return -1, known


Reference = tuple[int, int]


def build(
    graph_structure: Sequence[tuple[tuple[Any, ...], tuple[Reference, ...]]],
    types: Sequence[TensorType],
    locations: Sequence[Any],
    visit: Callable[[int, TensorBuilder, tuple[Value, ...]], tuple[Value, ...]] | None = None,
    names: Sequence[str] = (),
) -> tuple[func.Func, Callable[[Reference], Value]]:
    """A function @main (without a return yet) of nodes on inputs of these types and on index values of these names, and
    how to find its values.

    `visit(node's number, builder, results)` may replace the results of a node."""
    function = func.Func.of("main", [*types, *[INDEX] * len(names)], [])
    for argument, name in zip(function.arguments[len(types) :], names, strict=True):
        argument.name = name
    b = TensorBuilder(function.entry)
    results: list[tuple[Value, ...]] = []

    def find(reference: Reference) -> Value:
        place, index = reference
        return function.arguments[index] if place < 0 else results[place][index]

    for number, ((signature, operands), location) in enumerate(zip(graph_structure, locations, strict=True)):
        b.location = location
        made = replay(b, signature, [find(r) for r in operands])
        results.append(made if visit is None else visit(number, b, made))
    return function, find


def finish(function: func.Func, values: Iterable[Value]) -> builtin.Module:
    """The module of a function that returns these values."""
    TensorBuilder(function.entry).create(func.Return, list(values))
    function.update_type()
    return builtin.Module.of([function])


class EagerProgram:
    """A compiled graph; `collapsed`: arrays are handed over flat.  One that runs often gets a native entry."""

    def __init__(self, executable: Executable, collapsed: bool) -> None:
        self.executable = executable
        self.collapsed = collapsed
        self.runs = 0
        self.entry: Any = None
        self.empty: Any = None

    def run(self, arrays: list[Any], shapes: Sequence[Dims]) -> list[Any]:
        """The outputs, which have these shapes."""
        if self.collapsed:
            arrays = [a.reshape(-1) if a.ndim else a for a in arrays]
        self.runs += 1
        if self.runs == OFTEN:
            self.entry = self._native_entry()
        if self.entry is not None:
            empty = self.empty
            found = [empty(s, d) for s, d in zip(shapes, self.executable.output_dtypes, strict=True)]
            flat = [a.reshape(-1) if a.ndim else a for a in found] if self.collapsed else found
            if self.entry(*arrays, *flat) is None:
                return found
        found = self.executable.run(arrays)
        return [a.reshape(s) for a, s in zip(found, shapes, strict=True)] if self.collapsed else found

    def _native_entry(self) -> object:
        from ..runtime.memory import shared_memory  # late

        self.empty = shared_memory().empty
        count = len(self.executable.inputs)
        return self.executable.native_entry(None, ["array"] * count, [None] * count)


_plans: BoundedCache[EagerProgram] = BoundedCache(PLANS, PLANNER)
_exact: BoundedCache[tuple[EagerProgram, tuple[Any, ...]]] = BoundedCache(PLANS)
"""The plans of graphs with all their sizes, and the numbers that they take, which need not be looked for again."""
ON_REDEFINITION.extend([_plans.clear, _exact.clear])


def run_plan(graph: Graph, outputs: tuple[Reference, ...], shapes: Sequence[Dims], device: str) -> list[Any]:
    """Compute outputs (of these shapes) of a graph, by a plan that is known or made now."""
    exact = (graph.structure, tuple([v.aval for v in graph.inputs]), outputs, device)
    found = _exact.get(exact)
    if found is None:
        form = symbolize_shapes(graph)
        found = _exact.put(exact, (_plan(graph, form, outputs, device), form.numbers))
    plan, numbers = found
    STATISTICS.runs += 1
    return plan.run([*[v.value for v in graph.inputs], *numbers], shapes)


def _plan(graph: Graph, form: Form, outputs: tuple[Reference, ...], device: str) -> EagerProgram:
    """The plan of a form, known or made now."""
    from ..runtime.compile import compile_function  # late

    def make() -> EagerProgram:
        locations = [n.location for n in graph.nodes]
        function, find = build(form.structure, form.types, locations, names=form.names)
        module = finish(function, [find(r) for r in outputs])
        STATISTICS.compiles += 1
        return EagerProgram(compile_function(module, device=device), form.collapsed)

    return _plans.get_or_make((form.structure, form.types, form.names, outputs, device), make)


def kinds(nodes: Sequence[Node]) -> set[str]:
    """What ops there are; a constant with axes has its sizes in its value, and goes by another name."""
    return {"filled" if _is_filled(n) else n.method for n in nodes}


@cache
def _is_elementwise(method: str) -> bool:
    """Whether a method means the same on arrays that were made flat."""
    cls = op_class(method)
    return method == "constant" or (cls is not None and issubclass(cls, Elementwise))


@cache
def _is_sized(method: str) -> bool:
    """Whether properties of an op hold sizes, as its result's type is given."""
    cls = op_class(method)
    return method == "filled" or (cls is not None and issubclass(cls, ResultTyped))


def _is_filled(node: Node) -> bool:
    return node.method == "constant" and dict(node.properties)["value"].type.shape != ()


def _adds_many(node: Node) -> bool:
    """Whether elements get many updates, here or in the derivative: only with numbers for sizes is that known to the
    compiler, which then keeps the sums in a wider type."""
    cls = op_class(node.method)
    if cls is None or not issubclass(cls, Adding | Reading):
        return False
    (value, *others), result = [v.aval.size for v in node.operands], node.results[0]()
    many = others[1] if issubclass(cls, Adding) else None if result is None else result.aval.size
    return many is not None and value is not None and many > MANY * value


@dataclass
class Form:
    """A graph with as few sizes as its methods allow: its structure and the types of its inputs.

    `names`: index arguments after the inputs, which are `numbers` now.  `collapsed`: arrays are handed over flat."""

    structure: tuple[Any, ...]
    types: tuple[TensorType, ...]
    names: tuple[str, ...] = ()
    numbers: tuple[Any, ...] = ()
    collapsed: bool = False


def symbolize_shapes(graph: Graph, may_collapse: bool = True) -> Form:
    """The form of a graph."""
    avals = [v.aval for v in graph.inputs]
    methods = kinds(graph.nodes)
    if "call" in methods or any(map(_adds_many, graph.nodes)):
        return Form(graph.structure, tuple([a.type for a in avals]))
    shapes = {a.shape for a in avals if a.shape}
    if may_collapse and len(shapes) == 1 and all(map(_is_elementwise, methods)):
        return Form(graph.structure, tuple([_flat(a.dtype.element, bool(a.shape)) for a in avals]), collapsed=True)
    sizes = _Sizes()
    types = tuple([tensor_type(sizes.dims(a.shape), a.dtype.element) for a in avals])
    if not any(map(_is_sized, methods)):
        return Form(graph.structure, types)
    known = len(sizes.symbols)
    structure = tuple(
        [(sizes.signature(node), operands) for node, (_, operands) in zip(graph.nodes, graph.structure, strict=True)]
    )
    new = list(sizes.symbols.items())[known:]
    numbers = [*[(name, size) for size, name in new], *sizes.starts]
    return Form(structure, types, tuple([n for n, _ in numbers]), tuple([np.array(v, np.int64) for _, v in numbers]))


class _Sizes:
    """Symbols for the sizes of a graph: `symbols` of extents, and `starts`, names with numbers, of slices and
    paddings."""

    def __init__(self) -> None:
        self.symbols: dict[int | str, str] = {}
        self.starts: list[tuple[str, int]] = []

    def dims(self, shape: Sequence[int | str]) -> tuple[int | str, ...]:
        """A shape with symbols; 0 and 1 stay."""
        symbols = self.symbols
        return tuple([d if d in (0, 1) else symbols.setdefault(d, f"n{len(symbols)}") for d in shape])

    def start(self, number: int) -> str:
        """The name of a start."""
        self.starts.append((f"i{len(self.starts)}", number))
        return self.starts[-1][0]

    def signature(self, node: Node) -> tuple[Any, ...]:
        """A node's signature with symbols in the place of sizes."""
        method, variadic, properties = node.signature()
        if not _is_sized(method) and not _is_filled(node):
            return method, variadic, properties
        given = dict(properties)
        if "dims" in given:
            dims = given["dims"]
            given["dims"] = self.dims(dims)
            if "starts" in given:
                source = node.operands[0].aval.shape
                limits = zip(given["starts"], dims, source, given["steps"], strict=True)
                # What is taken whole, or from the front, keeps its 0.
                given["starts"] = tuple(
                    [0 if not s and (n == d if n == 1 else step > 0) else self.start(s) for s, n, d, step in limits]
                )
            elif "low" in given:
                given["low"] = tuple([n and self.start(n) for n in given["low"]])
        elif "type" in given:
            given["type"] = tensor_type(self.dims(given["type"].shape), given["type"].element)
        else:
            value = given["value"]
            type = tensor_type(self.dims(value.type.shape), value.type.element)
            if type is value.type:
                return method, variadic, properties
            element = value.scalar() if value.is_splat else scalar_attr(0, type.element)  # of nothing any will do
            return "full", False, (("value", element), ("type", type))
        return method, variadic, tuple(given.items())


@lru_cache(maxsize=256)
def _flat(element: Type, has_axes: bool) -> TensorType:
    return tensor_type(("n",) if has_axes else (), element)
