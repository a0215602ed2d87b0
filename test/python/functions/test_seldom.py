"""Functions and methods that few programs call, against PyTorch's."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


def both(call, *arrays, **options):
    """The results of a call on tensors of both libraries, as NumPy arrays."""
    found = []
    for library in (taeda, torch):
        tensors = [library.from_numpy(a.copy()) for a in arrays]
        found.append(numpy.asarray(call(library, *tensors, **options)))
    return found


def values(*shape):
    return numpy.random.default_rng(0).standard_normal(shape).astype("float32")


CALLS = {
    "frobenius": lambda t, x: t.frobenius_norm(x, (0, 2)),
    "frobenius_one": lambda t, x: t.frobenius_norm(x, 1, keepdim=True),
    "frobenius_all": lambda t, x: t.frobenius_norm(x, []),
    "frobenius_out": lambda t, x: t.frobenius_norm(x, 1, out=t.empty(0)),
    "nuclear": lambda t, x: t.nuclear_norm(x[0]),
    "nuclear_keep": lambda t, x: t.nuclear_norm(x[0], True),
    "nuclear_dims": lambda t, x: t.nuclear_norm(x, dim=(0, 1)),
    "detach_copy": lambda t, x: t.detach_copy(x),
    "detach_copy_out": lambda t, x: t.detach_copy(x, out=t.empty(0)),
    "slice_inverse": lambda t, x: t.slice_inverse(x[:, 1:3], x, 1, 1, 3),
    "slice_inverse_step": lambda t, x: x[:, :, ::2].slice_inverse(x, 2, 0, 4, 2),
    "resize": lambda t, x: x.resize(6, -1 + 5),
    "resize_as": lambda t, x: x.mT.resize_as(x),
    "map2": lambda t, x: x.map2_(x, x[0].clone(), lambda a, b, c: a + b * c),
    "div": lambda t, x: x.__div__(2),
    "idiv": lambda t, x: x.__idiv__(4),
    "long": lambda t, x: x[0, 0, 0].__long__(),
    "nonzero": lambda t, x: x[0, 0, 0].__nonzero__(),
    "lu": lambda t, x: x[:, :, :3].lu()[0],
    "lu_pivots": lambda t, x: x[:, :, :3].lu()[1],
    "set_to": lambda t, x: [x.is_set_to(x.view(2, 3, 4)), x.is_set_to(x[1:])],
    "fresh": lambda t, x: [t.sym_fresh_size(3), t.sym_fresh_size(t.tensor(4))],
    "questions": lambda t, x: [
        t.is_distributed(x),
        x.is_distributed(),
        t.is_vulkan_available(),
        t.cudnn_is_acceptable(x),
        t.is_autocast_xla_enabled(),
        t.is_autocast_ipu_enabled(),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_pytorchs(name) -> None:
    ours, theirs = both(CALLS[name], values(2, 3, 4))
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    numpy.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


ERRORS = {
    "dims": lambda t, x: t.frobenius_norm(x, (0, 1, 2)),
    "one_dim": lambda t, x: t.nuclear_norm(x, dim=(0,)),
    "resize": lambda t, x: x.resize(5),
    "resize_as": lambda t, x: x.resize_as(x[0]),
    "range": lambda t, x: t.sym_constrain_range(3, min=5),
    "range_empty": lambda t, x: t.sym_constrain_range(3, min=5, max=4),
    "range_size": lambda t, x: t.sym_constrain_range_for_size(3, max=2),
    "range_negative": lambda t, x: t.sym_constrain_range_for_size(-1),
    "slice": lambda t, x: t.slice_inverse(t.ones(1), x),
    "eig": lambda t, x: x.eig(),
    "symeig": lambda t, x: t.symeig(x),
    "lstsq": lambda t, x: t.lstsq(x, x),
    "matrix_rank": lambda t, x: t.matrix_rank(x),
    "solve": lambda t, x: x.solve(x),
    "xpu": lambda t, x: x.xpu(),
    "mtia": lambda t, x: x.mtia(),
    "lobpcg_rows": lambda t, x: t.lobpcg(t.eye(5), k=2),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_pytorchs_types(name) -> None:
    for library in (torch, taeda):
        with pytest.raises(Exception) as raised:
            ERRORS[name](library, library.from_numpy(values(2, 3, 4)))
        if library is torch:
            theirs = raised.type
    assert raised.type is theirs and str(raised.value)


def test_methods_ask_torch_function() -> None:
    class Named(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    x = taeda.ones(2).as_subclass(Named)
    assert x.map2_(x, x, max) == "map2_" and x.is_set_to(x) == "is_set_to"
    with pytest.raises(TypeError, match="record_stream: expected a stream, got int"):
        taeda.ones(1).record_stream(3)
    assert taeda.ones(1).record_stream(taeda.cpu.current_stream()) is None
    with pytest.raises(AssertionError, match="not compiled with IPU"):
        taeda.ones(1).ipu()


def test_gradients_pass() -> None:
    grads = []
    for library in (taeda, torch):
        x = library.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
        total = library.frobenius_norm(x, (0, 1)) + library.nuclear_norm(x)
        (total + x.resize(4).sum()).backward()
        grads.append(x.grad.flatten().tolist())
    assert grads[0] == pytest.approx(grads[1], rel=1e-5)
    assert not taeda.detach_copy(taeda.ones(1, requires_grad=True)).requires_grad


def test_autocast_of_old_devices() -> None:
    for library in (taeda, torch):
        before = library.get_autocast_xla_dtype(), library.get_autocast_ipu_dtype()
        assert before == (library.bfloat16, library.float16)
        library.set_autocast_ipu_dtype(library.bfloat16)
        library.set_autocast_xla_enabled(True)
        try:
            assert library.is_autocast_enabled("xla")
            assert library.get_autocast_dtype("ipu") == library.bfloat16
        finally:
            library.set_autocast_ipu_dtype(before[1])
            library.set_autocast_xla_enabled(False)


def symmetric(m: int, *batch: int):
    x = numpy.random.default_rng(1).standard_normal((*batch, m, m))
    return x + x.swapaxes(-1, -2)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("method", ["basic", "ortho"])
def test_lobpcg_finds_what_eigh_finds(largest, method) -> None:
    taeda.manual_seed(0)
    for a in (symmetric(30), symmetric(12, 2, 3)):
        values, vectors = taeda.lobpcg(
            taeda.from_numpy(a), 3, largest=largest, method=method, tol=1e-12
        )
        want = numpy.linalg.eigvalsh(a)
        want = want[..., ::-1][..., :3] if largest else want[..., :3]
        numpy.testing.assert_allclose(values.numpy(), want, rtol=1e-9)
        residual = a @ vectors.numpy() - vectors.numpy() * values.numpy()[..., None, :]
        assert abs(residual).max() < 1e-9
        gram = vectors.mT @ vectors
        taeda.testing.assert_close(
            gram, taeda.eye(3, dtype=taeda.float64).expand_as(gram)
        )


def test_lobpcg_of_two_matrices_with_a_preconditioner() -> None:
    m = 60
    a = numpy.diag(numpy.arange(1.0, m + 1)) + 0.01 * symmetric(m)
    b = numpy.eye(m) + 0.005 * symmetric(m)
    inverse = numpy.diag(1 / numpy.arange(1.0, m + 1))
    options = {"k": 2, "n": 4, "largest": False, "niter": 40, "tol": 1e-10}
    found = []
    for library in (taeda, torch):
        library.manual_seed(0)
        A, B, near = (library.from_numpy(t) for t in (a, b, inverse))
        found.append(library.lobpcg(A, B=B, iK=near, **options))
    (ours, vectors), (theirs, _) = found
    numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-8)
    numpy.testing.assert_allclose(
        (vectors.mT @ taeda.from_numpy(b) @ vectors).numpy(), numpy.eye(2), atol=1e-9
    )


def test_lobpcg_gives_gradients() -> None:
    grads = []
    for library in (taeda, torch):
        a = library.from_numpy(symmetric(9)).requires_grad_()
        x = library.from_numpy(numpy.eye(9)[:, :2].copy())
        values, vectors = library.lobpcg(a, X=x)
        (values.sum() + (vectors**2 * library.arange(9.0)[:, None]).sum()).backward()
        grads.append((a.grad + a.grad.mT).numpy())
    numpy.testing.assert_allclose(*grads, rtol=1e-4, atol=1e-4)
    with pytest.raises(NotImplementedError, match="lobpcg: the gradient with B"):
        eye = taeda.eye(9)
        taeda.lobpcg(eye.clone().requires_grad_(), B=eye)
    with pytest.raises(NotImplementedError, match="lobpcg: tracker"):
        taeda.lobpcg(taeda.eye(9), tracker=print)
    with pytest.raises(ValueError, match="expected method"):
        taeda.lobpcg(taeda.eye(9), method="fast")


STREAMS = [
    "Stream()",
    "Stream('cpu')",
    "Stream('meta')",
    "Stream(stream_id=3, device_index=0, device_type=0)",
    "Stream('cpu').query()",
    "Stream('cpu').device_index",
    "Stream('meta').device_type",
    "Stream('cpu').stream_id",
    "Stream('cpu').is_capturing()",
    "Stream('cpu') == Stream('cpu')",
    "Stream('cpu') == Stream('meta')",
    "Stream('cpu').__enter__()",
    "Stream('cpu').wait_event(Event('cpu'))",
    "Stream('cpu').synchronize()",
    "Stream('cpu').record_event()",
    "Stream('cpu').wait_stream(Stream('cpu'))",
    "Stream('cuda')",
    "Event()",
    "Event('cpu', enable_timing=True)",
    "Event().query()",
    "Event().wait()",
    "Event().synchronize()",
    "Event().event_id",
    "Event().device",
    "Event().record()",
    "Event('cuda')",
    "Event().elapsed_time(Event())",
    "Event(enable_timing=True).elapsed_time(Event(enable_timing=True))",
    "Event().ipc_handle()",
]


@pytest.mark.parametrize("call", STREAMS)
def test_streams_and_events_of_the_cpu(call) -> None:
    found = []
    for library in (taeda, torch):
        names = {"Stream": library.Stream, "Event": library.Event}
        try:
            found.append(repr(eval(call, names)).replace("torch.", "taeda."))
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]
    assert len({taeda.Stream(), taeda.Stream("cpu")}) == 1


def test_a_number_among_blocks_promotes_as_one() -> None:
    for m in (taeda, torch):
        number = m.tensor(1.0, dtype=m.float64)
        assert m.block_diag(m.ones(2, 2), number).dtype == m.float32
        assert m.block_diag(m.ones(2, 2).int(), m.tensor(1.5)).dtype == m.float32
        assert m.block_diag(m.ones(2), m.ones(1).double()).dtype == m.float64
