"""inline: calls become the bodies of their callees.

In: a module.  Out: the module without the `func.call`s of functions that have a body of one block and are not
recursive; private functions that nothing refers to any more are gone.

    func.func private @twice(%x: f32) -> f32 {
      %0 = arith.addf %x, %x : f32
      return %0 : f32
    }
    func.func @main(%a: f32) -> f32 {
      %0 = call @twice(%a) : (f32) -> f32
      return %0 : f32
    }
        becomes
    func.func @main(%a: f32) -> f32 {
      %0 = arith.addf %a, %a : f32
      return %0 : f32
    }

Callees come before callers (depth-first over the call graph), so each body is copied in its final form.  Functions that
lie on a cycle of calls are never copied.  The copies have `callsite(callee at caller)` locations.  An attribute
`no_inline` on a function or a call keeps the call; so does a caller that would grow beyond `max-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.attributes import ArrayAttr, Attribute, DictAttr, SymbolRefAttr
from ..ir.dialects.func import Call, Func, Return
from ..ir.location import CallSiteLoc, Location
from ..ir.operations import Operation
from ..ir.symbols import SymbolTables
from ..ir.values import Value
from .manager import Pass

NO_INLINE = "no_inline"
MAX_CALLS = 16
"""The calls that a location names; longer chains must not make locations that grow with them."""


@dataclass
class Inline(Pass):
    """Replace calls by the bodies of their callees."""

    name: ClassVar[str] = "inline"
    anchor: ClassVar[str] = "builtin.module"
    max_ops: int = 1_000_000

    def run(self, op: Operation) -> None:
        calls: dict[Func, list[tuple[Call, Func]]] = {}
        tables = SymbolTables()
        for inner in op.walk():
            if isinstance(inner, Func):
                calls.setdefault(inner, [])
            elif isinstance(inner, Call):
                caller = next((a for a in inner.ancestors() if isinstance(a, Func)), None)
                callee = tables.lookup(inner, inner.properties["callee"])
                if caller is not None and isinstance(callee, Func):
                    calls.setdefault(caller, []).append((inner, callee))
        order, recursive = _callees_first(calls)
        sizes: dict[Func, int] = {}
        inlined: set[Func] = set()
        for caller in order:
            size = sum(1 for _ in caller.walk()) if calls[caller] else 0
            for call, callee in calls[caller]:
                if callee in recursive or NO_INLINE in callee.attributes or NO_INLINE in call.attributes:
                    continue
                if len(callee.body.blocks) != 1 or not isinstance(callee.body.block.last, Return):
                    continue
                if callee not in sizes:
                    sizes[callee] = sum(1 for _ in callee.walk())
                size += sizes[callee]
                if size > self.max_ops:
                    break
                _inline(call, callee)
                inlined.add(callee)
                self.count("inlined")
        if inlined:
            self.count("removed", _remove_unused(op, inlined))


def _callees_first(calls: dict[Func, list[tuple[Call, Func]]]) -> tuple[list[Func], set[Func]]:
    """The functions, callees before callers, and those that lie on a cycle of calls (Tarjan's components)."""
    order: list[Func] = []
    recursive: set[Func] = set()
    index: dict[Func, int] = {}
    low: dict[Func, int] = {}
    component: list[Func] = []
    open_: set[Func] = set()
    for root in calls:
        if root in index:
            continue
        work: list[tuple[Func, int]] = [(root, 0)]
        while work:
            function, position = work.pop()
            if position == 0:
                index[function] = low[function] = len(index)
                component.append(function)
                open_.add(function)
            callees = [callee for _, callee in calls[function]]
            if position:
                low[function] = min(low[function], low[callees[position - 1]])
            while position < len(callees):
                callee = callees[position]
                position += 1
                if callee not in index:
                    work += [(function, position), (callee, 0)]
                    break
                if callee in open_:
                    low[function] = min(low[function], index[callee])
            else:
                if low[function] == index[function]:
                    members: list[Func] = []
                    while True:
                        member = component.pop()
                        open_.discard(member)
                        members.append(member)
                        if member is function:
                            break
                    if len(members) > 1 or function in callees:
                        recursive.update(members)
                order.append(function)
    return order, recursive


def _inline(call: Call, callee: Func) -> None:
    """Copy the callee's body before the call and erase the call."""
    block = callee.body.block
    mapping: dict[Value, Value] = dict(zip(block.arguments, call.operands))
    sites: dict[int, CallSiteLoc] = {}  # by identity of the location, which the callee keeps alive
    target = call.parent
    assert target is not None
    results: list[Value] = []
    for op in block:
        if op is block.last:
            results = [mapping.get(v, v) for v in op.operands]
            break
        copy = op.clone(mapping)
        for inner in copy.walk():
            site = sites.get(id(inner.location))
            if site is None:
                site = sites[id(inner.location)] = _call_site(inner.location, call.location)
            inner.location = site
        target.insert_before(copy, call)
    call.replace_by(results)


def _call_site(callee: Location, caller: Location) -> CallSiteLoc:
    """`callsite(callee at caller)`; of a long chain of calls the first op and the last calls' places are kept."""
    at, depth = callee, 0
    while isinstance(at, CallSiteLoc):
        at, depth = at.callee, depth + 1
    return CallSiteLoc(callee if depth < MAX_CALLS else at, caller)


def _remove_unused(module: Operation, candidates: set[Func]) -> int:
    """Erase the private functions among `candidates` that nothing refers to."""
    used: set[str] = set()
    for op in module.walk():
        for attributes in (op.properties, op.attributes):
            for attribute in attributes.values():
                _collect(attribute, used)
    unused = [f for f in candidates if f.sym_visibility == "private" and f.sym_name not in used]
    for function in unused:
        function.erase()
    return len(unused)


def _collect(attribute: Attribute, names: set[str]) -> None:
    pending = [attribute]
    while pending:
        item = pending.pop()
        if isinstance(item, SymbolRefAttr):
            names.update((item.root, *item.nested))
        elif isinstance(item, ArrayAttr):
            pending += item.elements
        elif isinstance(item, DictAttr):
            pending += item.entries.values()
