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


def joined(t):
    """Vectors of no elements join tensors of any shape."""
    none = t.zeros(0, dtype=t.float64)
    return t.vmap(lambda x, e: t.cat([e, x, none, x], 1))(
        real(t, 3, 2, 2), real(t, 3, 0)
    )


def masked_scattered(t):
    mask = real(t, 3, 4, 5) > 0

    def put(x, m, source):
        return x.masked_scatter(m, source)

    def loss(x, m, source):
        return put(x, m, source).cos().sum()

    args = real(t, 3, 4, 5), mask, real(t, 3, 22)
    slopes = t.func.grad(loss, argnums=(0, 2))
    shared = t.vmap(put, in_dims=(None, 0, None))(args[0][0], mask, args[2][0])
    return t.vmap(put)(*args), t.vmap(slopes)(*args), shared


def sequences(t):
    """Losses with lengths of their own, and lengths that all share."""
    probs = real(t, 3, 6, 2, 4).log_softmax(-1)
    targets = places(t, 3, 3, 2, 3) + 1
    steps, labels = (
        t.tensor([[6, 5], [6, 6], [4, 6]]),
        t.tensor([[2, 1], [0, 2], [2, 2]]),
    )

    def loss(p, targets, steps, labels):
        return t.nn.functional.ctc_loss(p, targets, steps, labels)

    def fixed(p, targets):
        return t.nn.functional.ctc_loss(p, targets, (6, 5), (2, 1), reduction="sum")

    own = t.vmap(loss)(probs, targets, steps, labels)
    slopes = t.vmap(t.func.grad(loss))(probs, targets, steps, labels)
    return own, slopes, t.vmap(t.func.grad(fixed))(probs, targets)


def sampled(t):
    """Second derivatives, also beyond the edge."""

    def curved(kinds: tuple, *args):
        def loss(*args):
            return t.nn.functional.grid_sample(*args, *kinds).cos().sum()

        def steep(*args):
            return sum((s**2).sum() for s in t.func.grad(loss, argnums=(0, 1))(*args))

        return t.func.grad(steep, argnums=(0, 1))(*args)

    image, places = (real(t, 2, 3, 4, 5), real(t, 2, 3, 2, 2)), []
    for mode in ("bilinear", "nearest", "bicubic"):
        for beyond in ("zeros", "border", "reflection"):
            for corners in (False, True):
                places.append(curved((mode, beyond, corners), *image))
    volume = real(t, 1, 2, 3, 4, 3), real(t, 1, 2, 2, 1, 3)
    return places, curved(("bilinear", "zeros", False), *volume)


def transposed_convolution(t):
    """The output padding has room for a place more than the input has."""

    def loss(x, w):
        out = t.nn.functional.conv_transpose2d(
            x, w, stride=2, padding=1, output_padding=2, dilation=3
        )
        return out.cos().sum()

    return pushed(
        t, t.func.grad(loss, argnums=(0, 1)), real(t, 1, 2, 3, 4), real(t, 2, 3, 2, 3)
    )


def full_singular_vectors(t):
    """The vectors beyond the singular values are ignored."""

    def first(a):
        u, s, vh = t.linalg.svd(a, full_matrices=True)
        return (u[:, :2] * u[:1, :2].sgn()).cos().sum() + s.sum() + (vh**2).sum()

    return pushed(t, first, real(t, 4, 2)), t.func.grad(first)(real(t, 4, 2))


def products_of_nothing(t):
    none = t.ones(0, dtype=t.float64)
    rows = t.ones(2, 0, dtype=t.float64)
    return pushed(t, t.prod, none), pushed(t, lambda x: x.prod(1), rows)


def numbers(t):
    """Views, and rows of one, of what is a number to the mapped function."""
    x, at, one = real(t, 3), t.zeros(3, 1, dtype=t.int64), real(t, 3, 1)

    def rows(x, i, v):
        return (
            x.index_select(0, i),
            x.index_add(0, i, v[0]),
            x.index_copy(0, i[0], v[0]),
            x.index_fill(0, i, v[0]),
            x.clone().index_add_(0, i, v[0]),
        )

    def views(x):
        return x.transpose(0, -1), x.squeeze(0), x.unfold(0, 1, 1)

    return t.vmap(views)(x), t.vmap(rows)(x, at, one)


def indices_of_their_own(t):
    x, i, v = real(t, 3, 4, 2), places(t, 4, 3, 3), real(t, 3, 3, 2)
    found = [
        t.vmap(lambda x, i: x.index_fill(0, i, 7))(x, i),
        t.vmap(lambda i: x[0].index_fill(0, i, 7))(i),
        t.vmap(lambda x, i, n: x.index_fill(-2, i, n))(x, i, real(t, 3)),
        t.vmap(lambda x, n: x.index_fill(0, i[0], n))(x, real(t, 3)),
        t.vmap(lambda x, i: x.clone().index_fill_(0, i[0], 7))(x, i),
    ]
    for kind in ("prod", "mean", "amax", "amin"):
        for with_self in (True, False):
            put = t.vmap(
                lambda x, i, v, kind=kind, with_self=with_self: x.index_reduce(
                    0, i, v, kind, include_self=with_self
                )
            )
            found.append(put(x, i, v))
    return found


