"""Exported graphs are PyTorch's: calls, names, signature."""

from __future__ import annotations

import pathlib
import sys
from collections import namedtuple

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fx"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import models
from both import check


def told(L, ep):
    """What both libraries must agree on."""
    nodes = [(n.op, n.name, str(n.target)) for n in ep.graph.nodes]
    signature = [str(s) for s in ep.graph_signature.input_specs]
    signature += [str(s) for s in ep.graph_signature.output_specs]
    args = [[str(a) for a in n.args] for n in ep.graph.nodes]
    return [nodes, args, signature, sorted(ep.state_dict), sorted(ep.constants)]


def exported(make, train, *sizes, integers=False):
    def program(L):
        net = make(L).train(train)
        x = L.values(*sizes)
        x = (x.abs() * 2).long() if integers else x
        ep = L.at("export").export(net, (x,))
        return told(L, ep)

    return program


MODELS = {
    "mlp": exported(models.mlp, True, 3, 4),
    "cnn-train": exported(models.cnn, True, 3, 3, 4, 4),
    "cnn-eval": exported(models.cnn, False, 3, 3, 4, 4),
    "residual-eval": exported(models.residual, False, 2, 3, 16, 16),
    "residual-train": exported(models.residual, True, 2, 3, 16, 16),
    "gpt": exported(models.gpt, True, 2, 5, integers=True),
    "masked": exported(models.masked, True, 2, 5, 4),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    check(MODELS[name])


def module_of(L, forward, **state):
    """A module with this forward and these buffers."""

    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = L.nn.Linear(3, 2)
            for name, value in state.items():
                self.register_buffer(name, value)

    Net.forward = forward
    return L.filled(Net())


Pair = namedtuple("Pair", "first second")


def structures(L):
    def forward(self, x, *xs, scale=2.0, flag=True, table=None, **rest):
        y = x * scale if flag else x
        return {"o": y + sum(xs), "t": (table["a"][0], None, 3, "s"), "x": x}

    args = [L.values(2, 3) + i for i in range(5)]
    words = {"table": {"a": [args[3]]}, "scale": 3.0, "rest": args[4]}
    ep = L.at("export").export(module_of(L, forward), tuple(args[:3]), words)
    module = ep.module()
    result = module(*args[:3], **words)
    return told(L, ep), ep.module().code, result, list(ep.graph_signature.user_inputs)


def tuples(L):
    def forward(self, pair, others):
        return Pair(pair.first + others[0], [others[1]["k"]])

    x = L.values(2)
    args = (Pair(x, x + 1), [x + 2, {"k": x + 3}])
    ep = L.at("export").export(module_of(L, forward), args)
    result = ep.module()(*args)
    return told(L, ep), type(result).__name__, list(result)


def mutations(L):
    def forward(self, x):
        self.steps.add_(1)
        self.total = self.total + x.sum()
        x.mul_(2)
        return x + self.steps

    net = module_of(L, forward, steps=L.zeros(()), total=L.zeros(()))
    net.steps.zero_(), net.total.zero_()
    ep = L.at("export").export(net, (L.values(2, 3),))
    core = ep.run_decompositions()
    module, x, y = core.module(), L.values(2, 3), L.values(2, 3)
    first = module(x)
    return (
        told(L, ep),
        told(L, core),
        [first, ep.module()(y), x, y, dict(core.named_buffers())],
        dict(core.graph_signature.buffers_to_mutate),
        dict(core.graph_signature.user_inputs_to_mutate),
    )


def constants(L):
    shift = L.ones(3)

    class Tied(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = L.nn.Linear(3, 3)
            self.b, self.c = self.a, L.ones(3) * 2
            self.register_buffer("once", L.ones(3), persistent=False)
            self.unused = L.nn.Parameter(L.ones(2))

        def forward(self, x):
            return self.b(self.a(x)) * self.c + self.once + shift

    ep = L.at("export").export(L.filled(Tied()), (L.values(2, 3),))
    module = ep.module()
    return (
        told(L, ep),
        module.code,
        list(module.state_dict()),
        module(L.values(4, 3)[:2]),
    )


def symbols(L):
    export = L.at("export")

    def forward(self, x, y):
        return self.lin(x) + y[1:].sum(), x.new_zeros(x.shape[0], 1)

    d = export.Dim("d", min=3, max=9)
    shapes = {"x": {0: d}, "y": {0: 2 * d + 1}}
    x, y = L.values(4, 3), L.values(9)
    ep = export.export(module_of(L, forward), (x, y), dynamic_shapes=shapes)
    results = [ep.module()(L.values(n, 3), L.values(2 * n + 1)) for n in (3, 4, 9)]
    bounds = [(int(r.lower), int(r.upper)) for r in ep.range_constraints.values()]
    calls = [str(n.target) for n in ep.graph.nodes if n.op == "call_function"]
    return sorted(calls), bounds, results


def grad_modes(L):
    def forward(self, x):
        with L.no_grad():
            y = self.lin(x)
        return self.lin(x) * y

    ep = L.at("export").export(module_of(L, forward), (L.values(2, 3),))
    out = ep.module()(L.values(2, 3))
    out.sum().backward()
    return out, [p.grad for p in ep.parameters()]


def assigned(L):
    def forward(self, x):
        self.last = x + 1
        return x * 2

    model = module_of(L, forward)
    with pytest.warns(UserWarning, match="attribute self.last was assigned during"):
        ep = L.at("export").export(model, (L.ones(2),))
    # PyTorch leaves a fake tensor there.
    assert L.root.__name__ == "torch" or not hasattr(model, "last")
    return told(L, ep)


def loops(L):
    def forward(self, x):
        for _ in range(3):
            x = x.relu() + 1
            x.exp().log()
        return x.chunk(2), x.max(1), x.split(1, 0)[0], L.cat([x, x], 1)

    ep = L.at("export").export(module_of(L, forward), (L.values(2, 4),))
    return told(L, ep), ep.module()(L.values(2, 4))


PROGRAMS = [structures, tuples, mutations, constants, symbols, grad_modes, loops]
PROGRAMS += [assigned]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program) -> None:
    check(program)


def test_printed_text_is_that_of_pytorch() -> None:
    def shown(L):
        net = models.mlp(L)
        ep = L.at("export").export(net, (L.values(3, 4),))
        lines = str(ep).splitlines()
        return [line for line in lines if "# File:" not in line]

    check(shown)


def test_core_graphs() -> None:
    def program(L):
        ep = L.at("export").export(models.mlp(L), (L.values(3, 4),))
        core = ep.run_decompositions()
        kept = L.at("export").default_decompositions()
        del kept[L.ops.aten.linear.default]
        whole = ep.run_decompositions(kept)
        return told(L, core), [str(n.target) for n in whole.graph.nodes]

    check(program)
