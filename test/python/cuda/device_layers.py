"""Layers and factors that are made of several kernels, against the CPU's."""

from __future__ import annotations

import pytest
import taeda
from device_operators import agree
from taeda import nn
from taeda.nn import functional

Tensor = taeda.Tensor
RNN = taeda.nn.utils.rnn


def on_both(build: callable, run: callable) -> tuple[list[Tensor], list[Tensor]]:
    """What run(module, device) gives with the same module on either side, with the
    gradients of its parameters."""
    found = []
    taeda.manual_seed(1)
    module = build()
    for device in ("cpu", "cuda"):
        module = module.to(device)
        module.zero_grad()
        results = run(module, device)
        sum((r * r.detach().cos()).sum() for r in results).backward()
        grads = [p.grad.clone() for p in module.parameters()]
        found.append([r.detach() for r in results] + grads)
    return found[0], found[1]


def all_agree(here: list[Tensor], there: list[Tensor]) -> None:
    assert len(here) == len(there)
    for want, got in zip(here, there, strict=True):
        assert got.is_cuda and agree(got, want), (got, want)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "relu", "projected"])
def test_recurrent_layers(kind: str) -> None:
    x = taeda.randn(4, 3, 5)
    lengths = taeda.tensor([4, 2, 1])

    def build() -> nn.Module:
        given = {"relu": {"nonlinearity": "relu"}, "projected": {"proj_size": 2}}
        name = {"relu": "RNN", "projected": "LSTM"}.get(kind, kind)
        return getattr(nn, name)(
            5, 3, num_layers=2, bidirectional=True, **given.get(kind, {})
        )

    def run(module: nn.Module, device: str) -> list[Tensor]:
        padded, state = module(x.to(device))
        packed = RNN.pack_padded_sequence(x.to(device), lengths)
        again, last = module(packed)
        states = [*state, *last] if isinstance(state, tuple) else [state, last]
        return [padded, again.data, *states]

    all_agree(*on_both(build, run))


def test_recurrent_layers_of_half_sum_as_float() -> None:
    taeda.manual_seed(2)
    module = nn.LSTM(8, 4).half()
    x = taeda.randn(6, 2, 8).half()
    want = module(x)[0]
    assert agree(module.cuda()(x.cuda())[0], want)


def test_cells() -> None:
    x, h = taeda.randn(3, 4), taeda.randn(3, 2)
    for make in (nn.GRUCell, nn.RNNCell):
        all_agree(
            *on_both(
                lambda make=make: make(4, 2),
                lambda m, device: [m(x.to(device), h.to(device))],
            )
        )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (9, 15)])
def test_antialiased_resizing(mode: str, size: tuple[int, int]) -> None:
    x = taeda.rand(2, 3, 7, 11, requires_grad=True)

    def resized(t: Tensor) -> Tensor:
        return functional.interpolate(t, size, mode=mode, antialias=True)

    want, got = resized(x), resized(x.cuda())
    assert agree(got.detach(), want.detach())
    weights = taeda.rand_like(want)
    (mine,) = taeda.autograd.grad(want, x, weights)
    (there,) = taeda.autograd.grad(got, x, weights.cuda())
    assert agree(there.cuda(), mine)
    pixels = (x.detach() * 255).to(taeda.uint8)
    assert taeda.equal(resized(pixels.cuda()).cpu(), resized(pixels))


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
def test_factors(dtype: taeda.dtype) -> None:
    taeda.manual_seed(4)
    a = taeda.randn(2, 4, 4, dtype=dtype) + 3 * taeda.eye(4, dtype=dtype)
    there = a.cuda()
    assert agree(taeda.linalg.matrix_exp(there), taeda.linalg.matrix_exp(a))
    values, vectors = taeda.linalg.eig(there)
    assert values.is_cuda and vectors.is_cuda
    wide = there.to(taeda.complex128)
    assert agree(wide @ vectors, (vectors * values.unsqueeze(-2)).cpu())
    b = taeda.randn(2, 4, 2, dtype=dtype)
    found = taeda.linalg.lstsq(there, b.cuda(), driver="gels")
    assert agree(there @ found.solution, b)
    symmetric = a + a.mT
    ld, pivots = taeda.linalg.ldl_factor(symmetric.cuda())
    x = taeda.linalg.ldl_solve(ld, pivots, b.cuda())
    assert agree(symmetric.cuda() @ x, b)
    with pytest.raises(RuntimeError, match="square"):
        taeda.linalg.eig(taeda.ones(2, 3, device="cuda"))


def test_gradients_are_scaled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    w = taeda.ones(3, device="cuda", requires_grad=True)
    optimizer = taeda.optim.SGD([w], lr=1.0)
    stepped = []
    monkeypatch.setattr(optimizer, "step", lambda: stepped.append(w.grad.tolist()))
    scaler = taeda.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2)
    scales = []
    for bad in (False, True, False, False):
        optimizer.zero_grad()
        scaler.scale((w * (float("inf") if bad else 0.5)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert stepped == [[0.5] * 3] * 3
    assert scales == [8.0, 4.0, 4.0, 8.0]
    grads = [
        taeda.tensor([2.0, 4.0], device="cuda", dtype=taeda.half),
        taeda.ones(2, 3, device="cuda").t(),
    ]
    flag = taeda.zeros((), device="cuda")
    factor = taeda.tensor(0.25, device="cuda")
    taeda._amp_foreach_non_finite_check_and_unscale_(grads, flag, factor)
    assert grads[0].tolist() == [0.5, 1.0] and flag.item() == 0
    assert taeda.equal(grads[1].cpu(), taeda.full((3, 2), 0.25))


def test_sparse_tensors() -> None:
    dense = taeda.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    there = dense.cuda().to_sparse()
    assert there.is_cuda and there.is_sparse and there.device.type == "cuda"
    assert taeda.equal(there.to_dense().cpu(), dense)
    x = taeda.randn(3, 2)
    assert agree(taeda.sparse.mm(there, x.cuda()), dense @ x)
    assert agree((there + there).to_dense(), dense * 2)
    assert agree(there.sin().to_dense(), dense.sin())
    rows = dense.cuda().to_sparse_csr()
    assert rows.crow_indices().tolist() == [0, 1, 3] and rows.is_cuda
    assert agree(rows @ x.cuda(), dense @ x)
    assert taeda.equal(there.cpu().to_dense(), dense)
    assert taeda.equal(dense.to_sparse().cuda().to_dense().cpu(), dense)
    table = nn.Embedding(4, 2, sparse=True, device="cuda")
    table(taeda.tensor([1, 1, 3], device="cuda")).sum().backward()
    assert table.weight.grad.is_sparse
    want = taeda.tensor([[0.0], [2.0], [0.0], [1.0]]).expand(4, 2)
    assert taeda.equal(table.weight.grad.to_dense().cpu(), want)
