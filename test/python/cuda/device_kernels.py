"""Operators with kernels of their own on the device: what records' calls leave out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import taeda
from device_operators import agree
from taeda.nn import functional

Tensor = taeda.Tensor


def same(function: Callable, *tensors: Tensor) -> None:
    """The function gives on the device what it gives on the CPU."""
    want = function(*tensors)
    got = function(*(t.cuda() for t in tensors))
    if isinstance(want, Tensor):
        want, got = [want], [got]
    assert len(want) == len(got)
    for a, b in zip(got, want, strict=True):
        assert a.is_cuda and agree(a, b), (a, b)


@pytest.fixture
def x() -> Tensor:
    taeda.manual_seed(3)
    return taeda.randn(4, 5)


def test_results_lie_as_the_rule_plans(x: Tensor) -> None:
    out = taeda.empty(5, 4, device="cuda").t()
    assert taeda.cumsum(x.cuda(), 1, out=out) is out
    assert out.stride() == (1, 4) and agree(out, x.cumsum(1))
    wide = taeda.empty(0, device="cuda")
    taeda.cat([x.cuda(), x.cuda()], 1, out=wide)
    assert agree(wide, taeda.cat([x, x], 1))
    there = x.cuda()
    assert there.cumsum_(0) is there and agree(there, x.cumsum(0))
    with pytest.raises(RuntimeError, match="single memory location"):
        taeda.cumsum(x.cuda(), 0, out=taeda.empty(1, device="cuda").expand(4, 5))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        taeda.mm(
            x.cuda(),
            x.t().cuda(),
            out=taeda.empty(4, 4, device="cuda", dtype=taeda.int32),
        )


def test_rules_refuse_as_on_the_cpu(x: Tensor) -> None:
    for bad in (lambda t: taeda.mm(t, t), lambda t: t.cumsum(7)):
        with pytest.raises((RuntimeError, IndexError)) as here:
            bad(x)
        with pytest.raises(type(here.value)) as there:
            bad(x.cuda())
        assert str(there.value) == str(here.value)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.int64], ids=str)
def test_products(dtype: taeda.dtype) -> None:
    a, b = (taeda.randn(2, 3, 4) * 3).to(dtype), (taeda.randn(2, 4, 5) * 3).to(dtype)
    same(taeda.bmm, a, b)
    same(lambda p, q: taeda.matmul(p.unsqueeze(1), q), a, b)
    same(lambda p, q: taeda.mv(p[0].t(), q[0, :3, 0]), a, b)


@pytest.mark.parametrize("accumulate", [False, True])
def test_places_by_several_indices(x: Tensor, accumulate: bool) -> None:
    rows, columns = taeda.tensor([[0], [3]]), taeda.tensor([1, -1])
    values = taeda.ones(2, 2)

    def put(t: Tensor, *rest: Tensor) -> Tensor:
        *places, new = rest
        return t.index_put(places, new, accumulate)

    same(put, x, rows, columns, values)
    same(lambda t, r, c: t[r, c], x, rows, columns)
    same(lambda t, c: t[:, c], x, columns)
    same(lambda t, m: t[m], x, x > 0)


def test_sums_at_one_place_are_whole() -> None:
    index = taeda.zeros(300, dtype=taeda.int64)
    for dtype in (taeda.float32, taeda.float16, taeda.int8, taeda.int64):
        ones = taeda.ones(300, dtype=dtype)
        same(lambda t, i: t[:3].put(i, t, True), ones, index)


def test_an_index_outside_is_named_and_leaves_the_device_usable(x: Tensor) -> None:
    there = x.cuda()
    for call, name, index, size in (
        (lambda at: taeda.gather(there, 0, at), "gather", 9, 4),
        (lambda at: there.index_select(1, at[0]), "index_select", -8, 5),
        (lambda at: there[at[0]], "index", -5, 4),
        (lambda at: there.scatter(0, at, 1.0), "scatter", 70, 4),
        (lambda at: there.index_add(0, at[0], there[:1]), "index_add", 4, 4),
    ):
        wrong = call(taeda.tensor([[index]]).cuda())
        text = rf"device-side assert triggered: .*{name}.* index {index} is out of "
        with pytest.raises(RuntimeError, match=text + rf"bounds .* with size {size}"):
            wrong.cpu()
        assert agree(there + 1, x + 1)


def test_launches_that_wait_raise_in_the_call() -> None:
    text = """
import taeda
x = taeda.ones(3, device="cuda")
try:
    x[taeda.tensor([7], device="cuda")]
except RuntimeError as error:
    print("index 7" in str(error))
