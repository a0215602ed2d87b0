"""Complex tensors of two parts, and copies that conjugate and negate."""

import numpy as np
import pytest
import taeda

REALS = [("float32", 2e-7), ("float64", 4e-16)]


def _values(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (7, 5), (300, 301)])
@pytest.mark.parametrize(("dtype", "tolerance"), REALS)
def test_parts_of_every_layout(shape, dtype, tolerance) -> None:
    x = taeda.tensor(_values(*shape), dtype=getattr(taeda, dtype))
    y = x.flip(tuple(range(x.dim()))) + 1
    for a, b in ((x, y), (x.mT.contiguous().mT if x.dim() > 1 else x, y)):
        z = taeda.complex(a, b)
        assert z.real.equal(x) and z.imag.equal(y)
    p = taeda.polar(x.abs(), y)
    want = np.abs(x.numpy()) * np.exp(1j * y.numpy().astype(np.float64))
    assert p.dtype == z.dtype
    gap = np.abs(p.numpy() - want)
    assert (gap <= 2 * tolerance * np.abs(want) + 1e-300).all()


def test_parts_that_broadcast_lazily_and_into_views() -> None:
    row, column = taeda.arange(4.0), taeda.arange(3.0)[:, None]
    z = taeda.complex(row.expand(3, 4), column.expand(3, 4))
    assert z.real.equal(row.expand(3, 4)) and z.imag.equal(column.expand(3, 4))
    negative = z.conj().imag
    assert taeda.complex(negative, negative).real.equal(-z.imag)
    out = taeda.zeros(4, 3, dtype=taeda.complex64).t()
    taeda.complex(z.real, z.imag, out=out)
    assert out.equal(z) and out.stride() == (1, 3)
    halves = taeda.complex(row.half(), row.half())
    assert halves.dtype == taeda.complex32 and halves.real.equal(row.half())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 1001])
def test_conjugated_and_negated_copies(dtype, size) -> None:
    real, imag = _values(size), _values(size, 1)[:, 0]
    if size > 2:
        real[:3], imag[:3] = [0.0, np.nan, -np.inf], [-0.0, 0.0, np.inf]
    z = taeda.complex(taeda.tensor(real), taeda.tensor(imag)).to(getattr(taeda, dtype))
    w = z.numpy()

    def parts(array):
        return np.stack([array.real, array.imag])

    for change, want in (
        (lambda t: t.conj(), w.conj()),
        (lambda t: t._neg_view(), -w),
        (lambda t: t.conj()._neg_view(), -w.conj()),
        (lambda t: t.conj().imag, -w.imag),
        (lambda t: t[::2].conj(), w[::2].conj()),
        (lambda t: t.conj().expand(2, size), np.stack([w.conj()] * 2)),
    ):
        lazy = change(z)
        into = taeda.empty(lazy.shape, dtype=lazy.dtype)
        for copy in (lazy.clone(), lazy.contiguous(), into.copy_(lazy)):
            got = copy.resolve_conj().resolve_neg().numpy()
            np.testing.assert_array_equal(parts(got), parts(want))
            signs = np.signbit(parts(got)) == np.signbit(parts(want))
            assert (signs | np.isnan(parts(want))).all()


def test_negated_copies_of_other_types() -> None:
    halves = taeda.complex(taeda.arange(3.0).half(), taeda.ones(3).half())
    copy = halves.conj()._neg_view().clone()
    assert copy.real.tolist() == [0, -1, -2] and copy.imag.tolist() == [1, 1, 1]
    assert taeda.arange(5)._neg_view().clone().tolist() == [0, -1, -2, -3, -4]
