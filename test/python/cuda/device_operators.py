"""Every recorded call of every operator, on the device as on the CPU.

Pointwise operators, reductions and views have to work there; all others work, being
made of those, or refuse by name.
"""

from __future__ import annotations

import pytest
import taeda
from all_calls import OVERLOADS, Function, all_calls, argument_names

FAMILIES = ("Pointwise", "Reduction", "View")
DTYPES = (taeda.float32, taeda.float16, taeda.int64)
PARTS = 8
# Results that have one value each; vectors may be turned by a phase, and those of no
# singular value are any (device_kernels.py puts their products together again).
DETERMINED = {"linalg_svd": [1], "svd": [1], "linalg_eigh": [0]}


def family_of(name: str) -> str:
    return type(OVERLOADS[name].body).__name__


def to_device(value: object) -> object:
    if isinstance(value, taeda.Tensor):
        return value.cuda()
    if isinstance(value, (list, tuple)):
        return [to_device(part) for part in value]
    return value


def moved(values: dict) -> dict:
    new = {name: to_device(value) for name, value in values.items()}
    if new.get("device") is not None:
        new["device"] = taeda.device("cuda")
    return new


def agree(got: taeda.Tensor, want: taeda.Tensor) -> bool:
    """As close as sums in another order are."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    got, want = got.cpu().resolve_conj(), want.resolve_conj()
    if want.dtype == taeda.uint64:
        got, want = got.view(taeda.int64), want.view(taeda.int64)
    if not (want.is_floating_point() or want.is_complex()):
        return taeda.equal(got, want)
    share = {taeda.float16: 2e-3, taeda.bfloat16: 2e-2}.get(want.dtype, 1e-5)
    wide = taeda.complex128 if want.is_complex() else taeda.float64
    return taeda.allclose(
        got.to(wide), want.to(wide), rtol=share, atol=share, equal_nan=True
    )


def copied(value: object) -> object:
    if isinstance(value, taeda.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return [copied(part) for part in value]
    return value


def results(name: str, values: dict) -> list[taeda.Tensor]:
    """What a call gives, and what it writes."""
    schema = OVERLOADS[name].schema
    call = Function(schema, values, argument_names(schema, values))
    return list(call(*call.tensors))


def difference(name: str, values: dict) -> str:
    again = {key: copied(value) for key, value in values.items()}
    there = moved(values)
    want, repeated = results(name, values), results(name, again)
    got = results(name, there)
    if not all(t.is_cuda for t in got):
        return "a result is not on the device"
    pairs = list(zip(got, want, strict=True))
    if name in DETERMINED:
        pairs = [pairs[i] for i in DETERMINED[name]]
    # Two calls that differ draw random numbers, which are the device's own.
    same = zip(want, repeated, strict=True)
    if not all(agree(a, b) for a, b in same):
        pairs = [(a.cpu() * 0, b * 0) for a, b in pairs]
    wrong = [i for i, (a, b) in enumerate(pairs) if not agree(a, b)]
    return f"results {wrong} differ" if wrong else ""


@pytest.mark.parametrize(
    "name", [name for name in all_calls() if family_of(name) in FAMILIES]
)
def test_formulas_run_on_the_device(name: str) -> None:
    for values in all_calls()[name]:
        assert difference(name, values) == ""


# In parts, which may run side by side.
@pytest.mark.parametrize("part", range(PARTS))
def test_all_others_run_or_refuse(part: int) -> None:
    ran, refused, wrong = 0, 0, []
    others = [name for name in all_calls() if family_of(name) not in FAMILIES]
    for name in others[part::PARTS]:
        for values in all_calls()[name]:
            try:
                found = difference(name, values)
            except NotImplementedError as error:
                refused += 1
                assert "CUDA" in str(error) or "cuda" in str(error), error
                continue
            if found:
                wrong.append(f"{name}: {found}")
            ran += 1
    print(f"{ran} calls ran, {refused} refused")
    assert not wrong, "\n".join(wrong)
    assert ran > 650 // PARTS * 0.9


def layouts(shape: tuple[int, ...], dtype: taeda.dtype) -> list[taeda.Tensor]:
    """The same numbers, lying in different ways."""
    taeda.manual_seed(5)
    x = (taeda.randn(shape) * 4).to(dtype)
    wide = taeda.zeros(*shape[:-1], 2 * shape[-1], dtype=dtype)
    wide[..., ::2] = x
    return [x, x.transpose(0, -1).contiguous().transpose(0, -1), wide[..., ::2]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts_and_broadcasts(dtype: taeda.dtype) -> None:
    for x in layouts((5, 4, 33), dtype):
        for y in (x[:1], x[:, :1, :1], x, x.flip(0), taeda.tensor(3, dtype=dtype)):
            want, got = x * y + 1, to_device(x) * to_device(y) + 1
            assert got.stride() == want.stride()
            assert agree(got, want)


@pytest.mark.parametrize("size", [1, 7, 255, 256, 257, 4099, 70000])
def test_sizes_that_do_not_divide(size: int) -> None:
    for dtype in (taeda.float32, taeda.float16, taeda.uint8):
        x = (taeda.arange(size) % 97).to(dtype)
        there = x.cuda()
        assert agree(there + there, x + x)
        assert agree(there[1:] + there[:-1], x[1:] + x[:-1])
        assert agree(there.sum(), x.sum())


@pytest.mark.parametrize("shape", [(3, 5), (200, 70), (2, 5000), (5000, 3), (40000,)])
@pytest.mark.parametrize("dtype", (taeda.float32, taeda.int64, taeda.bool), ids=str)
def test_reductions_of_any_dims(shape: tuple[int, ...], dtype: taeda.dtype) -> None:
    taeda.manual_seed(1)
    x = (taeda.rand(shape) * 3).to(dtype)
    for t in (x, x.t() if x.dim() == 2 else x[::2], x[..., 1:]):
        there = t.cuda()
        for dims in (None, -1, 0):
            given = {} if dims is None else {"dim": dims}
            assert agree(there.sum(**given), t.sum(**given))
            assert agree(there.any(**given), t.any(**given))
            if dtype == taeda.float32:
                assert agree(there.mean(**given), t.mean(**given))
                assert agree(there.amax(**given), t.amax(**given))


def test_sums_are_the_same_bits_each_time() -> None:
    x = taeda.rand(300000).cuda()
    assert len({x.sum().item() for _ in range(5)}) == 1


@pytest.mark.parametrize("dtype", [taeda.complex64, taeda.complex128], ids=str)
def test_lazy_bits_cross_the_border(dtype: taeda.dtype) -> None:
    x = taeda.randn(4, 5, dtype=dtype)
    for t in (x.conj(), x.t().conj(), x.conj().imag, x.conj() * 2):
        assert taeda.equal(t.cuda().cpu().resolve_conj(), t.resolve_conj())
        assert agree(to_device(x).conj().cpu(), x.conj())


def test_every_pair_of_dtypes_converts() -> None:
    names = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 bool"
    names += " complex64 complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
    x = taeda.tensor([0.0, 1.0, 2.5, 100.0, 3.0])
    for first in names.split():
        t = x.to(getattr(taeda, first))
        there = t.cuda()
        for second in names.split():
            dtype = getattr(taeda, second)
            want = t.to(dtype)
            got = there.to(dtype).cpu()
            assert got.dtype == dtype
            assert taeda.equal(got.view(taeda.uint8), want.view(taeda.uint8)), (
                first,
                second,
            )


def test_assignments_and_indices() -> None:
    x = taeda.arange(60.0).reshape(3, 4, 5)
    there = x.cuda()
    for t in (x, there):
        t[1:, ::2] = 7
        t[0].t().add_(t[2].t())
        t[..., -1] += t[..., 0]
        t.mul_(taeda.tensor(0.5))
    assert agree(there, x)
    assert agree(there[1, 2], x[1, 2]) and there[0, 0, 0].item() == x[0, 0, 0].item()
    assert there.tolist() == x.tolist() and bool(there[0, 0, 1] > 0)


def test_printing_and_copies() -> None:
    x = taeda.arange(3.0)
    there = x.cuda()
    assert repr(there) == "tensor([0., 1., 2.], device='cuda:0')"
    assert there.device.type == "cuda" and there.is_cuda and there.get_device() == 0
    assert taeda.equal(there.clone().cpu(), x)
    assert there.to("cuda") is there and there.cuda() is there
    assert there.to("cuda:1").device.index == 1
    assert taeda.zeros_like(there).is_cuda and there.new_ones(2).is_cuda


def test_factories() -> None:
    for name, arguments in {
        "arange": (7,),
        "linspace": (0, 1, 5),
        "eye": (3,),
        "full": ((2, 3), 4.0),
        "tril_indices": (3, 3),
        "tensor": ([[1, 2], [3, 4]],),
    }.items():
        make = getattr(taeda, name)
        there = make(*arguments, device="cuda")
        assert there.is_cuda and agree(there, make(*arguments))


def test_gradients() -> None:
    taeda.manual_seed(2)
    x, y = taeda.randn(6, 7), taeda.randn(7)

    def loss(x: taeda.Tensor, y: taeda.Tensor) -> taeda.Tensor:
        hidden = taeda.nn.functional.gelu(x * y + x.sum(1, keepdim=True).tanh())
        return ((hidden.exp() + 1).log() * y).mean()

    found = []
    for device in ("cpu", "cuda"):
        leaves = [t.clone().to(device).requires_grad_() for t in (x, y)]
        value = loss(*leaves)
        value.backward()
        found.append([value.detach(), *(leaf.grad for leaf in leaves)])
    assert all(t.is_cuda for t in found[1])
    # A copy to the device is part of the graph.
    x.requires_grad_()
    loss(x.cuda(), y.cuda()).backward()
    assert agree(x.grad.cuda(), found[0][1])
    assert all(agree(b, a) for a, b in zip(*found, strict=True))
