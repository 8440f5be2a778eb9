"""What a function reads from outside of its arguments, and how a compiled one stays true to it.

The walk (walk.py) starts at the function and the objects among its arguments.  What it reaches is

    guarded      numbers, strings and other values without parts by type and value; functions, classes, modules and
                 objects by identity and what they hold in turn: cells, defaults, globals that the code names,
                 attributes, slots, class attributes, code, items of containers at any depth, bound arguments of
                 partials, what objects of C refer to, their memory, the environment, and for the shortest way of a
                 call the context.  The function is traced anew when one of them changes.
    read anew    Tensors and ndarrays, wherever they stand, and `.grad`: they are hidden inputs.  Their dtype and shape
                 are guarded.  Of an ndarray whose elements NumPy or Python reads the elements are guarded.
    refused      Tensors that the walk did not reach; iterators, clocks, files, random numbers; objects of C whose
                 state cannot be seen; elements of large ndarrays; a function that at each call changes what it reads.

Taken as constant: the modules of Python, of NumPy and of this package, Python's builtins, and the code of other
installed packages (not their objects, nor the names that the user's code reads of their modules).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.diagnostics import Error
from ..ir.forking import TRACER, shared_lock
from ..ir.location import FileLoc, caller_location
from .context import CONTEXT
from .guards import Guard, all_hold
from .places import FixedPlace, GradientPlace, Place
from .tensor import Tensor
from .walk import Walk
from .watched import LARGE, Watched, before, elements, plain, read_at

_substituting = shared_lock(TRACER)


class Closure:
    """The guards of a function, and the places of the Tensors and ndarrays that it reads, by their id."""

    def __init__(self, function: Callable[..., object], objects: Sequence[object] = ()) -> None:
        self.sources: dict[int, Place] = {}
        # A thread that walks while another one has stand-ins in place would take these for the arrays.
        with _substituting:
            walk = Walk([(FixedPlace(v, _name(v)), v) for v in (function, *objects)], objects)
        self.guards = walk.guards
        self.hold: Callable[[], bool] = lambda: False
        """Whether all guards hold."""
        self.weakly_held = walk.weakly_held
        """Objects among the arguments, which nothing here keeps alive: functions that give None when they are gone."""
        self._states = walk.states
        self._types_at = walk.types_at
        self._arrays: dict[int, tuple[Any, list[Place]]] = {}
        for place, value in walk.arrays:
            places = self._arrays.setdefault(id(value), (value, []))[1]
            places.append(place)
        self.sources = {key: places[0] for key, (_, places) in self._arrays.items()}

    @property
    def outside(self) -> dict[int, Any]:
        """The Tensors that were reached, by id."""
        return {key: value for key, (value, _) in self._arrays.items()}

    @property
    def ndarrays(self) -> list[tuple[Any, list[Place]]]:
        """The ndarrays that were reached, and where each stands."""
        return [(a, places) for a, places in self._arrays.values() if isinstance(a, np.ndarray)]

    @contextmanager
    def watching(self, has_stand_ins: bool = True) -> Generator[None]:
        """While this lasts, stand-ins are where the ndarrays were; then those whose elements were read are guarded.

        Without stand-ins, which some code does not take for arrays, the elements of all are."""
        found = self.ndarrays
        # A stand-in has another type, which code may look at.
        if not found or not has_stand_ins or self._types_at is not None:
            for array, places in found:
                self._guard_elements(array, places, None)
            yield
            return
        with _substituting:
            watched: list[tuple[Any, list[Place], Watched, bool]] = []
            try:
                for array, places in found:
                    stand_in = Watched(array)
                    watched.append((array, places, stand_in, all([_put(p, stand_in) for p in places])))
                yield
            finally:
                for array, places, _, _ in watched:
                    for place in places:
                        if type(place.read()) is Watched:
                            place.write(array)
        for array, places, stand_in, is_seen in watched:
            if not is_seen or read_at(stand_in) is not None:
                self._guard_elements(array, places, read_at(stand_in), before(stand_in))

    def _guard_elements(self, array: Any, places: Sequence[Place], where: Any, then: list[Any] | None = None) -> None:
        """`then`: what they were, where that is known to be before the function was called."""
        label = places[0].label
        if array.nbytes > LARGE or array.dtype.hasobject:
            message = f"jit: elements of the ndarray {label} are read while tracing"
            if where is None:
                message = f"jit: the ndarray {label} stands where its uses cannot be seen"
                if self._types_at is not None:
                    message += ", since code asks for types by `type` (and not isinstance)"
                    where = FileLoc(self._types_at[0], self._types_at[1], 1)
            message += ", and it is too large (or of objects) to be compared at each call"
            raise Error(f"{message}; make it an argument or a Tensor", where or caller_location())
        for place in places:
            self.guards.append(Guard(label, lambda place=place: elements(plain(place.read()))))
            if then is not None:
                self.guards[-1].then = then

    def finish(self, captured: Iterable[int], changes_handles: bool) -> None:
        """Guard what is known of arrays that did not become inputs, and which places show the same handle.

        `captured`: the ids of those that did; `changes_handles`: the function binds handles to other values.
        """
        inputs = set(captured)
        others = [places[0] for key, (_, places) in self._arrays.items() if key not in inputs]
        if others:
            self.guards.append(Guard(others[0].label, lambda: [_kind(plain(p.read())) for p in others]))
        for _, places in self._arrays.values():
            if len(places) > 1:
                self.guards.append(Guard(places[0].label, lambda ps=places: _agreement(ps)))
        if changes_handles and len(self.sources) > 1:
            firsts = list(self.sources.values())
            self.guards.append(Guard("handles", lambda: [len({id(plain(p.read())) for p in firsts})]))
        self._arrays = {}
        self.hold = all_hold(self.guards)

    def add_context(self, takes_device: bool, wants_gradients: bool) -> None:
        """What the function reads of the context, which the shortest way of a call does not compare."""
        if takes_device:
            owners = [(CONTEXT, ".device", "the default device")]
            self.guards.append(Guard("the default device", lambda: [CONTEXT.device], owners))
        if wants_gradients:
            owners = [(CONTEXT, ".records_gradients", "ag.no_grad")]
            self.guards.append(Guard("ag.no_grad", lambda: [CONTEXT.records_gradients], owners))

    def add_gradients(self, gradients: Iterable[tuple[Tensor, Tensor | None]]) -> None:
        """Handles whose `.grad` the function read: it is an input, or must still be None."""
        for handle, gradient in gradients:
            place = GradientPlace(self.sources.get(id(handle)) or FixedPlace(handle, "a Tensor"))
            if gradient is None:
                self.guards.append(Guard(place.label, lambda place=place: [place.read()]))
            else:
                # One that is also read elsewhere is one input as long as both places show the same.
                other = self.sources.setdefault(id(gradient), place)
                if other is not place:
                    self.guards.append(Guard(place.label, lambda ps=(other, place): _agreement(ps)))

    def changed(self) -> str | None:
        """What is not what it was before the function was traced. Error when random numbers were drawn."""
        for state in self._states:
            if not state.holds():
                message = f"jit: the function draws random numbers from {state.label}, which would be drawn while"
                raise Error(f"{message} tracing alone; pass them as an argument", caller_location())
        return next((g.change() for g in self.guards if not g.holds()), None)


def _put(place: Place, value: object) -> bool:
    try:
        return place.write(value)
    except (AttributeError, TypeError):
        return False


def _name(value: object) -> str:
    return getattr(value, "__name__", None) or type(value).__name__


def _kind(value: object) -> object:
    """What of an array may be read while tracing."""
    if isinstance(value, Tensor):
        return value._aval
    return (value.shape, value.dtype.str) if isinstance(value, np.ndarray) else value


def _agreement(places: Sequence[Place]) -> Sequence[object]:
    first = plain(places[0].read())
    return [plain(p.read()) is first for p in places]
