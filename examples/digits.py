"""Learn to read handwritten digits, then look at the compiled program.

    python examples/digits.py

Trains a network of two layers on 1,797 images of 8 x 8 pixels in one jitted step a batch, prints its accuracy on images
that it has not seen, and draws the loss.  Then a table says how many ops and launches the loss and its gradients are at
each level of IR, one fused kernel is shown (all levels and three targets' languages go to files), and each device that
is here computes the loss and its gradients of one batch; if any of them disagrees, the exit status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nablair import autograd as ag
from nablair.ir.parser import parse_module

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
HIDDEN = 512
BATCH = 48
RATE = 0.05
MOMENTUM = 0.9
DECAY = 1e-4
TOLERANCE = 1e-5
"""How far devices may differ, relative to the largest element of an array."""

Parameters = dict[str, Any]


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images (n, 64) in [0, 1] and classes, shuffled: four fifths of each class to learn from, the rest to test on."""
    with gzip.open(DATA, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    images, classes = table[:, :64] / np.float32(16), table[:, 64].astype(np.int64)
    rng = np.random.default_rng(seed)
    learn: list[np.ndarray] = []
    test: list[np.ndarray] = []
    for digit in range(10):
        members = rng.permutation(np.flatnonzero(classes == digit))
        cut = len(members) * 4 // 5
        learn.append(members[:cut])
        test.append(members[cut:])
    first, second = rng.permutation(np.concatenate(learn)), np.concatenate(test)
    return images[first], classes[first], images[second], classes[second]


def initial(seed: int) -> Parameters:
    """Random weights, of a variance that keeps that of the signal (He et al., 2015), and biases of 0."""
    rng = np.random.default_rng(seed)

    def weights(inputs: int, outputs: int) -> Any:
        scale = np.sqrt(2.0 / inputs)
        return ag.asarray((rng.standard_normal((inputs, outputs)) * scale).astype(np.float32))

    return {
        "w1": weights(64, HIDDEN),
        "b1": ag.zeros((HIDDEN,)),
        "w2": weights(HIDDEN, 10),
        "b2": ag.zeros((10,)),
    }


def predict(p: Parameters, x: Any) -> Any:
    """A score for each digit."""
    return ag.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def loss(p: Parameters, x: Any, classes: Any) -> Any:
    """The cross entropy of a batch."""
    return ag.cross_entropy(predict(p, x), classes)


def step(p: Parameters, velocity: Parameters, x: Any, classes: Any) -> tuple[Any, Parameters, Parameters]:
    """One step of gradient descent with momentum: the loss, new parameters, new velocities."""
    value, gradients = ag.value_and_grad(loss)(p, x, classes)
    velocity = {n: MOMENTUM * velocity[n] + gradients[n] + DECAY * p[n] for n in p}
    return value, {n: p[n] - RATE * velocity[n] for n in p}, velocity


def batches(images: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Whole batches in random order."""
    order = rng.permutation(len(images))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield images[chosen], classes[chosen]


def train(
    epochs: int, device: str, seed: int, images: np.ndarray, classes: np.ndarray
) -> tuple[Parameters, list[float]]:
    """The parameters after some epochs, and the loss of each batch."""
    from tqdm import tqdm

    rng = np.random.default_rng(seed)
    compiled = ag.jit(step, device=device)
    p = initial(seed)
    velocity = {n: ag.zeros_like(v) for n, v in p.items()}
    losses: list[float] = []
    with tqdm(range(epochs), desc="training", unit="epoch", disable=None) as bar:  # None: shown on terminals only
        for _ in bar:
            for x, labels in batches(images, classes, rng):
                value, p, velocity = compiled(p, velocity, x, labels)
                losses.append(float(value))
            bar.set_postfix(loss=f"{np.mean(losses[-20:]):.4f}")
    return p, losses


def draw(losses: list[float], path: Path) -> None:
    """The loss of every batch, and their running mean, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    window = min(50, len(losses))
    mean = np.convolve(losses, np.ones(window) / window, "valid")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, linewidth=0.5, alpha=0.4, label="batch")
    axes.semilogy(np.arange(len(mean)) + window - 1, mean, label=f"mean of {window}")
    axes.set(xlabel="step", ylabel="cross entropy", title="Digits")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def fused(x: Any, bias: Any) -> Any:
    """A chain that becomes one kernel."""
    return ag.tanh(ag.relu(x + bias) * 0.5)


def dump(p: Parameters, x: Any, classes: Any, folder: Path) -> list[tuple[str, int, int]]:
    """Write the loss with its gradients at every level, and a fused kernel in the language of each target, to files.

    Of each level its name, how many ops there are and how many of them launch a kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    lowered = ag.jit(ag.value_and_grad(loss)).lower(p, x, classes)
    levels: list[tuple[str, int, int]] = []
    for stage in ("trace", "tensor", "kernel", "loop"):
        text = lowered.as_text(stage)
        (folder / f"loss.{stage}.mlir").write_text(text + "\n")
        names = [op.name for op in parse_module(text).walk()]
        levels.append((stage, len(names), names.count("kernel.launch") + names.count("func.call")))
    text = lowered.as_text("llvm")
    (folder / "loss.ll").write_text(text)
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    levels.append(("LLVM IR", len(lines), sum('@"main_k' in line for line in lines)))
    chain = ag.jit(fused).lower(np.zeros((64, HIDDEN), np.float32), np.zeros(HIDDEN, np.float32))
    for stage, suffix in (("kernel", "mlir"), ("llvm", "ll"), ("opencl", "cl"), ("ptx", "ptx")):
        (folder / f"fused.{suffix}").write_text(chain.as_text(stage).rstrip("\n") + "\n")
    return levels


def show(p: Parameters, x: Any, classes: Any, folder: Path) -> None:
    """What became of the program: a table, one fused kernel, and where the whole of it is."""
    print("\nloss and gradients   ops  launches")
    for level, ops, launches in dump(p, x, classes, folder):
        print(f"  {level:15} {ops:6} {launches or '':9}")
    print("\ntanh(relu(x + bias) * 0.5) is one kernel:")
    text = (folder / "fused.mlir").read_text()
    start = text.index("    %", text.index("func.func"))
    print(text[start : text.index("\n    }", start) + 6])
    print(f"\nall of it: {folder}/{{{','.join(sorted(f.name for f in folder.iterdir()))}}}\n")


def compare(p: Parameters, x: Any, classes: Any) -> bool:
    """Whether all devices that are here give the same loss and gradients."""
    names = ["cpu", *[d for d in ("opencl:0", "cuda:0") if d in ag.devices()], "ptx-sim"]
    for name in ("opencl:0", "cuda:0"):
        if name not in names:
            hint = "; pip install '.[opencl]' has one for any CPU" if name == "opencl:0" else ""
            print(f"{name:9} is not here{hint}")
    expected: list[np.ndarray] = []
    same = True
    for name in names:
        start = time.perf_counter()
        value, gradients = ag.jit(ag.value_and_grad(loss), device=name)(p, x, classes)
        arrays = [np.asarray(a) for a in (value, *[gradients[n] for n in sorted(gradients)])]
        seconds = time.perf_counter() - start
        if not expected:
            expected = arrays
            print(f"{name:9} reference: loss {float(arrays[0]):.7f}, {seconds:.2f} s")
            continue
        largest = max(float(np.abs(a - b).max()) for a, b in zip(arrays, expected, strict=True))
        agrees = all(
            np.allclose(a, b, rtol=0, atol=TOLERANCE * max(1.0, float(np.abs(b).max())))
            for a, b in zip(arrays, expected, strict=True)
        )
        same = same and agrees
        verdict = "agrees" if agrees else "DISAGREES"
        print(f"{name:9} {verdict}: loss {float(arrays[0]):.7f}, largest difference {largest:.1e}, {seconds:.2f} s")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", help="where to train: one of nablair's devices (a CUDA GPU, or else cpu)")
    parser.add_argument("--plot", type=Path, default=Path("build/digits_loss.png"))
    parser.add_argument("--dumps", type=Path, default=Path("build/digits"), help="where the IR of all levels goes")
    given = parser.parse_args()
    missing = [name for name in ("tqdm", "matplotlib") if find_spec(name) is None]
    if missing:
        print(f"digits.py needs {' and '.join(missing)}: pip install '.[demo]'", file=sys.stderr)
        return 1
    device = given.device or next((d for d in ag.devices() if d.startswith("cuda")), "cpu")

    images, classes, test_images, test_classes = load(given.seed)
    print(f"{len(images)} images to learn from, {len(test_images)} to test on; device {device}")
    start = time.perf_counter()
    p, losses = train(given.epochs, device, given.seed, images, classes)
    seconds = time.perf_counter() - start
    scores = np.asarray(ag.jit(predict, device=device)(p, test_images))
    accuracy = float((scores.argmax(1) == test_classes).mean())
    draw(losses, given.plot)
    print(f"{len(losses)} steps in {seconds:.1f} s, the loss curve is in {given.plot}")
    print(f"accuracy {accuracy:.4f}", flush=True)

    p = {n: ag.to_device(v, "cpu") for n, v in p.items()}
    x, labels = images[:BATCH], classes[:BATCH]
    show(p, x, labels, given.dumps)
    if not compare(p, x, labels):
        print("devices disagree", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
