"""Autocast and GradScaler on the device: dtypes by the records' policies, training."""

from __future__ import annotations

import warnings

import pytest
import taeda
from taeda import nn
from taeda.nn import functional

HALF, BF16, FLOAT = taeda.float16, taeda.bfloat16, taeda.float32
LOW = (HALF, BF16)


@pytest.fixture(autouse=True)
def _off_afterwards():
    yield
    assert not taeda.is_autocast_enabled("cuda")
    assert taeda.get_autocast_dtype("cuda") == HALF
    assert taeda.autocast_increment_nesting() == 1
    assert taeda.autocast_decrement_nesting() == 0


def square(device: str = "cuda") -> taeda.dtype:
    x = taeda.ones(2, 2, device=device)
    return (x @ x).dtype


def test_float16_if_nothing_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with taeda.autocast("cuda") as scope:
            assert scope.fast_dtype == HALF and taeda.is_autocast_enabled("cuda")
            assert square() == HALF
            assert square("cpu") == FLOAT
            with taeda.amp.autocast(device_type="cuda", dtype=BF16):
                assert square() == BF16
                with taeda.autocast("cuda", enabled=False):
                    assert square() == FLOAT
            assert square() == HALF
        with taeda.autocast("cuda:1"):
            assert square() == HALF
    assert square() == FLOAT


def test_each_device_has_its_own() -> None:
    with taeda.autocast("cuda"), taeda.autocast("cpu"):
        assert (square("cuda"), square("cpu")) == (HALF, BF16)
    with taeda.autocast("cpu"):
        assert (square("cuda"), square("cpu")) == (FLOAT, BF16)


@pytest.mark.parametrize("low", LOW, ids=str)
def test_results_have_the_dtypes_of_the_policies(low: taeda.dtype) -> None:
    x = taeda.rand(2, 3, device="cuda")
    weight, small = taeda.rand(4, 3, device="cuda"), x.to(low)
    image, kernel = taeda.rand(1, 2, 4, 4), taeda.rand(3, 2, 3, 3)
    with taeda.autocast("cuda", low):
        assert functional.linear(x, weight).dtype == low
        assert functional.conv2d(image.cuda(), kernel.cuda()).dtype == low
        assert taeda.einsum("ij,kj->ik", x, weight).dtype == low
        assert small.exp().dtype == FLOAT
        assert functional.mse_loss(small, small).dtype == FLOAT
        assert functional.layer_norm(small, (3,)).dtype == FLOAT
        assert small.sum().dtype == FLOAT
        assert small.sum(dtype=taeda.float64).dtype == taeda.float64
        assert small.softmax(1).dtype == FLOAT
        assert taeda.addcmul(x, small, small).dtype == FLOAT
        assert taeda.addcmul(small, small, small).dtype == low
        assert taeda.cat([x, small]).dtype == FLOAT
        assert (small + 1).dtype == low and small.relu().dtype == low
        assert (x.double() @ weight.double().t()).dtype == taeda.float64
        with pytest.raises(RuntimeError, match="binary_cross_entropy is unsafe"):
            functional.binary_cross_entropy(x, x)
        out = taeda.empty(2, 4, device="cuda")
        assert taeda.mm(x, weight.t(), out=out).dtype == FLOAT


def test_any_dtype_is_taken_as_in_pytorch() -> None:
    with taeda.autocast("cuda", taeda.float64) as scope:
        assert scope._enabled and square() == taeda.float64
    with pytest.warns(UserWarning, match="In CUDA:0 autocast, but the target dtype"):
        assert not taeda.autocast("cuda:0", taeda.float64)._enabled


