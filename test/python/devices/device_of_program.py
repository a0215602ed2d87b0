"""The device suite for a device that a program adds: run by test_program_device.py.

A process of its own, since a program can name one such device once.
"""

from __future__ import annotations

import copy
import io
import pathlib
import sys
import warnings

import pytest
import taeda
from taeda.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "toy_device"))
import toy_device

toy = toy_device.register(toy_device.build())
ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.fixture
def x():
    return taeda.tensor(ROWS, device="toy")


@pytest.fixture(autouse=True)
def _clean():
    """Work of one test is done before the next begins, on the first device."""
    yield
    for index in range(2):
        taeda.accelerator.synchronize(index)
    assert taeda.accelerator.current_device_index() == 0


# Names --------------------------------------------------------------------------


def test_its_name_is_a_device():
    assert taeda.device("toy:1").type == "toy"
    assert taeda.device("toy", 1) == taeda.device("toy:1")
    assert taeda._C._get_privateuse1_backend_name() == "toy"
    with pytest.raises(RuntimeError, match="privateuseone"):
        taeda.device("privateuseone")


def test_it_is_named_once():
    taeda.utils.rename_privateuse1_backend("toy")
    with pytest.raises(RuntimeError, match="already been set, to toy"):
        taeda.utils.rename_privateuse1_backend("other")
    for wrong in ("cuda", "", "a b"):
        with pytest.raises(RuntimeError, match="rename_privateuse1_backend"):
            taeda.utils.rename_privateuse1_backend(wrong)


def test_its_module_is_registered_once():
    assert taeda.get_device_module("toy") is toy
    with pytest.raises(RuntimeError, match="'toy' has already been registered"):
        taeda._register_device_module("toy", toy)
    with pytest.raises(RuntimeError, match="'cuda' has already been registered"):
        taeda._register_device_module("cuda", toy)


def test_methods_are_made_once():
    with pytest.raises(RuntimeError, match="already been registered with is_toy"):
        taeda.utils.generate_methods_for_privateuse1_backend()


def test_a_second_device_is_refused():
    find = taeda.utils.backend_registration._get_custom_mod_func
    assert find("device_count")() == 2
    with pytest.raises(RuntimeError, match=r"Try to call taeda\.toy\.missing"):
        find("missing")


# Tensors ------------------------------------------------------------------------


def test_tensors_go_there_and_back(x):
    here = taeda.tensor(ROWS)
    assert here.toy().is_toy and not here.is_toy
    assert here.toy(1).device == taeda.device("toy:1")
    assert here.to("toy").cpu().equal(here)
    assert x.to("toy:1").to("toy:0").cpu().equal(here)
    assert x.toy() is x
    with pytest.raises(RuntimeError, match="Invalid device, must be toy device"):
        here.toy("cpu")


@pytest.mark.parametrize(
    "dtype", [taeda.float64, taeda.float16, taeda.int64, taeda.bool, taeda.complex64]
)
def test_copies_convert(dtype):
    here = taeda.tensor(ROWS).to(dtype)
    assert here.toy().dtype == dtype
    assert here.toy().cpu().equal(here)
    assert taeda.tensor(ROWS, device="toy").to(dtype).cpu().equal(here)


def test_copies_of_strided_and_lazy_tensors(x):
    assert x.t().cpu().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x[:, ::2].clone().tolist() == [[0, 2], [3, 5]]
    x[:, 1].copy_(taeda.tensor([7.0, 8.0]))
    assert x.tolist() == [[0, 7, 2], [3, 8, 5]]
    x.copy_(taeda.tensor(9.0))
    assert x.tolist() == [[9] * 3] * 2
    z = taeda.tensor([1 + 2j]).toy()
    assert z.conj().cpu().tolist() == [1 - 2j]
    assert z.conj().imag.cpu().tolist() == [-2]
    z.conj().copy_(taeda.tensor([3 + 4j]))
    assert z.tolist() == [3 - 4j]


