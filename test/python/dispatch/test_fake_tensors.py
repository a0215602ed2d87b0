"""FakeTensorMode with integer sizes."""

from __future__ import annotations

import copy

import pytest
import taeda
from taeda._subclasses import fake_tensor
from taeda._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
)
from taeda.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_printing(mode):
    with mode:
        a = taeda.ones(2, 3)
        b = taeda.ones(3, device="cuda")
        d = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
        layer = taeda.nn.Linear(2, 2)
    assert repr(a) == "FakeTensor(..., size=(2, 3))"
    assert repr(b) == "FakeTensor(..., device='cuda:0', size=(3,))"
    assert repr(d) == (
        "FakeTensor(..., size=(2,), dtype=taeda.float64, requires_grad=True)"
    )
    assert repr(layer.weight) == (
        "Parameter(FakeTensor(..., size=(2, 2), requires_grad=True))"
    )
    assert isinstance(layer.weight, taeda.nn.Parameter)


def test_geometry_is_that_of_real_tensors(mode):
    def program(x):
        y = x.transpose(0, 1)[:, 1:]
        z = (y @ y.mT).softmax(-1)
        return y, z, z.sum(0), taeda.cat([y, y], 1), x.view(-1), x.max(1).indices

    x = taeda.randn(4, 5)
    for real, fake in zip(program(x), program(mode.from_tensor(x)), strict=True):
        assert type(fake) is FakeTensor
        assert fake.shape == real.shape
        assert fake.stride() == real.stride()
        assert fake.storage_offset() == real.storage_offset()
        assert fake.dtype == real.dtype
        assert fake._is_view() == real._is_view()


def test_nothing_is_allocated(mode):
    with mode:
        x = taeda.ones(1 << 20, 1 << 20)  # 4 TiB
        y = (x @ x + 1).relu().sum(0)
    assert y.shape == (1 << 20,)
    assert x.data_ptr() == y.data_ptr() == 0


def test_devices(mode):
    with mode:
        cpu = taeda.ones(3)
        gpu = taeda.ones(3, device="cuda")
        assert (gpu.device, gpu.is_cuda, cpu.is_cpu) == (
            taeda.device("cuda:0"),
            True,
            True,
        )
        assert (gpu + 1).device == gpu.device
        assert (taeda.tensor(2.0) * gpu).device == gpu.device
        assert cpu.to("cuda:1").device == taeda.device("cuda:1")
        assert gpu.cpu().device == cpu.device
        assert taeda.zeros_like(gpu).device == gpu.device
        assert gpu.new_ones(2).device == gpu.device
        with pytest.raises(
            FakeTensorDeviceMismatchError, match="cpu and cuda:0|cuda:0 and cpu"
        ):
            cpu + gpu


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        (lambda x: x.sum().item(), DataDependentOutputException, "_local_scalar_dense"),
        (lambda x: bool(x[0, 0]), DataDependentOutputException, "_local_scalar_dense"),
        (lambda x: x.tolist(), DataDependentOutputException, "_local_scalar_dense"),
        (lambda x: taeda.equal(x, x), DataDependentOutputException, "equal"),
        (lambda x: x.nonzero(), DynamicOutputShapeException, "nonzero"),
        (lambda x: x[x > 0], DynamicOutputShapeException, "nonzero"),
        (
            lambda x: x.masked_select(x > 0),
            DynamicOutputShapeException,
            "masked_select",
        ),
    ],
)
def test_values_are_not_there(mode, call, error, name):
    with pytest.raises(error, match=rf"aten\.{name}") as raised:
        call(mode.from_tensor(taeda.ones(2, 2)))
    assert raised.value.func.overloadpacket is getattr(taeda.ops.aten, name)
    with mode, pytest.raises(error):
        call(taeda.ones(2, 2))


def test_numbers_are_known_until_they_change(mode):
    with mode:
        t = taeda.tensor(3.0)
        assert t.item() == 3.0
        t.add_(1)
        with pytest.raises(DataDependentOutputException):
            t.item()


def test_real_tensors_are_refused_or_made_fake(mode):
    x = taeda.ones(2)
    with mode, pytest.raises(AssertionError, match=r"allow_non_fake_inputs.*aten\.add"):
        x + 1
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert type(x + 1) is FakeTensor
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(x) + mode.from_tensor(x)
    with pytest.raises(ValueError, match="shape_env"):
        FakeTensorMode(static_shapes=False)


def test_from_tensor(mode):
    x = taeda.nn.Parameter(taeda.ones(2, 3))
    fake = mode.from_tensor(x)
    assert mode.from_tensor(x) is fake
    assert mode.from_tensor(fake) is fake
    assert fake.requires_grad
    assert fake.is_leaf
    assert isinstance(fake, taeda.nn.Parameter)
    assert fake_tensor.is_fake(fake)
    assert not fake_tensor.is_fake(x)
    assert fake_tensor.maybe_get_fake_mode(fake) is mode
    key = id(x)
    assert key in mode._fakes
    del x
    assert key not in mode._fakes


def test_changes_in_place(mode):
    with mode:
        x = taeda.ones(2, 3)
        x.t_()
        assert (x.shape, x.stride()) == ((3, 2), (1, 3))
        x.unsqueeze_(0)
        assert x.shape == (1, 3, 2)
        before = x._version
        x[0].zero_()
        assert x._version == before + 1
        y = taeda.ones(2, 3)
        assert y.view(-1).untyped_storage()._cdata == y.untyped_storage()._cdata


def test_a_training_step_on_a_device_that_is_not_here(mode):
    with mode:
        net = taeda.nn.Sequential(
            taeda.nn.Conv2d(1, 4, 3),
            taeda.nn.BatchNorm2d(4),
            taeda.nn.ReLU(),
            taeda.nn.Flatten(),
            taeda.nn.Linear(144, 10),
        ).to("cuda")
        steps = taeda.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        x = taeda.randn(2, 1, 8, 8, device="cuda")
        y = taeda.zeros(2, dtype=taeda.long, device="cuda")
        loss = taeda.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        steps.step()
    assert (loss.shape, loss.device.type) == ((), "cuda")
    for p in net.parameters():
        assert type(p.grad) is FakeTensor
        assert p.grad.shape == p.shape
        assert p.grad.device == p.device == taeda.device("cuda:0")


def test_other_modes_see_the_program_and_not_the_shapes(mode):
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    for modes in ((Log(), mode), (mode, Log())):
        seen.clear()
        with modes[0], modes[1]:
            out = taeda.ones(2).exp()
        assert seen == ["aten.ones.default", "aten.exp.default"]
        assert type(out) is FakeTensor


def test_the_mode_can_be_left(mode):
    with mode:
        with mode:
            assert type(taeda.ones(1)) is FakeTensor
        assert type(taeda.ones(1)) is FakeTensor
        with fake_tensor.unset_fake_temporarily() as found:
            assert found is mode
            assert type(taeda.ones(1)) is taeda.Tensor
    assert type(taeda.ones(1)) is taeda.Tensor


def test_copies(mode):
    fake = mode.from_tensor(taeda.ones(2, requires_grad=True))
    made = copy.deepcopy(fake)
    assert type(made) is FakeTensor
    assert made is not fake
    assert made.requires_grad
