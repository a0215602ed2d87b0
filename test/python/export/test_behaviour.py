"""Small programs that do the same here and in PyTorch, or fail alike."""

from __future__ import annotations

import copy
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fx"))

from both import attempt, check


def net_of(L, forward, **parts):
    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = L.nn.Linear(3, 2)
            for name, value in parts.items():
                setattr(self, name, value)

    Net.forward = forward
    return L.filled(Net())


def exported(L, forward, *args, kwargs=None, dynamic_shapes=None, **parts):
    return L.at("export").export(
        net_of(L, forward, **parts), args, kwargs, dynamic_shapes=dynamic_shapes
    )


def chosen(self, x, flag):
    return x + 1 if flag else x - 1


def optional(self, x, y=None, *, k=2):
    return x * k if y is None else x + y


def nested(self, d):
    return d["a"]["b"][0] + d["c"]


def by_size(self, x):
    return x + 1 if x.shape[0] > 3 else x - 1


def linear(self, x):
    return self.l(x)


def several(self, *xs, **words):
    return sum(xs) + words["z"]


def flags(L):
    def program(self, x):
        compiler = L.compiler
        x = x + (1 if compiler.is_compiling() else 2)
        x = x + (10 if compiler.is_dynamo_compiling() else 20)
        return x + (100 if compiler.is_exporting() else 200)

    return exported(L, program, L.zeros(1)).module()(L.zeros(1))


def constants(L):
    x = L.values(4, 3)
    told = [
        exported(L, chosen, x, True).module()(x, True),
        attempt(exported(L, chosen, x, True).module(), x, False),
        attempt(exported(L, chosen, x, "a").module(), x, "b"),
        attempt(exported(L, optional, x, kwargs={"k": 3}).module(), x, k=4),
        list(exported(L, optional, x, None).graph_signature.user_inputs),
    ]
    return told


def keywords(L):
    x = L.values(4, 3)
    ep = exported(L, optional, x, kwargs={"k": 3, "y": x})
    return [
        ep.module()(x, y=x, k=3),
        attempt(ep.module(), x, x),
        attempt(ep.module(), x=x, y=x, k=3),
        [n.name for n in ep.graph.nodes],
    ]


def trees(L):
    x, dim = L.values(4, 3), L.at("export").Dim
    args = {"a": {"b": [x]}, "c": x + 1}
    shapes = ({"a": {"b": [{0: dim("n")}]}, "c": {0: dim("n")}},)
    ep = exported(L, nested, args, dynamic_shapes=shapes)
    y = L.values(6, 3)
    other = ({"a": {"b": [{0: dim("n")}]}},)
    return [
        [n.name for n in ep.graph.nodes],
        ep.module()({"a": {"b": [y]}, "c": y}),
        attempt(exported, L, nested, args, dynamic_shapes=other),
    ]


def variadic(L):
    x = L.values(4, 3)
    ep = exported(L, several, x, x + 1, kwargs={"z": x + 2})
    return ep.module()(x, x + 1, z=x), [n.name for n in ep.graph.nodes]


def questions_about_sizes(L):
    x, Dim = L.values(4, 3), L.at("export").Dim

    def told(dim):
        ep = exported(L, by_size, x, dynamic_shapes=({0: dim},))
        sizes = (2, 3, 4, 9)
        return [attempt(ep.module(), L.values(n, 3)) for n in sizes]

    dims = (Dim("q"), Dim("q", min=4), Dim.DYNAMIC, Dim.AUTO)
    return [attempt(told, dim) for dim in dims]


def equal_sizes(L):
    def add(self, x, y):
        return x + y

    Dim, args = L.at("export").Dim, (L.values(4), L.values(4))
    told = []
    for first, second in (
        (Dim("p"), Dim("q")),
        (Dim("p"), Dim("p")),
        (Dim("p", max=5), Dim("p")),
        (Dim.DYNAMIC, Dim.DYNAMIC),
        (Dim.AUTO, None),
    ):
        ep = attempt(exported, L, add, *args, dynamic_shapes=({0: first}, {0: second}))
        calls = [(6, 6), (6, 4)] if not isinstance(ep, str) else []
        results = [attempt(ep.module(), L.values(a), L.values(b)) for a, b in calls]
        told.append([ep if isinstance(ep, str) else "exported", results])
    return told


def use_of_modules(L):
    x = L.values(4, 3)
    ep = exported(L, linear, x)
    module = ep.module()
    module(x).sum().backward()
    again = L.at("export").export(module, (x,))
    return [
        [p.grad for p in ep.parameters()],
        [n.name for n in again.graph.nodes],
        copy.deepcopy(module)(x),
        L.fx.Interpreter(module).run(x),
        [n for n, _ in module.named_parameters()],
        attempt(module.train),
        module.training,
    ]


def transforms(L):
    class Twice(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    layer = L.nn.Linear(3, 3)
    checkpoint = L.at("utils.checkpoint").checkpoint
    x = L.values(4, 3)
    programs = (
        lambda self, x: L.func.vmap(lambda a: a.sin().sum())(x),
        lambda self, x: Twice.apply(x) + 1,
        lambda self, x: checkpoint(self.layer, x, use_reentrant=False).shape[0] + x,
        lambda self, x: (x[L.tensor([0, 2])], x[[0, 1]], x[x.sum(1) > 0]),
    )
    return [exported(L, p, x, layer=layer).module()(x) for p in programs]


def hooks(L):
    layer = L.filled(L.nn.Linear(3, 3))
    layer.register_forward_hook(lambda m, a, out: out * 2)
    ep = exported(L, lambda self, x: self.layer(x), L.values(4, 3), layer=layer)
    return [n.name for n in ep.graph.nodes], ep.module()(L.values(4, 3))


def refusals(L):
    x = L.values(4, 3)
    programs = (
        lambda self, x: x.numpy(),
        lambda self, x: x + 1 if x.sum() > 0 else x,
        lambda self, x: object(),
    )
    return [isinstance(attempt(exported, L, p, x), str) for p in programs]


PROGRAMS = [
    *(flags, constants, keywords, trees, variadic, questions_about_sizes, equal_sizes),
    *(use_of_modules, transforms, hooks, refusals),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_behaviour(program) -> None:
    check(program)
