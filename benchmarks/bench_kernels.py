"""Fused chains, softmax, layer norm, a matrix product and a training step, against NumPy, numexpr, JAX and netcl.

    python benchmarks/bench_kernels.py [--threads 1] [--quick] [--only B]

Each contestant gets its own arrays in its own memory and gives a new array for each call.  JAX and nablair run jitted
functions; NumPy runs the usual expressions, gradients written by hand; netcl runs `jit_compile` on OpenCL (POCL where
there is no GPU).  A contestant that is not installed is left out with a remark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from harness import Contestant, Missing, Result

Array = np.ndarray[Any, Any]
SYSTEMS = ("nablair", "numpy", "numexpr", "jax", "netcl")
SIZES = ((64, 64), (512, 512), (4096, 1024))
RATE = 0.1


class Workload:
    """Inputs, and a way for each system to compute the same from them.

    `generic` is written against a namespace `xp` with the names of the array API plus relu, softmax and layer_norm; it
    serves nablair and JAX.  With `wrt` those compute the sum of its value and the gradients in these arguments.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[Array, ...],
        generic: Callable[..., Any],
        in_numpy: Callable[..., Any],
        wrt: tuple[int, ...] = (),
        in_numexpr: str = "",
        in_netcl: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.generic = generic
        self.in_numpy = in_numpy
        self.wrt = wrt
        self.in_numexpr = in_numexpr
        self.in_netcl = in_netcl

    def contestants(self) -> tuple[list[Contestant], list[str]]:
        """Those that are there, and remarks on those that are not."""
        made: list[Contestant] = []
        remarks: list[str] = []
        for make in (self.numpy, self.nablair, self.numexpr, self.jax, self.netcl):
            try:
                contestant = make()
            except (Missing, ImportError) as error:
                remarks.append(f"{make.__name__} left out: {error}")
                continue
            if contestant is not None:
                made.append(contestant)
        return made, remarks

    def nablair(self) -> Contestant:
        from nablair import autograd as ag

        def value(*arrays: Any) -> Any:
            made = self.generic(ag, *arrays)
            return ag.sum(made) if self.wrt else made

        function = ag.jit(ag.value_and_grad(value, argnums=self.wrt) if self.wrt else value)
        given = [ag.asarray(a) for a in self.inputs]
        return Contestant("nablair", lambda: function(*given), to_numpy)

    def numpy(self) -> Contestant:
        return Contestant("numpy", lambda: self.in_numpy(*self.inputs), to_numpy, spins=self.generic is product)

    def numexpr(self) -> Contestant | None:
        if not self.in_numexpr:
            return None
        import numexpr

        names = dict(zip("abc", self.inputs, strict=False))
        return Contestant("numexpr", lambda: numexpr.evaluate(self.in_numexpr, local_dict=names))

    def jax(self) -> Contestant:
        import jax

        def value(*arrays: Any) -> Any:
            made = self.generic(JaxNamespace, *arrays)
            return made.sum() if self.wrt else made

        function = jax.jit(jax.value_and_grad(value, self.wrt) if self.wrt else value)
        given = [jax.device_put(a) for a in self.inputs]
        return Contestant("jax", lambda: jax.block_until_ready(function(*given)), to_numpy, spins=True)

    def netcl(self) -> Contestant | None:
        if self.in_netcl is None:
            return None
        from netcl import autograd as nag
        from netcl.core.device import manager
        from netcl.core.tensor import Tensor

        handle = manager.default(device="gpu")
        if handle is None:
            raise Missing("no OpenCL device")
        function = nag.jit_compile(self.in_netcl)
        given = [Tensor.from_host(handle.queue, a) for a in self.inputs]

        def run() -> Any:
            nodes = [nag.tensor(t, requires_grad=bool(self.wrt)) for t in given]
            if not self.wrt:
                made = function(*nodes)
                handle.queue.finish()
                return made.value
            tape = nag.Tape()
            nag.set_current_tape(tape)
            made = function(*nodes, tape=tape)
            tape.backward(made)
            handle.queue.finish()
            return made.value, tuple(nodes[i].grad for i in self.wrt)

        def host(found: Any) -> Any:
            if not self.wrt:
                return found.to_host()
            value, gradients = found
            return value.to_host().sum(dtype=np.float32), tuple(g.to_host() for g in gradients)

        return Contestant("netcl", run, host, spins=True)


def to_numpy(value: Any) -> Any:
    """NumPy arrays of a result, whatever library made it."""
    return tuple(map(to_numpy, value)) if isinstance(value, tuple | list) else np.asarray(value)


class JaxNamespace:
    """JAX's functions under the names that the workloads use."""

    def __getattr__(self, name: str) -> Any:
        import jax

        home = {"relu": jax.nn, "softmax": jax.nn, "value_and_grad": jax}.get(name, jax.numpy)
        return getattr(home, name)

    @staticmethod
    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / (variance + 1e-5) ** 0.5 * weight + bias


JaxNamespace = JaxNamespace()  # pyright: ignore[reportAssignmentType]


# A = relu(x * 0.5) + 1.


def chain_a(xp: Any, x: Any) -> Any:
    return xp.relu(x * 0.5) + 1.0


def chain_a_numpy(x: Array) -> Array:
    return np.maximum(x * np.float32(0.5), np.float32(0)) + np.float32(1)


def chain_a_netcl(x: Any) -> Any:
    from netcl import autograd as nag

    return nag.add(nag.relu(nag.mul(x, 0.5)), 1.0)


# B = tanh(relu((a + b) * c)), and its gradients.


