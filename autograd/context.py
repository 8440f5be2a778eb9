"""What the functions of this room depend on beside their arguments, for each thread: the innermost trace, whether ops
are recorded for `backward`, and the device of new Tensors."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..ir.diagnostics import DeviceError, Error, shown
from ..ir.location import called_function, caller_location

if TYPE_CHECKING:
    from .trace import Trace


class TraceError(Error, TypeError):
    """Something that cannot be done while a function is traced."""


class Context(threading.local):
    """One thread's state."""

    trace: Trace | None = None
    records_gradients: bool = True
    device: str = "cpu"


CONTEXT = Context()

ACTIVE_TRACES: list[object] = []
"""Every trace of any thread that is being made: while this is empty, a compiled call need not ask for the context."""


def at_caller(error: Error, wanted: Sequence[object] = ()) -> None:
    """Give an error that something below met, while it ran for a call of the front-end, the user's line; `wanted`: the
    results that were to be."""
    if error.location is None:
        error.location = caller_location()
        if wanted:
            error.message += f", for {', '.join(map(str, wanted))}"


@contextmanager
def no_grad() -> Generator[None]:
    """A block (or, as a decorator, a function) whose ops are not recorded for `backward`."""
    before = CONTEXT.records_gradients
    CONTEXT.records_gradients = False
    try:
        yield
    finally:
        CONTEXT.records_gradients = before


class default_device:
    """Choose the device of new Tensors: `default_device("opencl:0")` from now on, or for a `with` block.

    DeviceError when there is no such device.
    """

    def __init__(self, name: str = "cpu") -> None:
        self.name = device_name(name)
        self._before = CONTEXT.device
        CONTEXT.device = self.name

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        CONTEXT.device = self._before


def device_name(name: str) -> str:
    """The full name of a device; DeviceError, at the user's line, when there is no such device."""
    from ..runtime.devices import get_device  # late

    if not isinstance(name, str):
        raise DeviceError(f"{called_function()}: the device must be a name, got {shown(name)}", caller_location())
    try:
        return get_device(name).name
    except DeviceError as error:
        raise DeviceError(f"{called_function()}: {error.message}", caller_location()) from None


def devices() -> list[str]:
    """The names of the devices that can be used here, the preferred one first; "ptx-sim" is emulated."""
    from ..runtime.devices import device_names  # late

    return device_names()