def test_a_gpu_without_bfloat16_says_so(monkeypatch) -> None:
    monkeypatch.setattr(taeda.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(RuntimeError, match="does not support bfloat16"):
        taeda.autocast("cuda", BF16)
    assert not taeda.autocast("cuda", BF16, enabled=False)._enabled
    with taeda.autocast("cuda"):
        assert square() == HALF


def test_a_weight_is_cast_once() -> None:
    weight = taeda.ones(3, 3, device="cuda", requires_grad=True)
    x = taeda.ones(2, 3, device="cuda")
    with taeda.autocast("cuda"):
        (x @ weight + x @ weight).sum().backward()
    assert weight.grad.dtype == FLOAT and weight.grad.is_cuda
    assert weight.grad.tolist() == [[4.0] * 3] * 3


def test_old_names() -> None:
    with pytest.warns(FutureWarning, match=r"taeda.amp.autocast\('cuda', args"):
        scope = taeda.cuda.amp.autocast()
    with scope:
        assert square() == HALF
    with pytest.warns(FutureWarning, match=r"GradScaler\('cuda', args"):
        assert taeda.cuda.amp.GradScaler().is_enabled()
    with pytest.warns(DeprecationWarning, match=r"get_autocast_dtype\('cuda'\)"):
        assert taeda.get_autocast_gpu_dtype() == HALF
    with pytest.warns(DeprecationWarning, match=r"set_autocast_dtype\('cuda'"):
        taeda.set_autocast_gpu_dtype(BF16)
    with taeda.autocast("cuda"):
        assert square() == BF16
    taeda.set_autocast_dtype("cuda", HALF)
    assert not taeda.cuda.amp.common.amp_definitely_not_available()


class Square(taeda.autograd.Function):
    seen: list = []

    @staticmethod
    @taeda.amp.custom_fwd(device_type="cuda", cast_inputs=FLOAT)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        Square.seen += [x.dtype, square()]
        return x * x

    @staticmethod
    @taeda.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        Square.seen.append(square())
        return 2 * grad * ctx.saved_tensors[0]


def test_custom_functions() -> None:
    Square.seen.clear()
    x = taeda.ones(2, device="cuda", dtype=HALF, requires_grad=True)
    with taeda.autocast("cuda"):
        y = Square.apply(x)
    y.sum().backward()
    assert Square.seen == [FLOAT, FLOAT, FLOAT]
    assert y.dtype == FLOAT and x.grad.tolist() == [2.0, 2.0]


def test_a_checkpoint_is_computed_again_under_the_same_autocast() -> None:
    from taeda.utils.checkpoint import checkpoint

    weight, seen = taeda.ones(2, 2, device="cuda", requires_grad=True), []

    def run(x):
        seen.append((x @ weight).dtype)
        return x @ weight

    with taeda.autocast("cuda", BF16):
        loss = checkpoint(run, taeda.ones(2, 2, device="cuda"), use_reentrant=False)
    loss.float().sum().backward()
    assert seen == [BF16, BF16]


# Training -------------------------------------------------------------------------


def losses(device: str, low: taeda.dtype | None, fused: bool = False) -> list[float]:
    """Of a small classifier; without `low` in float32, without a scaler."""
    taeda.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU())
    model.append(nn.Linear(16, 4))
    x, target = taeda.randn(32, 8), taeda.randint(0, 4, (32,))
    model, x, target = model.to(device), x.to(device), target.to(device)
    optimizer = taeda.optim.AdamW(model.parameters(), 0.02, fused=fused)
    scaled = low == HALF
    scaler = taeda.amp.GradScaler(device, init_scale=2.0**10, enabled=scaled)
    assert scaler.is_enabled() == scaled
    found = []
    for _ in range(12):
        optimizer.zero_grad()
        with taeda.autocast(device, low, enabled=low is not None):
            loss = functional.cross_entropy(model(x), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.item())
    assert all(p.grad.dtype == FLOAT for p in model.parameters())
    return found


@pytest.mark.parametrize(("low", "fused"), [(HALF, True), (BF16, False)], ids=str)
def test_training_reaches_the_loss_of_float32(low: taeda.dtype, fused: bool) -> None:
    found, plain = losses("cuda", low, fused), losses("cpu", None)
    assert found[-1] < 0.7 * found[0]
    bound = 5e-3 if low == HALF else 3e-2
    assert max(abs(a - b) for a, b in zip(found, plain, strict=True)) < bound


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_overflowed_is_left_out(fused: bool) -> None:
    layer = nn.Linear(2, 1).cuda()
    before = [p.detach().clone() for p in layer.parameters()]
    optimizer = taeda.optim.SGD(layer.parameters(), 0.1, fused=fused)
    scaler = taeda.amp.GradScaler("cuda", init_scale=2.0**20, growth_interval=1)
    for scale, factor in ((100.0, 0.5), (1e-6, 2.0)):
        optimizer.zero_grad()
        with taeda.autocast("cuda"):
            loss = layer(taeda.ones(4, 2, device="cuda")).sum() * scale
        scaler.scale(loss).backward()
        at_first = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == at_first * factor
        same = [
            taeda.equal(p, b) for p, b in zip(layer.parameters(), before, strict=True)
        ]
        assert all(same) == (factor < 1)
    state = scaler.state_dict()
    again = taeda.amp.GradScaler("cuda")
    again.load_state_dict(state)
    assert again.get_scale() == scaler.get_scale() == 2.0**20
