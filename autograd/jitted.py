"""jit: a Python function, compiled for the structure, dtypes and shapes of its arguments.

A call looks for a *specialisation*: first by handing the arguments to the native entries of those in use, which check
types, dtypes and shapes themselves; else by a key of the arguments' structure and abstract values, and its guards
(closure.py).  Where there is none, the function is traced and compiled.  Numbers are traced (numbers.py); other things
that are not arrays, and the arguments in `static_argnames`, are part of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from operator import is_
from typing import Any, overload
from weakref import WeakSet

from ..ir.bounded_cache import BoundedCache
from ..ir.definition import ON_REDEFINITION
from ..ir.diagnostics import Error, ShapeError
from ..ir.dialects.builtin import Module
from ..ir.forking import PLANNER, shared_lock
from ..ir.location import caller_location
from .arguments import Arguments, Parameters
from .closure import Closure
from .context import ACTIVE_TRACES, CONTEXT, at_caller
from .functions.checks import flag
from .numbers import TracedNumber
from .places import MISSING
from .pytree import flatten, unflatten
from .specialisation import Specialisation
from .tensor import Tensor
from .trace import TracedFunction, trace_function
from .watched import noted

SPECIALISATIONS = 1024
"""How many argument keys a function keeps; the one not used for longest goes first."""
TRIES = 3
"""How often a function that changes what it reads is traced: what it fills at the first call stays as it is then."""
FAST = 4
"""How many native entries a call tries before it looks at the arguments itself; how many states of what a function
reads from outside are kept for one key."""


@dataclass
class CacheStatistics:
    """`hits`: calls that found their specialisation; `misses`: calls that traced; `compiles`: those that compiled."""

    hits: int = 0
    misses: int = 0
    compiles: int = 0


_LIVING: WeakSet[Jitted] = WeakSet()


def _forget_all() -> None:
    for jitted in list(_LIVING):
        jitted._forget()


ON_REDEFINITION.append(_forget_all)


class Jitted:
    """What `jit` gives: call it as the function itself."""

    __name__: str
    __wrapped_function__ = True

    def __init__(self, function: Callable[..., object], parameters: Parameters, fast_math: bool) -> None:
        update_wrapper(self, function, updated=())
        self.function = function
        self.parameters = parameters
        self.fast_math = fast_math
        self._hits = self._misses = self._compiles = 0
        self._specialisations: BoundedCache[list[Specialisation]] = BoundedCache(SPECIALISATIONS)
        self._adding = shared_lock(PLANNER)
        self._first: Callable[..., Any] = _misses
        self._others: list[Callable[..., Any]] = []
        _LIVING.add(self)

    def _forget(self) -> None:
        """Forget what was compiled; the counts stay."""
        self._specialisations.clear()
        self._first, self._others = _misses, []

    def __call__(self, *args: object, **kwargs: object) -> Any:
        try:
            if not kwargs and not ACTIVE_TRACES:
                found = self._first(*args)
                if found is not MISSING:
                    self._hits += 1
                    return found
                for fast in self._others:
                    found = fast(*args)
                    if found is not MISSING:
                        self._hits += 1
                        return found
            return self._call(args, kwargs)
        except Error as error:
            at_caller(error)
            raise

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else partial(self, instance)

    def stats(self) -> CacheStatistics:
        """A copy of the counts."""
        return CacheStatistics(self._hits, self._misses, self._compiles)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """The IR for such arguments, without running anything."""
        return Lowered(self, self._specialise(self.parameters.flatten(args, kwargs)))

    def _call(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        out = None if self.parameters.takes_out else kwargs.pop("out", None)
        if CONTEXT.trace is not None:
            if out is not None:
                raise Error("out= cannot be given while a function is traced", caller_location())
            return self.function(*args, **kwargs)
        arguments = self.parameters.flatten(args, kwargs)
        return self._call_with(arguments, out, lambda: self.parameters.flatten(args, kwargs, static_sizes=True))

    def _call_with(
        self, arguments: Arguments, out: object, with_sizes: Callable[[], Arguments] | None = None
    ) -> object:
        """A call with arguments taken apart; `with_sizes` gives the same with numbers for sizes, of which recorded
        calls need to know."""
        known = self._specialisations.get(arguments.key)
        found = None if known is None else next((s for s in known if s.holds(arguments)), None)
        if found is not None:
            if found.is_recorded_for_sizes() and with_sizes is not None:
                return self._call_with(with_sizes(), out)
            self._hits += 1
            fast = found.fast_call()
            if fast is not None and fast is not self._first and fast not in self._others:
                self._others = [f for f in (self._first, *self._others) if f is not _misses][: FAST - 1]
                self._first = fast
            return found.call(arguments, out)
        found = self._specialise(arguments)
        if found.is_recorded_for_sizes() and with_sizes is not None:
            self._specialisations.put(arguments.key, [found])
            return self._call_with(with_sizes(), out)
        self._misses += 1
        self._specialisations.discard(lambda of_key: all([s.is_obsolete() for s in of_key]))
        found.compile()
        with self._adding:
            # Several threads may have traced it, which nobody may wait for: it runs code of the user.  One compiled.
            known = self._specialisations.get_or_make(arguments.key, list[Specialisation])
            other = next((s for s in known if s.holds(arguments)), None)
            if other is None:
                self._compiles += found.executable is not None
                known.insert(0, found)
                del known[FAST:]
            else:
                found = other
        return found.call(arguments, out)

    def _specialise(self, arguments: Arguments) -> Specialisation:
        def body(tensors: list[Tensor], numbers: list[TracedNumber]) -> Any:
            args, kwargs = arguments.unflatten(tensors, numbers)
            given, given_tree = flatten((args, kwargs))
            result = self.function(*args, **kwargs)
            now, now_tree = flatten((args, kwargs))
            if now_tree != given_tree or not all(map(is_, now, given)):
                message = "jit: the function changes a container among its arguments, and a compiled call has a copy"
                raise Error(f"{message}; return the new one", caller_location())
            leaves, tree = flatten(result)
            return unflatten(tree, map(noted, leaves))

        device = self.parameters.device or next((a.device for a in arguments.avals), CONTEXT.device)

        def trace() -> TracedFunction:
            return trace_function(
                body,
                arguments.avals,
                arguments.names,
                persistent=True,
                device=device,
                numbers=arguments.numbers,
                sizes=arguments.sizes,
                outside=closure.outside,
            )

        for _ in range(TRIES):
            closure = Closure(self.function, arguments.objects)
            try:
                with closure.watching():
                    traced = trace()
            except (TypeError, BufferError) as error:
                if isinstance(error, Error) or not closure.ndarrays:
                    raise
                with closure.watching(has_stand_ins=False):
                    traced = trace()
            changed = closure.changed()
            if changed is None:
                break
        else:
            message = f"jit: each call changes what the function reads: {changed}; a compiled call would not"
            raise Error(f"{message}. Return the new value, or keep it in a Tensor", caller_location())
        leaves = arguments.traced_leaves
        closure.add_context(
            takes_device=self.parameters.device is None and not (leaves and all(isinstance(v, Tensor) for v in leaves)),
            wants_gradients=any(a.requires_grad for a in [*arguments.avals, *[t._aval for t in traced.captures]]),
        )
        return Specialisation(traced, arguments, closure, device, self.fast_math, self.parameters.donated)


def _misses(*_: object) -> object:
    """The native entry of a function that has none yet."""
    return MISSING


class Lowered:
    """The IR of a function for given arguments."""

    def __init__(self, jitted: Jitted, specialisation: Specialisation) -> None:
        self._jitted = jitted
        self._specialisation = specialisation

    @property
    def module(self) -> Module:
        """The module that tracing gave."""
        return self._specialisation.module

    def as_text(self, stage: str = "tensor") -> str:
        """The text at a stage: "trace", "tensor", "kernel", "loop", "llvm", "asm", "opencl" or "ptx"."""
        from ..runtime.compile import lower  # late

        return str(self.module if stage == "trace" else lower(self.module, self._specialisation.device, stage))

    def compile(self) -> Compiled:
        """The executable function."""
        self._specialisation.compile()
        return Compiled(self._jitted, self._specialisation)


class Compiled:
    """A function compiled for one kind of arguments; others are refused with a ShapeError, and with an Error all when
    what the function reads from outside has changed."""

    def __init__(self, jitted: Jitted, specialisation: Specialisation) -> None:
        self._jitted = jitted
        self._specialisation = specialisation

    def __call__(self, *args: object, out: object = None, **kwargs: object) -> Any:
        arguments = self._jitted.parameters.flatten(args, kwargs)
        expected = self._specialisation
        if arguments.key != expected.key:
            message = f"compiled for {expected.argument_avals}, got {arguments.avals}"
            if str(expected.argument_avals) == str(arguments.avals):
                message = "compiled for another structure, or with other values of arguments that are no arrays"
            raise ShapeError(message, caller_location())
        if not expected.is_current():
            raise Error("what the function reads from outside has changed; lower it again", caller_location())
        return expected.call(arguments, out)


@overload
def jit(
    function: Callable[..., object],
    *,
    device: str | None = None,
    fast_math: bool = False,
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    dynamic: bool | None = None,
) -> Jitted: ...
@overload
def jit(
    function: None = None,
    *,
    device: str | None = None,
    fast_math: bool = False,
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    dynamic: bool | None = None,
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    device: str | None = None,
    fast_math: bool = False,
    static_argnames: str | Sequence[str] = (),
    donate_argnames: str | Sequence[str] = (),
    dynamic: bool | None = None,
) -> Any:
    """A function that is traced and compiled at its first call with arguments of a kind, and runs compiled then on.

    `device`: where it runs, by default where its arguments lie.  `static_argnames`: arguments that are no arrays but
    part of the specialisation.  `donate_argnames`: arguments that the caller gives up; reading them afterwards raises.
    `dynamic`: specialise to dtypes and axes, not to sizes: equal extents of the arguments are then one symbol, and what
    is read of a shape is a size that computes; what Python asks of one (`if n > 3`, `range(n)`) is refused.
    `fast_math` permits less accurate functions; none is less accurate so far, so results are the same.  Calls take
    `out=`: arrays (or Tensors) that receive the results.  docs/guide.md says what the function may read from
    outside.
    """

    def wrap(f: Callable[..., object]) -> Jitted:
        return Jitted(f, Parameters(f, static_argnames, donate_argnames, device, by_symbols), is_fast)

    by_symbols = dynamic is not None and flag("dynamic", dynamic)
    is_fast = flag("fast_math", fast_math)
    return wrap if function is None else wrap(function)
