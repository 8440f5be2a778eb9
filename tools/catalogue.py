"""What there is: passes, pipelines, rules, dialects, and the definition of an op, as text for people."""

from __future__ import annotations

import inspect
from typing import Any

from ..ir.definition import ONE, OPS, OPTIONAL, Op, TypeConstraint
from ..ir.diagnostics import Error
from ..ir.dialect import BUILT_IN, DIALECTS
from ..ir.interfaces import interfaces_of
from ..ir.registry import load_dialect, lookup


def passes_text() -> str:
    """Every pass with its first line and its options."""
    from ..passes.registry import ALIASES, pass_names  # late
    from ..passes.registry import lookup as lookup_pass  # late

    lines: list[str] = []
    for name in pass_names():
        cls = lookup_pass(name)
        anchor = f" (on {cls.anchor})" if cls.anchor else ""
        lines.append(f"{name:<24}{_first_line(cls)}{anchor}")
        for option, field in cls.options().items():
            lines.append(f"    {option}={field.default!r}" + f" : {field.type}")
    lines += [f"{alias:<24}Another name of {name}." for alias, name in ALIASES.items()]
    return "\n".join(lines)


def pipelines_text() -> str:
    """Every named pipeline with what it stands for."""
    from ..passes.pipelines import PIPELINES  # late

    return "\n".join(f"{name:<24}{text}" for name, text in PIPELINES.items())


def patterns_text() -> str:
    """Every rule of canonicalize."""
    from ..passes.canonicalize import all_rules  # late

    return "\n".join(map(str, all_rules()))


def dialects_text() -> str:
    """Every dialect with its ops."""
    lines: list[str] = []
    for dialect in DIALECTS:
        load_dialect(dialect)
        ops = sorted(name for name in OPS if name.partition(".")[0] == dialect)
        lines.append(f"{dialect}: {len(ops)} ops")
        lines += [f"    {name}" for name in ops]
    return "\n".join(lines)


def op_text(name: str) -> str:
    """The definition of an op."""
    cls = lookup(name)
    if cls is None:
        import difflib

        if "." in name:
            load_dialect(name.partition(".")[0])
            near = difflib.get_close_matches(name, list(OPS), 3)
        else:
            for dialect in DIALECTS:
                load_dialect(dialect)
            near = [known for known in OPS if known.partition(".")[2] == name]
        raise Error(f"no op '{name}'" + (f"; did you mean {', '.join(near)}?" if near else "; see --list-dialects"))
    definition = cls.definition
    lines = [name, *(f"  {line}" for line in (inspect.getdoc(cls) or "").splitlines()), ""]
    lines.append(f"  traits: {', '.join(sorted(map(str, cls.traits))) or 'none'}")
    for title, fields in (("operands", definition.operands), ("results", definition.results)):
        lines += _fields(title, [(f.name, f.arity, f.constraint) for f in fields])
    if definition.properties:
        lines.append("  properties:")
        for key, declared in definition.properties.items():
            optional = ", optional" if declared.optional and declared.default is None else ""
            default = f", default {declared.default!r}" if declared.default is not None else ""
            lines.append(f"    {key}: {declared.description}{optional}{default}")
    if definition.regions:
        lines.append(f"  regions: {', '.join(f.name for f in definition.regions)}")
    lines += _memory(cls)
    if cls.assembly is not None:
        lines.append(f"  assembly: {cls.assembly}")
    has = [method for method in ("infer", "fold") if getattr(cls, method) is not getattr(Op, method)]
    lines.append(f"  defines: {', '.join(has) or 'nothing more'}")
    lines.append(f"  interfaces: {', '.join(sorted(i.__name__ for i in interfaces_of(cls))) or 'none'}")
    return "\n".join([*lines, *_rules(cls)])


OPS_PAGE = """# Ops

Every op, by its dialect, generated from the op classes. Operands and properties in brackets may be absent, those with
dots are any number; a property is shown with its default. `ir-opt --show-op NAME` says all of one.
"""


def ops_page() -> str:
    """docs/ops.md: a table for each dialect, a row for each op."""
    parts = [OPS_PAGE]
    for dialect in [DIALECTS[name] for name in DIALECTS if name in BUILT_IN]:
        dialect.load()
        ops = sorted((c for n, c in OPS.items() if n.partition(".")[0] == dialect.name), key=lambda c: c.name)
        level = "" if dialect.level == "any" else f" ({dialect.level} level)"
        head = "| op | operands | results | properties | traits and interfaces | function | meaning |"
        parts.append("\n".join([f"## {dialect.name}{level}\n", head, "|" + " --- |" * 7, *map(op_row, ops), ""]))
    return "\n".join(parts)


def op_row(cls: type[Op]) -> str:
    """An op as a row of docs/ops.md."""
    definition = cls.definition
    traits = [*sorted(map(str, cls.traits)), *sorted(i.__name__ for i in interfaces_of(cls))]
    properties = [
        f"`[{n}]`" if p.optional and p.default is None else f"`{n}`" if p.default is None else f"`{n}={p.default!r}`"
        for n, p in definition.properties.items()
    ]
    cells = [
        f"`{cls.name}`",
        ", ".join(_named(f.name, f.arity) for f in definition.operands),
        ", ".join(_named(f.name, f.arity) for f in definition.results),
        ", ".join(properties),
        ", ".join(traits),
        f"`ag.{cls.api.name}`" if cls.api else "",
        " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split()),
    ]
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _named(name: str, arity: str) -> str:
    return {ONE: f"`{name}`", OPTIONAL: f"`[{name}]`"}.get(arity, f"`{name}..`")


def _fields(title: str, fields: list[tuple[str, str, TypeConstraint]]) -> list[str]:
    if not fields:
        return []
    rows = [f"    {name}: {c.description}" + ("" if arity == ONE else f" ({arity})") for name, arity, c in fields]
    return [f"  {title}:", *rows]


def _memory(cls: type[Op]) -> list[str]:
    parts = [f"{verb} {', '.join(names)}" for verb, names in (("reads", cls.reads), ("writes", cls.writes)) if names]
    return [f"  memory: {'; '.join(parts)}"] if parts else []


def _rules(cls: type[Op]) -> list[str]:
    from ..passes.canonicalize import rules_for  # late

    rules = rules_for(cls)
    return ["  rewrites:", *(f"    {rule.text}" for rule in rules)] if rules else []


def _first_line(item: Any) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0]
