"""Programs that go on with numbers that they read off tensors, for both libraries.

Run as a program it prints, for PyTorch, each program's results and how many graphs a
backend had been given after each call.
"""

from __future__ import annotations

import json
import random
import sys

from both_libraries import plain

PROGRAMS: dict = {}
# Four, none, one and three positive elements.
CALLS = [
    [1.0, -2.0, 3.0, -4.0, 5.0, 6.0],
    [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0],
    [1.0, -2.0, -3.0, -4.0, -5.0, -6.0],
    [1.0, -2.0, 3.0, -4.0, 5.0, -6.0],
]


def program(function):
    """Adds a function of (library, x, the number of its positive elements)."""
    PROGRAMS[function.__name__] = function
    return function


@program
def made_of_a_number(L, x, n):
    k = n.item()
    return L.ones(k) * 2, L.zeros(k, 3), L.full((k,), 2.0), x.new_zeros(2, k)


@program
def made_of_a_tensor(L, x, n):
    return L.ones(n) + 1, L.zeros((n, 2))


@program
def ranges(L, x, n):
    k = n.item()
    return L.arange(k) * 2, L.arange(1, k + 2), L.arange(n)


@program
def beginnings(L, x, n):
    return x[: n.item()] * 2, x[:n].sum(), x.narrow(0, 0, n.item()) + 1


@program
def windows(L, x, n):
    k = n.item()
    return x[k - 1 : k + 1] * 2, x[n - 1 :] + 1, x.view(2, 3)[..., n - 2 :] * 1


@program
def a_position(L, x, n):
    return x[n.item()] * 2


@program
def expanded(L, x, n):
    return L.ones(1).expand(n.item()) * 2


@program
def checked(L, x, n):
    k = n.item()
    L._check(k >= 0)
    L._check(k < 10)
    L._check_is_size(k)
    return L.zeros(k) + 1


@program
def written_to(L, x, n):
    y = x.clone()
    y[: n.item()] = 7
    return y


@program
def arithmetic(L, x, n):
    return x * n.item(), x + x[0].item(), x * x.sum().item() + 1, n.item() + 1


@program
def converted(L, x, n):
    return x * float(x.sum()) + int(n), x * int(x.sum()), int(x[1].item()) + x


@program
def returned(L, x, n):
    return x.sum().item(), int(n), float(x[0]), float(n)


@program
def lists(L, x, n):
    return x.split(L.stack([n, 6 - n]).tolist()), x.long().tolist(), n.tolist()


@program
def random_numbers(L, x, n):
    return x * random.randint(0, 10) + random.uniform(1, 2), random.randint(2, 6)


@program
def random_sizes(L, x, n):
    return L.ones(random.randint(2, 6))


def run(L, name: str) -> list:
    """[(graphs, result)] after each call of a program."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    L.compiler.reset()
    random.seed(5)

    def entry(x):
        return PROGRAMS[name](L, x, (x > 0).sum())

    compiled = L.compile(entry, backend=backend, fullgraph=True)
    seen = []
    with L._dynamo.config.patch(capture_scalar_outputs=True):
        for values in CALLS:
            result = compiled(L.tensor(values))
            seen.append([len(graphs), plain(L, result)])
    return seen


if __name__ == "__main__":
    import torch

    json.dump({name: run(torch, name) for name in PROGRAMS}, sys.stdout)
