"""What the emulator reports: text it cannot read, and programs that break the rules of PTX."""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.diagnostics import DeviceError


class PtxSyntaxError(DeviceError):
    """PTX text that the emulator cannot read or does not support; the message names the line."""

    def __init__(self, message: str, line: int, text: str = "") -> None:
        super().__init__(f"PTX line {line}: {message}" + (f": `{text}`" if text else ""))
        self.line = line


@dataclass(frozen=True)
class Site:
    """Where a fault happened: the kernel, the line of its PTX text, and the thread that met it."""

    kernel: str
    line: int
    text: str
    cta: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        who = "" if self.cta is None else f", CTA {self.cta}, thread {self.thread}"
        return f"kernel `{self.kernel}`{who}, PTX line {self.line}: `{self.text}`"


class PtxFault(DeviceError):
    """A program that broke a rule while it ran.

    `kind` is one word for the rule: "out-of-bounds", "misaligned", "uninitialised", "race", "async-copy", "barrier",
    "convergence", "trap" or "no-progress". `site` says where, `address` is the offending address where there is one.
    """

    def __init__(self, kind: str, message: str, site: Site, address: int | None = None) -> None:
        super().__init__(f"{kind}: {message}; {site}")
        self.kind = kind
        self.site = site
        self.address = address