def lookups(t):
    steps, x = real(t, 3, 5).sort(-1)[0], real(t, 3, 2, 4)

    def loss(table, i):
        out = t.nn.functional.embedding(i, table, padding_idx=1)
        scaled = t.nn.functional.embedding(i, table, scale_grad_by_freq=True)
        return out.cos().sum() + scaled.sin().sum()

    slopes = t.vmap(t.func.grad(loss))(real(t, 3, 4, 2), places(t, 4, 3, 6))
    return (
        t.vmap(t.bucketize)(x, steps),
        t.vmap(lambda s: t.bucketize(x, s))(steps),
        slopes,
    )


PROGRAMS: dict[str, Callable] = {
    "cat with empty vectors": joined,
    "masked_scatter": masked_scattered,
    "numbers": numbers,
    "index_fill and index_reduce": indices_of_their_own,
    "bucketize and gradients of embedding": lookups,
    "vdot": lambda t: t.vmap(t.vdot)(
        complex_numbers(t, 3, 4), complex_numbers(t, 3, 4).sin()
    ),
    "fill with numbers of their own": lambda t: t.vmap(
        lambda x, n: (t.fill(x, n), x.clone().fill_(n), t.fill(real(t, 2), n))
    )(real(t, 3, 4), real(t, 3)),
    "convolution with biases of their own": lambda t: t.vmap(
        lambda b: t.nn.functional.conv1d(real(t, 2, 3, 5), real(t, 4, 3, 2), b)
    )(real(t, 3, 4)),
    "mv of one matrix": lambda t: t.vmap(lambda v: t.mv(real(t, 2, 4), v))(
        real(t, 3, 4)
    ),
    "dist": lambda t: t.vmap(lambda a, b: t.dist(a, b, 3))(
        real(t, 3, 2, 4), real(t, 3, 4, 2).mT
    ),
    "ctc_loss": sequences,
    "grid_sample": sampled,
    "transposed convolution": transposed_convolution,
    "svd of full matrices": full_singular_vectors,
    "prod of nothing": products_of_nothing,
    "argwhere of equally many": lambda t: t.vmap(t.argwhere)(
        t.tensor([[[1, 0], [2, 0]], [[0, 0], [3, 4]]])
    ),
    "argwhere of none": lambda t: t.vmap(t.argwhere)(t.zeros(3, 2)),
    "i1 and i1e at zero": lambda t: tuple(
        pushed(t, f, real(t, 3) * t.tensor([0, 1, 0]) + t.tensor([0, 2, -0.0]))
        for f in (t.special.i1, t.special.i1e)
    ),
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


@pytest.fixture
def reference_in_order():
    """PyTorch with one thread: which of two values it leaves in a place that
    `max_unpool1d` is given twice depends on which of its threads comes last."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("reference_in_order")
def test_same(name: str) -> None:
    got, want = leaves(PROGRAMS[name](taeda)), leaves(PROGRAMS[name](torch))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "cat with empty vectors",
        "masked_scatter",
        "numbers",
        "index_fill and index_reduce",
        "bucketize and gradients of embedding",
        "vdot",
        "mv of one matrix",
        "fill with numbers of their own",
        "convolution with biases of their own",
        "dist",
        "ctc_loss",
    ],
)
def test_no_element_by_itself(name: str) -> None:
    before = taeda._C._functorch.loops()
    PROGRAMS[name](taeda)
    assert taeda._C._functorch.loops() == before


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


def test_logcumsumexp_of_large_floats() -> None:
    """The shares of a tangent of ones add up to one, whatever float's totals lose."""
    x = taeda.tensor([3.0, 10001.25, 10001.5, 2.0])
    _, tangent = taeda.func.jvp(lambda x: x.logcumsumexp(0), (x,), (taeda.ones(4),))
    assert taeda.allclose(tangent, taeda.ones(4), rtol=1e-6)


def test_argwhere_of_unequally_many() -> None:
    x = taeda.tensor([[1, 0], [2, 3]])
    with pytest.raises(
        RuntimeError, match=r"argwhere: vmap expects as many .* from 1 to 2"
    ):
        taeda.vmap(taeda.argwhere)(x)


def test_second_derivatives_that_vanish_do_so_exactly() -> None:
    one = taeda.tensor([[1.3 + 0.7j]], dtype=taeda.complex128, requires_grad=True)
    for function in (taeda.linalg.det, lambda a: a.cumprod(0)):
        out = function(one)
        weight = taeda.full_like(out, 0.3 + 0.2j).requires_grad_()
        (slope,) = taeda.autograd.grad(out, one, weight, create_graph=True)
        second = taeda.autograd.grad(
            slope, (one, weight), taeda.ones_like(slope), allow_unused=True
        )
        assert second[0] is None or not second[0].any()


def test_the_power_zero_has_a_derivative() -> None:
    a = taeda.eye(2, requires_grad=True)
    a.matrix_power(0).sum().backward()
    assert not a.grad.any()


def test_memory_format_of_a_sample() -> None:
    x = real(taeda, 3, 2, 3, 4, 5)
    got = taeda.vmap(lambda x: x.to(taeda.float32, memory_format=taeda.channels_last))(
        x
    )
    for have, want in zip(got, x, strict=True):
        assert have.is_contiguous(memory_format=taeda.channels_last)
        assert taeda.equal(have, want.float())
