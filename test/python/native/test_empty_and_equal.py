"""What operators make of nothing, of equal elements and of real or whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest
import taeda
import torch
from tolerance import rounding

CLOSE = rounding("float32", 32)


def norms_of_nothing(t):
    shapes = (5, 0), (0, 5), (0, 0), (2, 0, 3)
    return [
        t.linalg.matrix_norm(t.zeros(shape), order)
        for shape in shapes
        for order in (1, 2)
    ] + [t.linalg.norm(t.zeros(5, 0), 1, (0, 1), keepdim=True)]


def cosines(t):
    """The norm counts an element as often as broadcasting does."""
    a = t.arange(6.0).reshape(1, 2, 3) + 1
    b = (t.arange(6.0) + 1).cos().reshape(2, 1, 3)
    f = t.nn.functional.cosine_similarity
    return f(a, b, dim=-2), f(a, b[0], dim=1), f(b, a, dim=0)


def modes(t):
    random = numpy.random.default_rng(0)
    x = t.from_numpy(random.integers(0, 40, size=(3, 500)))
    return tuple(t.mode(x)) + tuple(t.mode(x > 20))


def polygamma_in_place(t):
    x = t.tensor([0.5, 1.5, 2.5], dtype=t.float64, requires_grad=True)
    x.clone().polygamma_(1).sum().backward()
    return x.grad


PROGRAMS: dict[str, Callable] = {
    "norms of nothing": norms_of_nothing,
    "cosine_similarity": cosines,
    "mode": modes,
    "polygamma_": polygamma_in_place,
}


def leaves(tree) -> list:
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in leaves(each)]
    return [tree]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name: str) -> None:
    got, want = leaves(PROGRAMS[name](taeda)), leaves(PROGRAMS[name](torch))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert tuple(g.shape) == tuple(w.shape)
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=CLOSE, atol=CLOSE)


def test_the_conjugate_of_real_numbers_is_themselves() -> None:
    for x in (taeda.ones(2), taeda.ones(2, device="meta"), taeda.tensor([True])):
        assert taeda.conj_physical(x) is x
    z = taeda.tensor([1 + 2j], requires_grad=True)
    w = z.clone().conj_physical_()
    assert w.item() == 1 - 2j and not w.is_conj()
    w.real.sum().backward()
    assert z.grad.item() == 1


def test_whole_numbers_are_those_of_the_default_dtype() -> None:
    x = taeda.arange(-60, 2000)
    special, f = taeda.special, x.float()
    assert taeda.equal(special.xlog1py(x, x.abs()), special.xlog1py(f, f.abs()))
    assert taeda.equal(special.ndtr(x), special.ndtr(f))


def test_lu_with_infos_is_a_named_tuple() -> None:
    for device in ("cpu", "meta"):
        found = taeda.lu(taeda.eye(3, device=device), get_infos=True)
        assert type(found).__name__ == "_lu_with_info"
        assert found.LU is found[0] and found.info is found[2]
        assert type(taeda.lu(taeda.eye(3, device=device))) is tuple


def _pool(name: str, d: int, shape: tuple, *args, **options):
    """A pool's result and gradient, or the class of its error."""

    def run(t):
        x = t.ones(shape, requires_grad=True)
        try:
            out = getattr(t.nn.functional, f"{name}{d}d")(x, *args, **options)
            out.sum().backward()
        except RuntimeError as error:
            return type(error)
        return tuple(out.shape), tuple(x.grad.shape)

    return run


EMPTY_POOLS = {
    f"{name}{d}d {shape} {size}": _pool(name, d, (*shape, *(6,) * d), size)
    for name in ("adaptive_max_pool", "adaptive_avg_pool")
    for d in (1, 2, 3)
    for shape in ((0, 2), (1, 0), (0,), (1, 2))
    for size in (0, 2)
} | {
    f"fractional_max_pool{d}d {shape} {size}": _pool(
        "fractional_max_pool", d, (*shape, *(6,) * d), 2, output_size=size
    )
    for d in (2, 3)
    for shape in ((0, 2), (1, 0), (1, 2))
    for size in (0, 2, 6)
}


