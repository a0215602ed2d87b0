"""Programs whose graphs say what stands in them, for either library.

`python written_programs.py` prints as JSON what a backend gets from PyTorch.
"""

from __future__ import annotations

import functools
import json
import operator


def _shown(value) -> str:
    if isinstance(value, str):
        return value
    if callable(value):
        return getattr(value, "__name__", str(value))
    return str(value)


def lines(gm) -> list[str]:
    """A graph's nodes: kind, name, target and arguments."""
    return [
        f"{n.op} {n.name} {_shown(n.target)} {n.args} {dict(n.kwargs)}"
        f" {getattr(n.type, '__name__', None)}"
        for n in gm.graph.nodes
    ]


def graphs_of(L, function, *calls) -> list:
    """The graphs of a function over several calls, and what these return."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(lines(gm))
        return gm.forward

    L._dynamo.reset()
    compiled = L.compile(function, backend=backend)
    results = [compiled(*args) for args in calls]
    return [
        graphs,
        [r.tolist() if isinstance(r, L.Tensor) else str(r) for r in results],
    ]


# Operators ---------------------------------------------------------------------------


def arithmetic(x):
    y = x * 4 + 1 - 2 / (1 + x * 0)
    z = x // 2 + 7 // x + x % 3 + 5 % x + x**2 + 2**x
    return (y @ z.t(), -y, abs(z))


def integers(x):
    n = x.long()
    a = n & 3 | 4 ^ n
    return (a << 1, 2 << n, 64 >> n, ~a)


def comparisons(x):
    return (x < 1, 1 < x, x <= x, 2 >= x, x == 1, x != 1, x > 1, x >= 1)


def in_place(x):
    y = x.clone()
    y += 2
    y *= y
    y -= 1
    y /= 2
    y //= 1
    y %= 5
    y **= 2
    return y


def into_numbers(x):
    a, b = 2, 5.0
    a += x
    b -= x
    parts = [x + 0]
    parts[0] *= 2
    return a, b, parts[0]


def by_functions(x):
    y = operator.mul(2, x)
    return operator.iadd(y, 1)


# Calls -------------------------------------------------------------------------------


def parts(x):
    first, second = x.chunk(2, 1)
    total = first + second
    total = total * first
    return total


def reads_of_elements(x):
    y = x[0]
    y = y[:, None]
    y[0] = 1
    return y


OPERATORS = [
    arithmetic,
    integers,
    comparisons,
    in_place,
    by_functions,
    parts,
    into_numbers,
]
OPERATORS += [reads_of_elements]


def functions(L):
    F = L.nn.functional

    def run(x):
        a = F.relu(x)
        b = F.softmax(a, -1)
        return F.layer_norm(b, (4,)).round()

    return run


def modules(L):
    class Inner(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = L.nn.Parameter(L.full((4,), 2.0))

        def forward(self, x, *, shift):
            return x * self.scale + shift

    class Outer(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, value, *more):
            out = self.inner(value, shift=more[0])
            return out - more[1]

    return Outer()


def helper_with_defaults(L):
    w = L.ones(4)

    def helper(x, w=w, *, v=w + 1):
        return w * v + x

    def run(x, helper):
        return helper(x)

    return run, helper


def named(L):
    x = L.arange(12.0).reshape(3, 4) + 1
    found = {f.__name__: graphs_of(L, f, (x,)) for f in OPERATORS}
    found["functions"] = graphs_of(L, functions(L), (x,))
    found["modules"] = graphs_of(L, modules(L), (x, x[0], x[1]))
    return found


# Functions made anew -----------------------------------------------------------------


def applied(x, g):
    return g(x)


def mapped(x, g):
    return sum(map(g, [x, x]))


def returned(x, g):
    return g, g(x)


def broken(L):
    def run(x, g):
        y = g(x)
        L._dynamo.graph_break()
        return g(y)

    return run


def _times(k):
    return lambda y: y * k


def _counter():
    n = 0

    def count(y):
        nonlocal n
        n += 1
        return y + n

    return count


def made_anew(L):
    x = L.arange(3.0)
    found = {
        "lambdas": graphs_of(L, applied, *((x, lambda y: y + 1) for _ in range(4))),
        "tensors": graphs_of(L, applied, *((x, _times(x + k)) for k in range(4))),
        "numbers": graphs_of(L, applied, *((x, _times(k)) for k in (2, 2, 3, 4))),
        "counters": graphs_of(L, applied, *((x, _counter()) for _ in range(3))),
        "mapped": graphs_of(L, mapped, *((x, _times(2)) for _ in range(3))),
        "broken": graphs_of(L, broken(L), *((x, _times(2)) for _ in range(3))),
        "partial": graphs_of(
            L,
            applied,
            *((x, functools.partial(lambda k, y: y * k, 2)) for _ in range(3)),
        ),
    }
    # `sum` begins with other text here, `0 + x`.
    found["mapped"] = [len(found["mapped"][0]), found["mapped"][1]]
    compiled, same = L.compile(returned, backend="eager"), []
    for _ in range(3):
        g = _times(2)
        same.append(compiled(x, g)[0] is g)
    found["returned"] = same
    found["compiled_in_a_function"] = compiled_in_a_function(L)
    return found


def compiled_in_a_function(L):
    L._dynamo.reset()
    graphs = []

    def backend(gm, inputs):
        graphs.append(len(lines(gm)))
        return gm.forward

    def step(k):
        @L.compile(backend=backend)
        def inner(x):
            return x * k

        return inner(L.arange(3.0)).tolist()

    return [[step(k) for k in (2, 2, 3, 4)], graphs]


def found_by(L) -> dict:
    """All of it, as JSON has it."""
    return json.loads(json.dumps({"named": named(L), "anew": made_anew(L)}))


if __name__ == "__main__":
    import torch

    print(json.dumps(found_by(torch)))