def test_factories():
    assert taeda.zeros(2, device="toy").tolist() == [0, 0]
    assert taeda.full((2,), 3, device="toy:1").device.index == 1
    assert taeda.arange(3, device="toy").tolist() == [0, 1, 2]
    assert taeda.eye(2, device="toy").is_toy
    assert taeda.empty_strided((2, 3), (1, 2), device="toy").stride() == (1, 2)
    assert taeda.empty(0, device="toy").tolist() == []
    with taeda.device("toy:1"):
        assert taeda.ones(2).device == taeda.device("toy:1")
        assert taeda.tensor([1]).device == taeda.device("toy:1")


def test_printing(x):
    assert repr(x).endswith("device='toy:0')")
    assert "device='toy:1'" in repr(taeda.ones(1, device="toy:1"))
    assert repr(taeda.device("toy:1")) == "device(type='toy', index=1)"


def test_its_own_kernels_and_the_cpu_give_the_same(x):
    before = toy.native.work_done()
    assert (x @ x.t()).relu().tolist() == [[5, 14], [14, 50]]
    assert toy.native.work_done() > before
    assert (x + 1).exp().log().sub(1).round().tolist() == ROWS
    assert x.sum().item() == 15
    assert x.max(1).indices.tolist() == [2, 2]
    assert [t.tolist() for t in x.unbind(1)] == [[0, 3], [1, 4], [2, 5]]
    assert taeda.cat([x, x]).shape == (4, 3)
    assert x[x > 2].tolist() == [3, 4, 5]
    assert x[taeda.tensor([1])].tolist() == ROWS[1:]
    assert taeda.nonzero(x).is_toy
    assert taeda.where(x > 2, x, -x).tolist() == [[0, -1, -2], [3, 4, 5]]


def test_in_place_and_out(x):
    y = x.clone()
    assert y.add_(1).mul_(2) is y
    assert y.tolist() == [[2, 4, 6], [8, 10, 12]]
    out = taeda.empty(0, device="toy")
    assert taeda.add(x, x, out=out) is out
    assert out.tolist() == (x * 2).tolist()
    values, places = taeda.empty(0, device="toy"), taeda.empty(0, device="toy").long()
    taeda.sort(x, descending=True, out=(values, places))
    assert values[0].tolist() == [2, 1, 0] and places[0].tolist() == [2, 1, 0]
    x[:, 1].mul_(10)
    assert x.tolist() == [[0, 10, 2], [3, 40, 5]]
    x[0, taeda.tensor([0, 2])] = 1.0
    assert x[0].tolist() == [1, 10, 1]
    taeda._foreach_add_([x, y], 1.0)
    assert x[0].tolist() == [2, 11, 2]
    assert y.resize_(1, 8).shape == (1, 8)


def test_results_lie_as_on_the_cpu(x):
    like = x.clone(memory_format=taeda.contiguous_format).t()
    assert (like + 1).stride() == (taeda.tensor(ROWS).t() + 1).stride()
    wide = x[:1].expand(4, 3)
    assert wide.mul(2).tolist() == [[0, 2, 4]] * 4
    with pytest.raises(RuntimeError, match="single memory location"):
        wide.mul_(2)


def test_storages(x):
    storage = taeda.tensor(ROWS).untyped_storage()
    assert not storage.is_toy and storage.toy(1).device == taeda.device("toy:1")
    there = x.untyped_storage()
    assert there.is_toy and there.toy() is there
    assert there.clone().tolist() == storage.tolist()
    there.resize_(32)
    assert there.nbytes() == 32 and there.tolist()[:24] == storage.tolist()
    typed = taeda.storage.TypedStorage(
        wrap_storage=taeda.ones(2, dtype=taeda.complex128).untyped_storage(),
        dtype=taeda.complex128,
    )
    with pytest.raises(RuntimeError, match=r"Cannot store taeda\.complex128"):
        typed.toy()
    assert copy.deepcopy(x).tolist() == x.tolist()


# Refusals -----------------------------------------------------------------------


