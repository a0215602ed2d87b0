"""The operators that a mode sees are those that PyTorch's sees.

Left out of the comparison: `detach`, of which PyTorch makes more (it copies a saved
result again when it reads it). What else differs stands in `DIFFERENCES`, with why; the
run prints it.
"""

from __future__ import annotations

import pytest
import taeda
import torch


def sequence(lib, make, run) -> list[str]:
    """Operators of run(lib, make(lib)) in order, without `aten.`."""
    from importlib import import_module

    module = import_module(f"{lib.__name__}.utils._python_dispatch")
    names: list[str] = []

    class Log(module.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func).removeprefix("aten."))
            return func(*args, **(kwargs or {}))

    lib.manual_seed(0)
    made = make(lib)
    with Log():
        run(lib, made)
    return [name for name in names if name != "detach.default"]


def _mlp(lib):
    nn = lib.nn
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Sigmoid())
    return net, lib.randn(5, 4), lib.randn(5, 3)


def _step(lib, made):
    net, x, y = made
    lib.nn.functional.mse_loss(net(x), y).backward()


def _conv(lib):
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 3),
    )
    return net, lib.randn(2, 1, 8, 8), lib.arange(2)


def _classify(lib, made):
    net, x, y = made
    lib.nn.functional.cross_entropy(net(x), y).backward()


def _x(lib):
    return lib.randn(5, 4), lib.randn(4, 5), lib.randn(3, 5, 4)


def _views(lib, made):
    x, _, z = made
    x[0], x[:, 1], x[1:3], x.T, x.reshape(-1), x.view(2, 10), x.flatten()
    x.unsqueeze(0).squeeze(0), x.expand(2, 5, 4), z.transpose(0, 1), z.permute(2, 0, 1)
    x.split(2), z.select(0, 1), z.narrow(1, 0, 2), z.mT


def _pointwise(lib, made):
    x, y, _ = made
    x + 1, 1 - x, x / 2, x**2, x * x, -x, x.exp().log1p(), x > 0, x.abs().sqrt()
    lib.where(x > 0, x, y.T), lib.maximum(x, x), x.clone().mul_(2).relu_()


def _reductions(lib, made):
    x, _, _ = made
    x.sum(), x.sum(0), x.mean(1), x.var(0), x.std(), x.max(), x.max(0), x.argmax()
    x.prod(), x.cumsum(0), x.softmax(-1), x.log_softmax(0), x.norm(), x.logsumexp(0)
    x.topk(2), x.sort()


def _products(lib, made):
    x, y, z = made
    x @ y, z @ y, z @ y[:, 0], z @ z.mT, lib.einsum("ij,jk->ik", x, y), x[0] @ y


def _factories(lib, made):
    x, _, _ = made
    lib.ones(2), lib.zeros(2), lib.empty(2), lib.randn(2), lib.arange(3), lib.eye(2)
    lib.full((2,), 1.0), lib.zeros_like(x), lib.linspace(0, 1, 3), lib.tensor([1.0])
    lib.rand(2), lib.cat([x, x]), lib.stack([x, x])


PROGRAMS = {
    "mlp": (_mlp, _step),
    "conv": (_conv, _classify),
    "views": (_x, _views),
    "pointwise": (_x, _pointwise),
    "reductions": (_x, _reductions),
    "products": (_x, _products),
    "factories": (_x, _factories),
}

_BY_FORMULA = "the derivative is the record's expression, of elementary operators"
_T = "the derivative transposes by name of the dims"
_FUSED = "cross entropy over rows is one operator"
_ONE_T = "a weight is transposed once, its gradient is made in its own layout"

# program -> (PyTorch's names, ours in their place, why), in order
DIFFERENCES: dict[str, list[tuple[list[str], list[str], str]]] = {
    "mlp": [
        ([], ["expand.default"] * 2, "mse_loss is a composite that broadcasts"),
        (
            ["sigmoid_backward.default", "t.default"],
            [
                "neg.default",
                "add.Tensor",
                "mul.Tensor",
                "mul.Tensor",
            ],
            _BY_FORMULA,
        ),
        (["t.default"], ["transpose.int"], _T),
        (["t.default"], [], _ONE_T),
        (
            ["t.default", "threshold_backward.default", "t.default"],
            ["le.Scalar", "where.ScalarSelf", "transpose.int"],
            _BY_FORMULA,
        ),
        (["t.default"], [], _ONE_T),
        (["t.default"], [], _ONE_T),
    ],
    "conv": [
        (["empty.memory_format"], [], "batch norm needs no reserve"),
        (
            ["_log_softmax.default", "nll_loss_forward.default"],
            ["_cross_entropy_rows.default"],
            _FUSED,
        ),
        (
            [
                "nll_loss_backward.default",
                "_log_softmax_backward_data.default",
                "t.default",
            ],
            ["_cross_entropy_rows_backward.default"],
            _FUSED,
        ),
        (["t.default"], ["transpose.int"], _T),
        (["t.default"], [], _ONE_T),
        (["t.default"], [], _ONE_T),
        (
            ["threshold_backward.default"],
            ["le.Scalar", "where.ScalarSelf"],
            _BY_FORMULA,
        ),
    ],
    "views": [(["permute.default"], ["transpose.int"], "x.T of a matrix")],
    "pointwise": [(["permute.default"], ["transpose.int"], "x.T of a matrix")],
    "products": [
        (["permute.default"], [], "einsum leaves out a permutation of nothing"),
        (["view.default"], ["squeeze.dims"], "einsum drops the dims that it added"),
        (["squeeze_.dim"], ["squeeze.dim"], "vector @ matrix: out of place"),
    ],
}


def differences(want: list[str], got: list[str]) -> list[tuple[list, list]]:
    """The stretches in which two sequences differ."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, want, got, autojunk=False).get_opcodes()
    return [(want[a:b], got[c:d]) for tag, a, b, c, d in blocks if tag != "equal"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_what_pytorchs_sees(name):
    want = sequence(torch, *PROGRAMS[name])
    got = sequence(taeda, *PROGRAMS[name])
    found = differences(want, got)
    expected = DIFFERENCES.get(name, [])
    for (theirs, ours), (_, _, why) in zip(found, expected, strict=False):
        print(f"{name}: {theirs} -> {ours}: {why}")
    assert found == [(theirs, ours) for theirs, ours, _ in expected]
    assert len(want) >= 13
