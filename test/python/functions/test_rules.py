"""What single operators make of batches and tangents equals PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest
import taeda
import torch


def real(library, *shape: int):
    random = numpy.random.default_rng(len(shape) + sum(shape))
    return library.from_numpy(numpy.asarray(random.normal(size=shape)))


def complex_numbers(library, *shape: int):
    return library.complex(real(library, *shape), real(library, *shape[::-1]).mT)


def places(library, high: int, *shape: int):
    random = numpy.random.default_rng(high + sum(shape))
    return library.from_numpy(random.integers(0, high, size=shape))


def pushed(library, function: Callable, *primals):
    """Value and tangent along something that differs from element to element."""
    tangents = tuple(p.sin() for p in primals)
    return library.func.jvp(function, primals, tangents)


def complex_convolution(t):
    x, w = complex_numbers(t, 5, 2).mT[None], complex_numbers(t, 2, 3)[None]
    factor = complex_numbers(t, 1, 3)[None]

    def loss(x, w):
        return t.real((t.nn.functional.conv1d(x, w) * factor).sum())

    return pushed(t, t.func.grad(loss, argnums=(0, 1)), x.resolve_conj(), w)


def instance_norm(t):
    mean, var = t.zeros(3, dtype=t.float64), t.ones(3, dtype=t.float64)

    def norm(x):
        return t.nn.functional.instance_norm(x, mean, var).cos().sum()

    grad = t.func.grad(norm)(real(t, 2, 3, 4))
    return grad, mean, var


def unpooled(t):
    where = t.tensor([[[0, 2, 2]]])
    return pushed(
        t, lambda x: t.nn.functional.max_unpool1d(x, where, 2), real(t, 1, 1, 3)
    )


def written(t):
    def put(x, i, v):
        return x.index_put((i, i), v, accumulate=True), x.clone().index_put_((i,), v)

    return t.vmap(put)(real(t, 3, 4, 4), places(t, 4, 3, 4), real(t, 3, 4))


def resized(t):
    return t.vmap(lambda x: x.clone().resize_(2, 3) * 2)(real(t, 3, 4, 5))


def filled(t):
    mask = real(t, 3, 4) > 0
    return t.vmap(lambda x, m, v: x.masked_fill(m, v))(real(t, 3, 4), mask, real(t, 3))


def normed(t):
    f, x = t.nn.functional, real(t, 3, 2, 4)
    weights, biases = real(t, 3, 4), real(t, 3, 4) + 1
    layer = t.vmap(lambda x, w, b: f.layer_norm(x, (4,), w, b))(x, weights, biases)
    shared = t.vmap(lambda w: f.rms_norm(x, (4,), w))(weights)
    groups = t.vmap(lambda x, w: f.group_norm(x, 2, w))(real(t, 3, 2, 4, 5), weights)
    return layer, shared, groups


def solved(t):
    a = real(t, 3, 4, 4)
    vectors = t.vmap(t.linalg.solve)(a, real(t, 3, 4))
    right = t.vmap(lambda b: t.linalg.solve(a[0], b, left=False))(real(t, 3, 2, 4))
    return vectors, right


def products(t):
    a, b, v = real(t, 3, 4, 5), real(t, 3, 5, 2), real(t, 3, 5)
    linear = t.vmap(t.nn.functional.linear)(a, real(t, 3, 2, 5), real(t, 3, 2))
    added = t.vmap(lambda s, a, b: t.addmm(s, a, b, beta=2, alpha=3))
    row = t.vmap(t.addmv)(real(t, 3, 4), a, v)
    return linear, added(real(t, 3, 4, 2), a, b), row


def quantiles(t):
    def middle(x):
        return t.quantile(x, 0.3) + t.nanquantile(x, t.tensor(0.6, dtype=x.dtype))

    return t.vmap(t.func.grad(middle))(real(t, 3, 5))


PROGRAMS: dict[str, Callable] = {
    "complex convolution, forward over reverse": complex_convolution,
    "statistics of instance_norm": instance_norm,
    "max_unpool with a place twice": unpooled,
    "index_put": written,
    "resize_": resized,
    "masked_fill": filled,
    "weights of norms": normed,
    "systems": solved,
    "products": products,
    "quantiles": quantiles,
    "cumprod at zero": lambda t: pushed(
        t,
        t.func.grad(lambda x: x.cumprod(0).sum()),
        real(t, 4) * t.tensor([1, 0, 1, 0]),
    ),
    "take_along_dim from the end": lambda t: t.func.grad(
        lambda x: t.take_along_dim(x, t.tensor([[0, -1], [-3, 1]]), 0).cos().sum()
    )(real(t, 3, 2)),
    "index": lambda t: t.vmap(lambda x, i: (x[:, i], x[i, :, i], x[i]))(
        real(t, 3, 4, 5, 4), places(t, 4, 3, 6)
    ),
    "index of what is shared": lambda t: t.vmap(lambda i: real(t, 5, 5)[:, i])(
        places(t, 5, 3, 6)
    ),
    "index_select and index_add": lambda t: t.vmap(
        lambda x, i: (x.index_select(1, i), x.index_add(0, i, x[:2], alpha=2))
    )(real(t, 3, 4, 4), places(t, 4, 3, 2)),
    "embedding": lambda t: t.vmap(t.nn.functional.embedding)(
        places(t, 5, 3, 2), real(t, 3, 5, 4)
    ),
    "repeat": lambda t: t.vmap(lambda x: x.repeat(2, 1, 3))(real(t, 3, 4, 2)),
    "extremes": lambda t: t.vmap(lambda x: (x.max(), x.min(), x.median()))(
        real(t, 3, 4, 3)
    ),
    "matrix_exp": lambda t: t.vmap(t.matrix_exp)(
        real(t, 3, 2, 2) * t.tensor([1, 10, 0.1])[:, None, None]
    ),
    "matrix_exp, second derivative": lambda t: t.func.hessian(
        lambda a: t.matrix_exp(a).sum()
    )(real(t, 2, 2)),
    "lu of a wide matrix": lambda t: pushed(
        t, lambda a: t.linalg.lu(a)[1:], real(t, 2, 3)
    ),
    "lu of a tall matrix": lambda t: t.func.grad(
        lambda a: t.linalg.lu_factor(a)[0].cos().sum()
    )(real(t, 4, 3)),
    "eigenvalues": lambda t: pushed(
        t, lambda a: t.view_as_real(t.linalg.eigvals(a @ a.mT)), real(t, 3, 3)
    ),
    "as_strided beyond its input": lambda t: pushed(
        t, lambda x: x.as_strided((2,), (1,), 2), real(t, 6)[3:]
    ),
    "put of one number": lambda t: pushed(
        t,
        lambda x, v: x.put(t.tensor(1), v, accumulate=True),
        real(t, 4),
        real(t, 1),
    ),
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
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-7, atol=1e-9)


def test_logcumsumexp_far_apart() -> None:
    """Shares e^(x_i - total_j), of which PyTorch's tangent loses the first."""
    x = taeda.tensor([1.0, 10000.0, 3.0, -10000.0], dtype=taeda.float64)
    tangent = x.sin()
    total, got = taeda.func.jvp(lambda x: x.logcumsumexp(0), (x,), (tangent,))
    shares = (x - total[:, None]).exp().tril()
    assert taeda.allclose(got, shares @ tangent)
    assert taeda.allclose(
        taeda.func.grad(lambda x: x.logcumsumexp(0).sum())(x), shares.sum(0)
    )


def test_memory_format_of_a_sample() -> None:
    x = real(taeda, 3, 2, 3, 4, 5)
    got = taeda.vmap(lambda x: x.to(taeda.float32, memory_format=taeda.channels_last))(
        x
    )
    for have, want in zip(got, x, strict=True):
        assert have.is_contiguous(memory_format=taeda.channels_last)
        assert taeda.equal(have, want.float())
