"""Calls of kernels that PyTorch's samples do not reach, private ones among them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import taeda

RNG = np.random.default_rng(9)


def real(*shape: int) -> taeda.Tensor:
    """Numbers between 0.1 and 0.9."""
    return taeda.from_numpy(np.asarray(RNG.uniform(0.1, 0.9, size=shape)))


def whole(high: int, *shape: int) -> taeda.Tensor:
    return taeda.from_numpy(np.asarray(RNG.integers(0, high, size=shape)))


def own_calls() -> Iterator[tuple]:
    """Tuples of an overload's name and its positional arguments."""
    for part in (
        *(_elementwise, _factories, _along_dims, _segments, _norms, _products),
        *(_factors, _attention, _losses, _images, _optimizers),
    ):
        yield from part()
    yield "_foreach_norm.Scalar", [real(3, 4), real(3)], 3


def _elementwise() -> Iterator[tuple]:
    for shape in ((), (3,), (2, 3)):
        x = real(*shape)
        yield "_dirichlet_grad", x, real(*shape), real(*shape) + 1
        yield "_standard_gamma", x
        yield "lift", x
        yield "poisson", x
        yield "native_dropout", x, 0.5, True
        for name in ("fill.Tensor", "fill_.Tensor"):
            yield name, x, real()
        yield "bernoulli_.Tensor", real(2, 3), x
        yield "copy", real(2, 3), x
        yield "copy_", real(2, 3), x
        yield "binomial", whole(9, *shape).float(), x.float()
        yield "normal.float_Tensor", 0.0, x
        yield "normal_functional", x
        yield "random_", x
        yield "random_.from", x, 2, 9
        yield "random_.to", x, 9
    for shape in ((3,), (2, 3)):
        yield "_sample_dirichlet", real(*shape)

    yield "isin.Tensor_Tensor", whole(9, 2, 3) * 1.0, whole(9, 4) * 1.0


def _factories() -> Iterator[tuple]:
    for shape in ((), (2, 3)):
        yield "rand_like", real(*shape)
        yield "rand_like.generator", real(*shape), None
        yield "randint_like.Tensor", real(*shape), taeda.tensor(9)
        yield "randint_like.Tensor_generator", real(*shape), taeda.tensor(9), None


def _along_dims() -> Iterator[tuple]:
    for shape, dim in (((), 0), ((4,), -1), ((2, 3), 0), ((2, 3, 4), -2)):
        x = real(*shape)
        yield "_reverse_cumsum", x, dim
        yield "_cumprod_backward", real(*shape), x, dim
        total = x.logcumsumexp(dim)
        yield "_logcumsumexp_backward", real(*shape), x, total, dim
        yield "norm.ScalarOpt_dim_dtype", x, 2, [dim], False, taeda.float64
        yield "norm.ScalarOpt_dim_dtype", x, 2, [], True, taeda.float64
        if not shape:
            continue
        index = whole(2, *shape)
        yield "scatter.reduce", x, dim, index, real(*shape), "add"
        yield "scatter.value_reduce", x, dim, index, 0.5, "multiply"
        yield "slice_scatter", x, x.narrow(dim, 1, 1), dim, 1, 2
        yield "squeeze_.dims", x.narrow(dim, 0, 1).contiguous(), [dim]
        lengths = [1, x.shape[dim] - 1]
        yield "unsafe_split_with_sizes", x, lengths, dim
        small, at = x.narrow(dim, 0, 1), index.narrow(dim, 0, 1)
        sizes = list(shape)
        name = "value_selecting_reduction_backward"
        yield name, small, dim, at, sizes, True
        yield name, small.squeeze(dim), dim, at.squeeze(dim), sizes, False
    yield "squeeze_.dims", real(1, 2, 1), []
    yield "value_selecting_reduction_backward", real(), 0, whole(1), [], False
    yield "roll", real(3), [1], []
    yield "roll", real(2, 3), [2], []


def _segments() -> Iterator[tuple]:
    lengths = taeda.tensor([2, 1, 2])
    ends = taeda.tensor([0, 2, 3, 5])
    for reduce in ("sum", "mean", "max", "min", "prod"):
        x, grad = real(5, 2), real(3, 2)
        for start in (None, 0.5):
            out = taeda.segment_reduce(x, reduce, lengths=lengths, initial=start)
            yield "segment_reduce", x, reduce, lengths, None, None, 0, False, start
            yield "segment_reduce", x, reduce, None, None, ends, 0, False, start
            call = grad, out, x, reduce
            yield "_segment_reduce_backward", *call, lengths, None, 0, start
            yield "_segment_reduce_backward", *call, None, ends, 0, start


