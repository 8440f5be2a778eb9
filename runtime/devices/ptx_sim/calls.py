"""Calls of device functions, expanded where they stand.

    st.param.f64 [arg], %fd1;                    st.local.f64 [arg], %fd1;
    call (result), square, (arg);      becomes   ld.local.f64 %fd1.c1, [arg]; ... st.local.f64 [result], %fd2.c1;
    ld.param.f64 %fd2, [result];                 ld.local.f64 %fd2, [result];

Each expansion has registers, labels and local variables of its own; parameters are local variables of the caller. A
return is a branch to the end. Recursion and calls through pointers are refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .faults import PtxSyntaxError
from .parser import Function, Instruction, Kernel

_NAMES = re.compile(r"(?<![\w$%.])[A-Za-z_$%][\w$.]*")


def expand_calls(kernel: Kernel, functions: dict[str, Function]) -> None:
    """Replace the calls of a kernel by the bodies of what they call, in place. PtxSyntaxError where that cannot be."""
    expansion = _Expansion(kernel, functions)
    instructions, labels = expansion.body(kernel, {}, ())
    kernel.instructions, kernel.labels = instructions, labels


class _Expansion:
    def __init__(self, kernel: Kernel, functions: dict[str, Function]) -> None:
        self.kernel = kernel
        self.functions = functions
        self.count = 0

    def body(
        self, source: Kernel | Function, names: dict[str, str], callers: tuple[str, ...]
    ) -> tuple[list[Instruction], dict[str, int]]:
        """Instructions of a body under a renaming, its own calls expanded, and where its labels are."""
        result: list[Instruction] = []
        labels: dict[str, int] = {}
        at = {
            index: [label for label, place in source.labels.items() if place == index]
            for index in source.labels.values()
        }
        for index, one in enumerate([*source.instructions, None]):
            labels.update({names.get(label, label): len(result) for label in at.get(index, ())})
            if one is None:
                break
            if one.opcode == "call":
                self._call(one, names, callers, result, labels)
                continue
            if callers and one.opcode == "ret":
                result.append(replace(self._renamed(one, names), opcode="bra", operands=(names["ret"],)))
                continue
            result.append(self._renamed(one, names))
        return result, labels

    def _renamed(self, one: Instruction, names: dict[str, str]) -> Instruction:
        operands = tuple(_NAMES.sub(lambda match: names.get(match[0], match[0]), text) for text in one.operands)
        guard = None if one.guard is None else names.get(one.guard, one.guard)
        modifiers = one.modifiers
        if "param" in modifiers and one.opcode in ("ld", "st"):
            address = operands[1] if one.opcode == "ld" else operands[0]
            if any(name in self.kernel.variables for name in _NAMES.findall(address)):
                modifiers = tuple("local" if name == "param" else name for name in modifiers)
        return replace(one, operands=operands, guard=guard, modifiers=modifiers)

    def _call(
        self,
        one: Instruction,
        names: dict[str, str],
        callers: tuple[str, ...],
        result: list[Instruction],
        labels: dict[str, int],
    ) -> None:
        groups: list[list[str]] = [_NAMES.findall(text) for text in one.operands]
        position = next((i for i, text in enumerate(one.operands) if not text.startswith("(")), 0)
        name = one.operands[position] if one.operands else ""
        function = self.functions.get(name)
        if function is None or name in callers or one.guard is not None:
            reason = "recursion is not supported" if name in callers else f"there is no body to expand for `{name}`"
            raise PtxSyntaxError(
                reason if one.guard is None else "a call under a guard is not supported", one.line, one.text
            )
        results = groups[0] if position else []
        arguments = groups[position + 1] if len(groups) > position + 1 else []
        if (len(results), len(arguments)) != (len(function.results), len(function.parameters)):
            raise PtxSyntaxError(f"`{name}` takes other numbers of arguments and results", one.line, one.text)
        self.count += 1
        suffix = f".c{self.count}"
        inner = {own: own + suffix for own in (*function.registers, *function.labels)}
        for variable in function.variables.values():
            own = variable.name + (suffix if variable.space == "local" else "")
            inner[variable.name] = own
            self.kernel.variables[own] = replace(variable, name=own)
        inner.update({formal: names.get(actual, actual) for formal, actual in zip(function.results, results)})
        inner.update({formal: names.get(actual, actual) for formal, actual in zip(function.parameters, arguments)})
        inner["ret"] = f"ret{suffix}"
        self.kernel.registers.update({inner[own]: kind for own, kind in function.registers.items()})
        instructions, inside = self.body(function, inner, (*callers, name))
        labels.update({label: place + len(result) for label, place in inside.items()})
        result += instructions
        labels[inner["ret"]] = len(result)