def test_refusals_name_operator_and_device(x):
    with pytest.raises(NotImplementedError, match="linalg_eig is not there on the"):
        taeda.linalg.eig(x[:2, :2])
    with pytest.raises(RuntimeError, match=r"add: .*toy:0 and cpu"):
        x + taeda.ones(3)
    with pytest.raises(RuntimeError, match=r"mul: .*toy:1"):
        x * taeda.ones(3, device="toy:1")
    with pytest.raises(RuntimeError, match=r"mm: .*toy:0 and toy:1"):
        taeda.mm(x, taeda.ones(3, 2, device="toy:1"))
    with pytest.raises(RuntimeError, match="toy: no device 5"):
        taeda.ones(2, device="toy:5")
    with pytest.raises(TypeError, match="toy:0"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="relu: toy computes float32"):
        x.double().relu()
    assert (x + taeda.tensor(1.0)).tolist() == (x + 1).tolist()


# Gradients ----------------------------------------------------------------------


def test_autograd(x):
    here = taeda.tensor(ROWS, requires_grad=True)
    there = x.clone().requires_grad_()
    for t in (here, there):
        ((t @ t.t()).relu() * t.exp().sum(1)).mean().backward()
    assert there.grad.is_toy
    assert taeda.allclose(there.grad.cpu(), here.grad)
    crossing = taeda.ones(3, requires_grad=True)
    (crossing.toy() * x).sum().backward()
    assert crossing.grad.tolist() == [3, 5, 7]


def test_second_gradients_and_transforms(x):
    square = taeda.func.grad(taeda.func.grad(lambda a: a**3))
    assert square(x[0, 2]).item() == 12
    assert taeda.func.vmap(lambda a: a.sum())(x).tolist() == [3, 12]
    y = x.double().requires_grad_()
    for fast in (False, True):
        check = taeda.autograd.gradcheck
        assert check(lambda t: t.sin() * t, (y,), fast_mode=fast)


# Modules ------------------------------------------------------------------------