def _norms() -> Iterator[tuple]:
    for shape in ((4, 3), (2, 3, 5)):
        parts = (real(3) for _ in range(4))
        name = "_native_batch_norm_legit_functional"
        yield name, real(*shape), *parts, True, 0.1, 1e-5
    for shape, over in (((2, 4), [4]), ((5, 2, 3), [2, 3]), ((4,), [4])):
        x = real(*shape)
        stat = [1] * len(over)
        rows = real(*shape[: len(shape) - len(over)], *stat)
        for weight in (None, real(*over)):
            yield "_fused_rms_norm", x, over, weight, 1e-5
            for mask in ([True, False], [True, weight is not None]):
                args = (real(*shape), x, over, rows, weight, mask)
                yield "_fused_rms_norm_backward", *args


def _products() -> Iterator[tuple]:
    for left, right in (
        *(((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5))),
        *(((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5))),
        *(((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((7, 1, 3, 4), (2, 4, 5))),
    ):
        yield "matmul", real(*left), real(*right)
    yield "_int_mm", whole(9, 3, 4).to(taeda.int8), whole(9, 4, 5).to(taeda.int8)
    for shape in ((4,), (3, 4), (2, 3, 4)):
        yield "linear", real(*shape), real(5, 4), real(5)
        yield "linear", real(*shape), real(5, 4)
        yield "linear", real(*shape), real(4)


def _factors() -> Iterator[tuple]:
    for batch in ((), (2,)):
        a = real(*batch, 4, 4)
        names = ("linalg_det", "linalg_slogdet", "linalg_inv", "linalg_svd")
        for name in (*names, "linalg_eigvals", "linalg_svdvals"):
            yield name, a
        yield "linalg_eigvalsh", a
        yield "linalg_svd", real(*batch, 4, 3), False
        yield "linalg_eigh", a
        yield "_linalg_lstsq", real(*batch, 4, 3), real(*batch, 4, 2), 1e-12, "gelsd"


def _attention() -> Iterator[tuple]:
    name = "_scaled_dot_product_flash_attention_for_cpu"
    forward = taeda.ops.aten._scaled_dot_product_flash_attention_for_cpu
    q, k, v = real(2, 3, 4, 5), real(2, 3, 6, 5), real(2, 3, 6, 5)
    for causal, mask in (
        *((False, None), (True, None), (False, real(4, 6))),
        *((False, real(2, 1, 4, 6)), (False, real(1, 3, 4, 6))),
    ):
        yield name, q, k, v, 0.0, causal, mask
        out, logsumexp = forward(q, k, v, 0.0, causal, attn_mask=mask)
        args = (real(2, 3, 4, 5), q, k, v, out, logsumexp, 0.0, causal, mask)
        yield f"{name}_backward", *args


def _losses() -> Iterator[tuple]:
    forward = taeda.ops.aten._cross_entropy_rows
    for reduction, weight, ignored in ((0, None, -100), (1, real(5), 1), (2, None, 1)):
        args = (real(4, 5), whole(5, 4), weight, reduction, ignored)
        yield "_cross_entropy_rows", *args
        loss, *sums = forward(*args)
        yield "_cross_entropy_rows_backward", taeda.ones_like(loss), *args, *sums


def _images() -> Iterator[tuple]:
    sizes = {1: [5], 2: [5, 6], 3: [5, 6, 7]}
    for dims, out in sizes.items():
        x, grad = real(2, 3, *[4] * dims), real(2, 3, *out)
        shape = list(x.shape)
        for kind in ("upsample_nearest", "_upsample_nearest_exact"):
            yield f"{kind}{dims}d", x, out
            yield f"{kind}{dims}d_backward", grad, out, shape
        if dims == 2:
            for kind in ("bicubic", "lanczos", "bilinear"):
                yield f"_upsample_{kind}2d_aa", x, out, False
                yield f"_upsample_{kind}2d_aa_backward", grad, out, shape, False


def _optimizers() -> Iterator[tuple]:
    def lists(number: int) -> list[list[taeda.Tensor]]:
        return [[real(3), real(2, 2)] for _ in range(number)]

    steps = [taeda.tensor(2.0), taeda.tensor(2.0)]
    for lr, form in ((0.1, ""), (taeda.tensor(0.1), ".tensor_lr")):
        for momentum in ([], *lists(1)):
            args = (0.1, 0.9 * len(momentum[:1]), lr, 0.0, False, False, False)
            yield f"_fused_sgd_{form}", *lists(2), momentum, *args
        for name in ("adam", "adamw"):
            args = (lr, 0.9, 0.99, 0.1, 1e-8, True, False)
            yield f"_fused_{name}_{form}", *lists(5), steps, *args
    args = (taeda.tensor(0.1), 0.1, 0.1, 1e-8, False)
    yield "_fused_adagrad_.tensor_lr", *lists(3), steps, *args
    yield "_fused_rmsprop_", *lists(5), 0.1, 0.9, 1e-8, 0.1, 0.9, True, False