"""
    command = [sys.executable, "-c", text]
    environment = os.environ | {"CUDA_LAUNCH_BLOCKING": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


DTYPES = [taeda.float32, taeda.float64, taeda.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (2, 6, 3), (2, 3, 6), (0, 4)], ids=str)
def test_factors_of_matrices(shape: tuple[int, ...], dtype: taeda.dtype) -> None:
    taeda.manual_seed(len(shape))
    a = taeda.randn(shape, dtype=dtype)
    there = a.cuda()
    q, r = taeda.linalg.qr(there)
    same(lambda t: taeda.linalg.qr(t), a)
    assert agree(q @ r, a)
    u, s, vh = taeda.linalg.svd(there, full_matrices=False)
    assert agree((u * s.unsqueeze(-2)) @ vh, a)
    assert agree(s, taeda.linalg.svdvals(a))
    full, _, rest = taeda.linalg.svd(there)
    for m in (full, rest, q):
        small = m.mH if m.shape[-2] < m.shape[-1] else m
        one = taeda.eye(small.shape[-1], dtype=dtype)
        assert agree(small.mH @ small, one.expand(*shape[:-2], *one.shape))
    p, low, up = taeda.linalg.lu(there)
    same(taeda.linalg.lu, a)
    assert agree(p @ low @ up, a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_square_matrices(dtype: taeda.dtype) -> None:
    a = taeda.randn(3, 4, 4, dtype=dtype)
    hermitian = a @ a.mH + 4 * taeda.eye(4, dtype=dtype)
    values, vectors = taeda.linalg.eigh(hermitian.cuda())
    assert agree(values, taeda.linalg.eigvalsh(hermitian))
    scaled = vectors * values.unsqueeze(-2)
    assert agree(scaled @ vectors.mH, hermitian)
    same(lambda t: taeda.linalg.cholesky(t, upper=True), hermitian)
    same(taeda.linalg.det, a)
    same(taeda.linalg.slogdet, a)
    right = taeda.randn(4, 2, dtype=dtype)
    for left, upper in ((True, False), (True, True), (False, False)):
        b = right if left else right.mT

        def solve(t: Tensor, b: Tensor, left: bool = left, upper: bool = upper):
            return taeda.linalg.solve_triangular(t, b, upper=upper, left=left)

        same(solve, hermitian, b)
    with pytest.raises(RuntimeError, match="not positive-definite"):
        taeda.linalg.cholesky(-hermitian.cuda())


def test_sizes_that_hang_on_data(x: Tensor) -> None:
    same(lambda t: taeda.nonzero(t > 0), x)
    same(lambda t: taeda.unique(t, return_inverse=True, return_counts=True), x.int())
    same(lambda t: taeda.unique(t, dim=0, return_counts=True), (x > 0).int())
    same(lambda t: taeda.bincount(t.view(-1), minlength=4), x.abs().long())


def test_gradients_of_layers() -> None:
    def step(image: Tensor, weight: Tensor, target: Tensor) -> list[Tensor]:
        weight = weight.clone().requires_grad_()
        hidden = functional.conv2d(image, weight, padding=1)
        hidden = functional.max_pool2d(hidden.relu(), 2)
        hidden = functional.group_norm(hidden, 2).mean((2, 3))
        functional.cross_entropy(hidden, target).backward()
        return [weight.grad]

    taeda.manual_seed(1)
    image, weight = taeda.randn(2, 3, 6, 6), taeda.randn(4, 3, 3, 3)
    same(step, image, weight, taeda.tensor([1, 3]))


def trained(device: str) -> list[float]:
    taeda.manual_seed(0)
    net = taeda.nn.Sequential(
        taeda.nn.Linear(6, 16), taeda.nn.Tanh(), taeda.nn.Linear(16, 3)
    )
    data, target = taeda.randn(24, 6), taeda.arange(24) % 3
    net, data, target = net.to(device), data.to(device), target.to(device)
    steps = taeda.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, foreach=False)
    losses = []
    for _ in range(12):
        steps.zero_grad()
        loss = functional.cross_entropy(net(data), target)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def test_an_mlp_trains_to_the_loss_of_the_cpu() -> None:
    here, there = trained("cpu"), trained("cuda")
    assert here[-1] < 0.8 * here[0]
    assert all(abs(a - b) < 1e-4 for a, b in zip(here, there, strict=True))


def test_tensors_are_printed(x: Tensor) -> None:
    text = repr(x.cuda())
    assert text == repr(x)[:-1] + ",\n       device='cuda:0')" or (
        text.replace(", device='cuda:0'", "").replace(",\n       device='cuda:0'", "")
        == repr(x)
    )
    assert "device='cuda:0'" in text