def _trained(device: str, optimizer: str):
    taeda.manual_seed(0)
    model = taeda.nn.Sequential(
        taeda.nn.Conv1d(2, 4, 3, padding=1),
        taeda.nn.BatchNorm1d(4),
        taeda.nn.ReLU(),
        taeda.nn.Flatten(),
        taeda.nn.Linear(20, 8),
        taeda.nn.LayerNorm(8),
        taeda.nn.Linear(8, 3),
    ).to(device)
    inputs, goals = taeda.randn(6, 2, 5), taeda.arange(6) % 3
    inputs, goals = inputs.to(device), goals.to(device)
    step = getattr(taeda.optim, optimizer)(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        step.zero_grad()
        loss = functional.cross_entropy(model(inputs), goals)
        loss.backward()
        taeda.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.step()
        losses.append(loss.item())
    assert {p.device.type for p in model.parameters()} == {device.partition(":")[0]}
    return losses


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_training_is_that_of_the_cpu(optimizer):
    wanted = _trained("cpu", optimizer)
    assert wanted[-1] < wanted[0]
    assert _trained("toy:1", optimizer) == pytest.approx(wanted, abs=1e-5)


def test_modules_and_packed_sequences_have_its_method():
    layer = taeda.nn.GRU(3, 4).toy()
    assert layer.weight_ih_l0.is_toy
    packed = taeda.nn.utils.rnn.pack_sequence([taeda.ones(3, 3), taeda.ones(2, 3)])
    assert packed.toy().is_toy and not packed.is_toy
    assert layer(packed.toy())[1].is_toy


# Random numbers -----------------------------------------------------------------


def test_generators(x):
    taeda.manual_seed(3)
    first = taeda.rand(4, device="toy"), taeda.randn(4, device="toy:1")
    taeda.manual_seed(3)
    assert taeda.rand(4, device="toy").equal(first[0])
    assert taeda.randn(4, device="toy:1").equal(first[1])
    own = taeda.Generator("toy:1").manual_seed(3)
    assert own.device == taeda.device("toy:1") and own.initial_seed() == 3
    drawn = taeda.randn(4, device="toy:1", generator=own)
    assert drawn.equal(first[1])
    twin = taeda.Generator("toy:1")
    twin.set_state(own.get_state())
    a, b = (x.to("toy:1").uniform_(generator=g) for g in (own, twin))
    assert a.equal(b)
    with pytest.raises(RuntimeError, match="generator of toy:0, got one of toy:1"):
        x.normal_(generator=own)
    with pytest.raises(RuntimeError, match="toy:1"):
        taeda.rand(3, generator=own)


def test_states_are_kept_in_forks_and_checkpoints(x):
    taeda.manual_seed(1)
    with taeda.random.fork_rng(device_type="toy"):
        inside = taeda.rand(3, device="toy")
    assert taeda.rand(3, device="toy").equal(inside)
    seen = []

    def noisy(t):
        seen.append(taeda.rand_like(t))
        return t * seen[-1]

    y = x.clone().requires_grad_()
    taeda.utils.checkpoint.checkpoint(noisy, y, use_reentrant=False).sum().backward()
    assert seen[0].equal(seen[1]) and y.grad.equal(seen[0])
    assert taeda.randint(5, (20,), device="toy").max().item() < 5
    assert taeda.randint_like(x, 2, 4).min().item() >= 2


# Streams and events -------------------------------------------------------------


def test_work_waits_in_streams(x):
    taeda.accelerator.synchronize()
    stream, mark = taeda.Stream("toy"), taeda.Event("toy")
    assert stream.stream_id != 0 and stream.device == taeda.device("toy:0")
    assert stream.device_type == 20
    with stream:
        assert taeda.accelerator.current_stream() == stream
        y = x.relu()
        assert not stream.query()
        assert mark.record() is None
    assert taeda.accelerator.current_stream().stream_id == 0
    assert not mark.query()
    mark.synchronize()
    assert mark.query() and stream.query()
    assert y.tolist() == ROWS


def test_streams_wait_for_each_other(x):
    first, second = taeda.Stream("toy:1"), taeda.Stream("toy:1")
    y = x.to("toy:1")
    taeda.accelerator.synchronize(1)
    with first:
        y.add_(1)
    second.wait_stream(first)
    with second:
        z = y.relu()
    second.synchronize()
    assert first.query()
    assert z.tolist() == taeda.tensor(ROWS).add(1).tolist()
    z.record_stream(first)
    assert not first.query()
    first.synchronize()


def test_events_measure_time(x):
    begin, end = (taeda.Event("toy", enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="must be recorded"):
        begin.elapsed_time(end)
    begin.record()
    x.relu()
    taeda.accelerator.current_stream().record_event(end)
    assert begin.elapsed_time(end) >= 0
    assert repr(taeda.Stream("toy")).startswith("taeda.Stream device_type=toy")
    with pytest.raises(RuntimeError, match="toy:7"):
        taeda.Stream("toy:7")


# The accelerator ----------------------------------------------------------------


def test_it_is_the_accelerator():
    accelerator = taeda.accelerator
    assert accelerator.is_available() and accelerator.device_count() == 2
    assert accelerator.current_accelerator() == taeda.device("toy")
    with accelerator.device_index(1):
        assert taeda.ones(2, device="toy").device.index == 1
    accelerator.set_device_index("toy:0")
    with pytest.raises(ValueError, match="Expected a toy device, but got: cpu"):
        accelerator.synchronize("cpu")
    with pytest.raises(RuntimeError, match="toy:2: invalid device, there are 2"):
        accelerator.set_device_index(2)
    with pytest.raises(NotImplementedError, match="mem_get_info is not there for toy"):
        accelerator.get_memory_info()


def test_memory_is_counted_and_given_back():
    accelerator = taeda.accelerator
    accelerator.synchronize()
    accelerator.reset_peak_memory_stats()
    before, blocks = accelerator.memory_allocated(), toy.native.blocks_in_use()
    kept = taeda.empty(1000, device="toy")
    assert accelerator.memory_allocated() == before + 4000
    del kept
    assert accelerator.memory_allocated() == before
    assert accelerator.max_memory_allocated() >= before + 4000
    assert toy.native.blocks_in_use() == blocks


def test_pinned_memory():
    here = taeda.tensor(ROWS)
    pinned = here.pin_memory()
    assert pinned.is_pinned() and not here.is_pinned()
    assert pinned.equal(here) and pinned.device.type == "cpu"
    assert pinned.to("toy", non_blocking=True).tolist() == ROWS


# Files --------------------------------------------------------------------------


def test_saving_and_loading(x):
    model = taeda.nn.Linear(2, 2).toy(1)
    file = io.BytesIO()
    taeda.save({"x": x, "model": model.state_dict()}, file)

    def loaded(where=None):
        file.seek(0)
        return taeda.load(file, map_location=where)

    same = loaded()
    assert same["x"].device == taeda.device("toy:0") and same["x"].equal(x)
    assert same["model"]["weight"].device == taeda.device("toy:1")
    assert loaded("cpu")["x"].tolist() == ROWS
    assert loaded("toy:1")["x"].device == taeda.device("toy:1")
    assert loaded({"toy:0": "toy:1"})["x"].device == taeda.device("toy:1")
    assert loaded(lambda storage, tag: storage)["x"].device.type == "cpu"
    toy.is_available = lambda: False
    try:
        with pytest.raises(RuntimeError, match=r"object on a TOY device but"):
            loaded()
    finally:
        toy.is_available = lambda: True


# Mixed precision ----------------------------------------------------------------


def test_autocast(x):
    assert taeda.amp.is_autocast_available("toy")
    with taeda.autocast("toy"):
        assert taeda.is_autocast_enabled("toy")
        product = x @ x.t()
        assert product.dtype == taeda.float16 and product.is_toy
        assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype == taeda.float32
        assert x.half().softmax(0).dtype == taeda.float32
    with taeda.autocast("toy", dtype=taeda.bfloat16):
        assert functional.linear(x, x).dtype == taeda.bfloat16
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with taeda.autocast("toy", dtype=taeda.float64):
            assert (x @ x.t()).dtype == taeda.float32
    assert "TOY autocast, but the target dtype is not supported" in str(seen[0].message)


def test_autocast_asks_the_module(x):
    known = toy.get_amp_supported_dtype
    del toy.get_amp_supported_dtype
    try:
        with pytest.raises(AssertionError, match="get_amp_supported_dtype"):
            taeda.autocast("toy")
    finally:
        toy.get_amp_supported_dtype = known


def test_scaled_gradients(x):
    weights = x.clone().requires_grad_()
    step = taeda.optim.SGD([weights], lr=0.5)
    scaler = taeda.amp.GradScaler("toy", init_scale=8.0)
    scaler.scale((weights * weights).sum()).backward()
    scaler.step(step)
    scaler.update()
    assert weights.tolist() == [[0.0] * 3] * 2
    step.zero_grad()
    scaler.scale((weights / 0).sum()).backward()
    scaler.step(step)
    scaler.update()
    assert scaler.get_scale() == 4.0 and weights.tolist() == [[0.0] * 3] * 2


# Operators of users -------------------------------------------------------------


def test_custom_operators(x):
    @taeda.library.custom_op("toys::twice", mutates_args=(), device_types="cpu")
    def twice(t: taeda.Tensor) -> taeda.Tensor:
        return t * 2

    assert twice(taeda.ones(1)).tolist() == [2]

    @twice.register_kernel("toy")
    def _(t):
        return t + t + 0 * t

    assert twice(x).tolist() == (x * 2).tolist()
    taeda.library.register_autocast("toys::twice", "toy", taeda.bfloat16)
    with taeda.autocast("toy"):
        assert twice(x).dtype == taeda.bfloat16
    assert twice(x).dtype == taeda.float32
