"""Tensor-level programs for tests of the lower levels; an extent may be a name."""

from __future__ import annotations

Extent = int | str


def tensor(*dims: Extent, element: str = "f32") -> str:
    """The text of a tensor type."""
    shape = "".join(f"{'?' if isinstance(d, str) else d}x" for d in dims)
    names = [f'"{d}"' for d in dims if isinstance(d, str)]
    return f"tensor<{shape}{element}{', [' + ', '.join(names) + ']' if names else ''}>"


def chain(rows: Extent, columns: Extent) -> str:
    """relu((a + b) * c), b along the rows."""
    t, v = tensor(rows, columns), tensor(columns)
    return f"""func.func @main(%a: {t}, %b: {v}, %c: {t}) -> {t} {{
  %0 = elementwise.add %a, %b : {t}, {v} -> {t}
  %1 = elementwise.mul %0, %c : {t}
  %2 = elementwise.relu %1 : {t}
  return %2 : {t}
}}"""


def transposed(rows: Extent, columns: Extent) -> str:
    """x + transpose(y)."""
    t, u = tensor(rows, columns), tensor(columns, rows)
    return f"""func.func @main(%x: {t}, %y: {u}) -> {t} {{
  %0 = array.transpose %y {{permutation = array<i64: 1, 0>}} : {u} -> {t}
  %1 = elementwise.add %x, %0 : {t}
  return %1 : {t}
}}"""


def softmax(rows: Extent, columns: Extent, axis: int = 1) -> str:
    """Softmax of rows, or of columns (axis 0)."""
    t = tensor(rows, columns)
    return f"""func.func @main(%x: {t}) -> {t} {{
  %0 = linalg.softmax %x {{axis = {axis} : i64}} : {t}
  return %0 : {t}
}}"""


def layer_norm(rows: Extent, columns: Extent) -> str:
    """Layer norm of rows, with weight and bias."""
    t, v, s = tensor(rows, columns), tensor(columns), tensor(rows)
    return f"""func.func @main(%x: {t}, %g: {v}, %b: {v}) -> {t} {{
  %y, %m, %r = linalg.layer_norm %x weight %g bias %b {{axis = 1 : i64}} : ({t}, {v}, {v}) -> ({t}, {s}, {s})
  return %y : {t}
}}"""


def reduced(op: str, rows: Extent, columns: Extent, *axes: int) -> str:
    """A reduction over some axes; argmax over one."""
    t = tensor(rows, columns)
    kept = [d for i, d in enumerate((rows, columns)) if i not in axes]
    over = f"axis = {axes[0]} : i64" if op == "argmax" else f"axes = array<i64: {', '.join(map(str, axes))}>"
    out = tensor(*kept, element="i64" if op == "argmax" else "f32")
    return f"""func.func @main(%x: {t}) -> {out} {{
  %0 = linalg.{op} %x {{{over}}} : {t} -> {out}
  return %0 : {out}
}}"""


def matmul(
    m: Extent, n: Extent, k: Extent, form: str = "NN", epilogue: bool = False, batch: tuple[int, ...] = ()
) -> str:
    """A product, the first and second factor as they are (N) or transposed (T); relu(c + bias) behind it."""
    a = tensor(*batch, m, k) if form[0] == "N" else tensor(*batch, k, m)
    b = tensor(*batch, k, n) if form[1] == "N" else tensor(*batch, n, k)
    c, bias = tensor(*batch, m, n), tensor(n)
    lines = [f"func.func @main(%a: {a}, %b: {b}, %bias: {bias}) -> {c} {{"]
    swap = [*range(len(batch)), len(batch) + 1, len(batch)]
    permutation = f"{{permutation = array<i64: {', '.join(map(str, swap))}>}}"
    x, y = "%a", "%b"
    if form[0] == "T":
        x = "%x"
        lines.append(f"  %x = array.transpose %a {permutation} : {a} -> {tensor(*batch, m, k)}")
    if form[1] == "T":
        y = "%y"
        lines.append(f"  %y = array.transpose %b {permutation} : {b} -> {tensor(*batch, k, n)}")
    lines.append(f"  %0 = linalg.matmul {x}, {y} : {tensor(*batch, m, k)}, {tensor(*batch, k, n)} -> {c}")
    lines.append(f"  %1 = elementwise.add %0, %bias : {c}, {bias} -> {c}")
    lines.append(f"  %2 = elementwise.relu %1 : {c}")
    lines.append(f"  return %{2 if epilogue else 0} : {c}\n}}")
    return "\n".join(lines)


def squares(rows: Extent, columns: Extent) -> str:
    """x - y, and the sums of its squares over all points, over columns and over rows, in one pass."""
    t = tensor(rows, columns)
    outs = [t, tensor(), tensor(columns), tensor(rows)]
    return f"""func.func @main(%x: {t}, %y: {t}) -> ({", ".join(outs)}) {{
  %d = elementwise.sub %x, %y : {t}
  %q = elementwise.mul %d, %d : {t}
  %a = linalg.reduce_sum %q {{axes = array<i64: 0, 1>}} : {t} -> {outs[1]}
  %c = linalg.reduce_sum %q {{axes = array<i64: 0>}} : {t} -> {outs[2]}
  %r = linalg.reduce_sum %q {{axes = array<i64: 1>}} : {t} -> {outs[3]}
  return %d, %a, %c, %r : {", ".join(outs)}
}}"""
