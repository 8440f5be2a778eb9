"""The smallest network that needs a hidden layer: exclusive or, with Tensors that know their gradients.

python examples/xor.py
"""

from __future__ import annotations

import argparse

import numpy as np

from nablair import autograd as ag


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args().steps

    rng = np.random.default_rng(0)
    x = ag.asarray(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32))
    target = ag.asarray(np.array([[0], [1], [1], [0]], np.float32))
    w1 = ag.Tensor(rng.standard_normal((2, 16)).astype(np.float32), requires_grad=True)
    b1 = ag.Tensor(np.zeros(16, np.float32), requires_grad=True)
    w2 = ag.Tensor(rng.standard_normal((16, 1)).astype(np.float32), requires_grad=True)
    b2 = ag.Tensor(np.zeros(1, np.float32), requires_grad=True)
    optimizer = ag.optim.Adam([w1, b1, w2, b2], lr=0.05)

    for step in range(steps):
        logits = ag.tanh(x @ w1 + b1) @ w2 + b2
        loss = ag.bce_with_logits(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4}  loss {float(loss):.6f}")

    with ag.no_grad():
        answers = ag.sigmoid(ag.tanh(x @ w1 + b1) @ w2 + b2).numpy()
    for (a, b), answer in zip(x.numpy(), answers[:, 0], strict=True):
        print(f"{a:.0f} xor {b:.0f} = {answer:.3f}")
    accuracy = float(((answers > 0.5) == (target.numpy() > 0.5)).mean())
    print(f"accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