def chain_b(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return xp.tanh(xp.relu((a + b) * c))


def chain_b_numpy(a: Array, b: Array, c: Array) -> Array:
    return np.tanh(np.maximum((a + b) * c, np.float32(0)))


def chain_b_gradients(a: Array, b: Array, c: Array) -> Any:
    total = a + b
    y = np.tanh(np.maximum(total * c, np.float32(0)))
    slope = np.where(total * c > 0, 1 - y * y, np.float32(0))
    by_sum = slope * c
    return y.sum(), (by_sum, by_sum, slope * total)


def chain_b_netcl(a: Any, b: Any, c: Any) -> Any:
    from netcl import autograd as nag

    return nag.tanh(nag.relu(nag.mul(nag.add(a, b), c)))


# Rows.


def softmax(xp: Any, x: Any) -> Any:
    return xp.softmax(x, axis=-1)


def softmax_numpy(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    return xp.layer_norm(x, weight, bias)


def layer_norm_numpy(x: Array, weight: Array, bias: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * weight + bias


def layer_norm_gradients(x: Array, weight: Array, bias: Array) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    h = centred * rstd
    by_h = np.broadcast_to(weight, x.shape)
    by_x = rstd * (by_h - by_h.mean(-1, keepdims=True) - h * (by_h * h).mean(-1, keepdims=True))
    return (h * weight + bias).sum(), (by_x, h.sum(0), np.full_like(bias, len(x)))


def product(xp: Any, a: Any, b: Any) -> Any:
    return xp.matmul(a, b)


# A step of training: a network of two layers on 64 pixels, batch 128, plain gradient descent.


def network_loss(xp: Any, x: Any, target: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """The loss of a batch: softmax cross entropy with targets as rows of probabilities."""
    logits = xp.matmul(xp.relu(xp.matmul(x, w1) + b1), w2) + b2
    largest = xp.max(logits, axis=1, keepdims=True)
    shifted = logits - largest
    return xp.mean(xp.log(xp.sum(xp.exp(shifted), axis=1)) - xp.sum(target * shifted, axis=1))


def training_step(xp: Any, x: Any, target: Any, *parameters: Any) -> Any:
    """The loss and the new parameters."""
    value_and_grad = xp.value_and_grad(lambda *p: network_loss(xp, x, target, *p), argnums=(0, 1, 2, 3))
    loss, gradients = value_and_grad(*parameters)
    return loss, tuple(p - RATE * g for p, g in zip(parameters, gradients, strict=True))


def training_step_numpy(x: Array, target: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Any:
    z = x @ w1 + b1
    h = np.maximum(z, np.float32(0))
    logits = h @ w2 + b2
    shifted = logits - logits.max(1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(1, keepdims=True)
    loss = (np.log(total[:, 0]) - (target * shifted).sum(1)).mean()
    by_logits = (e / total - target) / np.float32(len(x))
    by_z = np.where(z > 0, by_logits @ w2.T, np.float32(0))
    gradients = (x.T @ by_z, by_z.sum(0), h.T @ by_logits, by_logits.sum(0))
    rate = np.float32(RATE)
    return loss, tuple(p - rate * g for p, g in zip((w1, b1, w2, b2), gradients, strict=True))


def workloads(quick: bool) -> list[Workload]:
    """All of them, smallest first."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    made: list[Workload] = []
    for rows, columns in SIZES[: 2 if quick else 3]:
        size = f"{rows}x{columns}"
        x, a, b, c = (normal(rows, columns) for _ in range(4))
        weight, bias = normal(columns), normal(columns)
        made += [
            Workload(
                f"A {size}", (x,), chain_a, chain_a_numpy, (), "where(a * 0.5 > 0, a * 0.5, 0) + 1", chain_a_netcl
            ),
            Workload(
                f"B {size}", (a, b, c), chain_b, chain_b_numpy, (), "tanh(where((a + b) * c > 0, (a + b) * c, 0))",
                chain_b_netcl,
            ),
            Workload(f"B fwd+bwd {size}", (a, b, c), chain_b, chain_b_gradients, (0, 1, 2), "", chain_b_netcl),
            Workload(f"softmax {size}", (x,), softmax, softmax_numpy),
            Workload(f"layer_norm {size}", (x, weight, bias), layer_norm, layer_norm_numpy),
            Workload(
                f"layer_norm fwd+bwd {size}", (x, weight, bias), layer_norm, layer_norm_gradients, (0, 1, 2)
            ),
        ]  # fmt: skip
    made.append(Workload("matmul 512", (normal(512, 512), normal(512, 512)), product, np.matmul))
    target = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 128)]
    parameters = (normal(64, 128) * np.float32(0.1), normal(128), normal(128, 10) * np.float32(0.1), normal(10))
    made.append(Workload("digits MLP step", (normal(128, 64), target, *parameters), training_step, training_step_numpy))
    return made


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--only", default="", help="workloads whose name begins with this")
    given = parser.parse_args()
    harness.restart(given.threads)
    print(harness.header(("nablair", "numpy", "numexpr", "jax", "netcl", "llvmlite"), given.threads), flush=True)
    rows: dict[str, Result] = {}
    for workload in workloads(given.quick):
        if workload.name.startswith(given.only):
            contestants, remarks = workload.contestants()
            rows[workload.name] = result = harness.compete(
                contestants, threads=given.threads, rounds=3 if given.quick else 15
            )
            result.remarks += remarks
    print(harness.table(rows, SYSTEMS))


if __name__ == "__main__":
    main()
