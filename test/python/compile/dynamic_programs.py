"""Programs whose sizes and numbers differ from call to call, for both libraries.

Run as a program it prints, for PyTorch, each program's results and how many graphs a
backend had been given after each call.
"""

from __future__ import annotations

import json
import math
import sys

from both_libraries import plain

PROGRAMS: dict = {}


def program(calls=None, **settings):
    """Adds a function of (library, its arguments) with the arguments of its calls."""

    def add(function):
        PROGRAMS[function.__name__] = (function, calls, settings)
        return function

    return add


def rows(*counts, width: int = 3):
    """Makes tensors of so many rows."""
    return [lambda L, n=n: (numbers(L, n, width),) for n in counts]


def integers(*values, size: int = 3):
    """Makes a tensor and each of these values."""
    return [lambda L, v=v: (numbers(L, size), v) for v in values]


def numbers(L, *shape):
    """0.5, 1.5, ... of a shape."""
    return L.arange(math.prod(shape), dtype=L.float32).reshape(shape) + 0.5


@program(rows(4, 5, 6, 7))
def a_size_that_differs(L, x):
    return (x * 2).sum(0) + x.shape[0]


@program(rows(4, 5, 6), dynamic=False)
def never(L, x):
    return x * x.shape[0]


@program(rows(4, 5, 6), dynamic=True)
def at_once(L, x):
    return x * x.shape[0]


@program(rows(4, 5, 1, 0, 6, 1))
def none_and_one(L, x):
    return x.sum(0) + 1


@program(rows(4, 5, 6))
def results_with_sizes(L, x):
    return x + 1, tuple(x.shape), x.shape[0] * 2 + 1, x.numel(), [x.size(0)]


@program(rows(4, 5, 6, 7, 8, 9))
def a_branch(L, x):
    return x * 2 if x.shape[0] > 6 else x + 2


@program(rows(3, 4, 5, 3))
def a_loop_over_a_size(L, x):
    total = 0
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@program(rows(4, 6, 8, 10))
def halves(L, x):
    half = x.shape[0] // 2
    return L.cat([x[half:], x[:half]]), half, x.narrow(0, 1, half)


@program(rows(4, 5, 6))
def made_of_sizes(L, x):
    n = x.size(0)
    table = L.zeros(n, n).triu(1) + L.arange(n)
    return x * L.arange(n)[:, None], table, L.ones(n, 1).bool(), L.full((n,), 2.0)


@program(rows(5, 6, 7, 5))
def views(L, x):
    return x.view(x.shape[0], -1).sum(1), x.reshape(-1), x.t().contiguous()


@program(rows(5, 6, 7, 5))
def padded_to_a_multiple(L, x):
    missing = (4 - x.shape[0] % 4) % 4
    return L.nn.functional.pad(x, (0, 0, 0, missing))


@program(rows(4, 5, 6))
def a_root_of_a_size(L, x):
    return x / x.shape[0] ** 0.5, x * math.sqrt(x.shape[0])


@program(rows(4, 5, 6))
def rounded_quotients(L, x):
    n = x.shape[0]
    return x[: math.ceil(n / 2)], x[: int(n / 2)], math.floor(n / 3), max(n, 5)


@program(integers(1, 1, 0, 1, 2, -5))
def an_integer(L, x, k):
    return x + k


@program(integers(3, 4, 5, 6))
def integer_arithmetic(L, x, k):
    return x * k + k // 2, k * k - 1, k > 2


@program(integers(2, 3, 4))
def an_index(L, x, k):
    return x * [1, 2, 3, 4, 5][k]


@program(integers(2, 3, 4))
def a_key(L, x, k):
    return x * {2: 1, 3: 2, 4: 3}[k]


@program(integers(2, 3, 4))
def a_kind_of_number(L, x, k):
    return x * k if isinstance(k, int) and type(k) is int else x


@program(integers(2, 3, 4, size=12))
def a_divisor(L, x, k):
    return x.view(k, -1)


@program(integers(3, 4, 5, 6, size=9))
def a_length(L, x, n):
    return x[:n].sum(0), L.zeros(n) + n


@program(integers((1, 2), (1, 2), (2, 1), (2, 1)))
def a_pair(L, x, pair):
    return x * pair[0] + pair[1]


@program(integers({"a": 2}, {"a": 3}, {"a": 4}))
def a_dict(L, x, table):
    return x * table["a"]


@program(integers(2, 2.0, True, 2, 3))
def kinds_of_numbers(L, x, k):
    return x * k


@program(integers(0.5, 0.6, 0.7, 0.8))
def a_float(L, x, k):
    return x * k + 1


@program(integers(2.5, 3.5, 4.5))
def float_arithmetic(L, x, k):
    return x * math.sqrt(k) + k**2, k + 1


@program([lambda L, n=n: (numbers(L, n), numbers(L, n)) for n in (3, 4, 5)])
def equal_sizes(L, a, b):
    return a + b


@program([lambda L, n=n: (numbers(L, n), numbers(L, n + 2)) for n in (3, 4, 5)])
def joined(L, a, b):
    both = L.cat([a, b])
    return both * both.shape[0], both[: a.shape[0]]


@program([lambda L, s=s: (numbers(L, *s),) for s in ((3,), (3, 3), (4,), (5,))])
def ranks(L, x):
    return x + 1


@program([lambda L, n=n: (numbers(L, 2, n, 4),) * 2 for n in (3, 4, 6, 5)])
def attention(L, q, k):
    scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
    mask = L.ones(q.shape[1], k.shape[1]).tril().bool()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ k


@program([lambda L, n=n: (numbers(L, 4, n),) for n in (4, 5, 6)])
def a_stride(L, x):
    return x + x.stride(0), x.stride()


def marking(L, how: str, n: int, **limits):
    """A tensor of n rows whose first dim is marked."""
    x = numbers(L, n, 3)
    getattr(L._dynamo, how)(x, 0, **limits)
    return (x,)


@program([lambda L, n=n: marking(L, "mark_dynamic", n) for n in (4, 5, 9)])
def marked(L, x):
    return x + x.shape[0]


@program([lambda L, n=n: marking(L, "mark_dynamic", n) for n in (4, 5)], dynamic=False)
def marked_against_the_setting(L, x):
    return x + 1


@program([lambda L, n=n: marking(L, "maybe_mark_dynamic", n) for n in (4, 5, 6)])
def marked_weakly(L, x):
    return x + 1 if x.shape[0] == 4 else x - 1


@program([lambda L, n=n: marking(L, "mark_static", n) for n in (4, 5, 6)])
def marked_as_static(L, x):
    return x * 2


def run(L, name: str) -> list:
    """[(graphs, result)] after each call of a program."""
    function, calls, settings = PROGRAMS[name]
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    L.compiler.reset()

    def entry(*args):
        return function(L, *args)

    compiled = L.compile(entry, backend=backend, **settings)
    seen = []
    for make in calls:
        result = compiled(*make(L))
        seen.append([len(graphs), plain(L, result)])
    return seen


if __name__ == "__main__":
    import torch

    json.dump({name: run(torch, name) for name in PROGRAMS}, sys.stdout)
