"""How each instruction is written as NumPy: one rule per opcode, by family."""

from . import conversion, floating, integer, logic, memory, warp

__all__ = ["conversion", "floating", "integer", "logic", "memory", "warp"]