@pytest.mark.parametrize("case", EMPTY_POOLS)
def test_pools_of_and_to_nothing(case) -> None:
    assert EMPTY_POOLS[case](taeda) == EMPTY_POOLS[case](torch)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_without_classes(reduction, smoothing) -> None:
    found = []
    for t in (taeda, torch):
        loss = t.nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)
        found.append(loss(t.ones(5, 0), t.ones(5, 0)).tolist())
    assert numpy.array_equal(*found, equal_nan=True)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_of_an_empty_batch(kind) -> None:
    layer = getattr(taeda.nn, kind)(3, 4, num_layers=2, bidirectional=True)
    out, state = layer(taeda.zeros(5, 0, 3))
    state = state[0] if kind == "LSTM" else state
    assert out.shape == (5, 0, 8) and state.shape == (4, 0, 4)
    out.sum().backward()
    assert layer.weight_ih_l0.grad.count_nonzero() == 0


def test_vectors_without_elements_are_joined_along_any_dim():
    for library in (taeda, torch):
        empty = library.empty(0)
        assert library.cat([empty, empty], dim=1).shape == (0,)
        x = library.ones(2, 3)
        assert library.cat([empty, x, empty], dim=1).shape == (2, 3)


@pytest.mark.parametrize(
    "dtype, most", [("uint8", 256), ("int8", 128), ("int16", 32768), ("float16", 2049)]
)
def test_permutations_of_as_many_numbers_as_a_dtype_has(dtype, most):
    for library in (taeda, torch):
        numbers = library.randperm(most, dtype=getattr(library, dtype))
        assert sorted(numbers.tolist()) == list(range(most))
        with pytest.raises(RuntimeError):
            library.randperm(most + 1, dtype=getattr(library, dtype))


def test_complex_numbers_of_a_16_bit_default():
    for library in (taeda, torch):
        before = library.get_default_dtype()
        library.set_default_dtype(library.float16)
        try:
            assert library.full((2,), 1j).dtype == library.complex64
        finally:
            library.set_default_dtype(before)


def test_complex_numbers_are_no_whole_ones():
    for library in (taeda, torch):
        assert complex(library.tensor([1.5j])) == 1.5j
        with pytest.raises(RuntimeError, match="cannot be converted to type"):
            int(library.tensor(1.5j))


def test_sequences_without_items_have_no_shape():
    class Sequence:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, place):
            raise TypeError

    for library in (taeda, torch):
        with pytest.raises(ValueError, match="could not determine the shape"):
            library.tensor(Sequence())


def test_planes_that_there_are_not_may_be_of_any_size():
    for library in (taeda, torch):
        pool = library.nn.functional.adaptive_avg_pool2d
        assert pool(library.empty(1, 0, 3, 7), (3, 2**45)).shape == (1, 0, 3, 2**45)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_planes_without_elements(training):
    for library in (taeda, torch):
        x = library.empty(1, 2, 0, 1)
        found = library.zeros(2), library.ones(2)
        if training:
            with pytest.raises(RuntimeError, match="at least one element"):
                library.native_batch_norm(x, None, None, *found, True, 0.1, 1e-5)
        else:
            made = library.native_batch_norm(x, None, None, *found, False, 0.1, 1e-5)
            assert made[0].shape == x.shape


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("largest", [False, True])
def test_the_best_of_one_value_is_that_value(k, largest):
    for library in (taeda, torch):
        values, places = library.tensor(1.5).topk(k, largest=largest)
        assert values.tolist() == 1.5 and places.tolist() == 0


def test_lines_without_numbers_have_no_spectrum():
    x = taeda.empty(3, 4, 0)
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        taeda.ops.aten._fft_r2c(x, [-1], 0, True)
    assert taeda.ops.aten._fft_c2c(x.cfloat(), [-1], 0, True).shape == x.shape
