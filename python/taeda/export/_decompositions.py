"""Operators by core ones, where PyTorch's list of core operators leaves them out."""

from __future__ import annotations

import operator
from functools import cache

import taeda

__all__ = ["written"]


def _t(x):
    return x if x.dim() < 2 else x.permute([1, 0])


def _transpose(x, dim0: int, dim1: int):
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.permute(order)


def _linear(x, weight, bias=None):
    turned = weight.permute([1, 0]) if weight.dim() == 2 else weight
    if bias is None or weight.dim() != 2:
        out = taeda.ops.aten.matmul.default(x, turned)
        return out if bias is None else out + bias
    if x.dim() == 2:
        return taeda.addmm(bias, x, turned)
    rows = x.reshape([_product(x.shape[:-1]), x.shape[-1]])
    return taeda.addmm(bias, rows, turned).view([*x.shape[:-1], weight.shape[0]])


def _product(sizes):
    out = 1
    for n in sizes:
        out = out * n
    return out


def _matmul(a, b):
    if a.dim() == 1 and b.dim() == 1:
        return taeda.dot(a, b)
    if b.dim() == 1:
        rows = a.reshape([_product(a.shape[:-1]), a.shape[-1]])
        return taeda.mv(rows, b).view([*a.shape[:-1]])
    if a.dim() == 1:
        return _matmul(a.unsqueeze(0), b).squeeze(-2)
    if a.dim() == 2 and b.dim() == 2:
        return taeda.mm(a, b)
    if b.dim() == 2:
        rows = a.reshape([_product(a.shape[:-1]), a.shape[-1]])
        return taeda.mm(rows, b).view([*a.shape[:-1], b.shape[-1]])
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    stacks = [
        t.expand([*batch, *t.shape[-2:]]).reshape([_product(batch), *t.shape[-2:]])
        for t in (a, b)
    ]
    return taeda.bmm(*stacks).view([*batch, a.shape[-2], b.shape[-1]])


def _broadcast(left, right) -> list:
    rank = max(len(left), len(right))
    left = [1] * (rank - len(left)) + list(left)
    right = [1] * (rank - len(right)) + list(right)
    return [b if _is_one(a) else a for a, b in zip(left, right, strict=True)]


def _is_one(n) -> bool:
    return isinstance(n, int) and n == 1


def _unsafe_view(x, size):
    return x.view(size)


def _silu(x):
    return x * x.sigmoid()


def _rsub(x, other, alpha=1):
    return taeda.ops.aten.sub.Tensor(other, x, alpha=alpha)


def _dropout(x, p: float, train: bool):
    return taeda.ops.aten.native_dropout.default(x, p, True)[0] if train else x


def _to_dtype(x, dtype, non_blocking=False, copy=False, memory_format=None):
    if x.dtype is dtype and not copy and memory_format is None:
        return x
    given = {} if memory_format is None else {"memory_format": memory_format}
    return taeda.ops.aten._to_copy.default(x, dtype=dtype, **given)


def _stack(tensors, dim: int = 0):
    return taeda.cat([t.unsqueeze(dim) for t in tensors], dim)


def _filled(value):
    def made(size, *, dtype=None, layout=None, device=None, pin_memory=False):
        # The number is an integer, which is not to choose the dtype.
        dtype = taeda.get_default_dtype() if dtype is None else dtype
        options = {"dtype": dtype, "device": device, "pin_memory": pin_memory}
        return taeda.full(size, value, **options)

    return made


def _filled_like(value):
    def made(x, **options):
        return taeda.full_like(x, value, **options)

    return made


def _itself(x):
    return x


def _sum(x, *, dtype=None):
    return taeda.ops.aten.sum.dim_IntList(x, [], dtype=dtype)


# Losses ----------------------------------------------------------


def _reduced(values, reduction: int):
    return (values, values.mean(), values.sum())[reduction]


def _mse_loss(x, y, reduction: int = 1):
    return _reduced((x - y).pow(2), reduction)


def _smooth_l1_loss(x, y, reduction: int = 1, beta: float = 1.0):
    away = (x - y).abs()
    if beta == 0:
        return _reduced(away, reduction)
    near = away.pow(2) * 0.5 / beta
    return _reduced(taeda.where(away < beta, near, away - 0.5 * beta), reduction)


def _huber_loss(x, y, reduction: int = 1, delta: float = 1.0):
    away = (x - y).abs()
    far = (away - 0.5 * delta) * delta
    return _reduced(taeda.where(away < delta, away * 0.5 * away, far), reduction)


# Products and moments ----------------------------------------------------------


def _mv(a, x):
    return (a * x).sum([1])


def _dot(x, y):
    return (x * y).sum()


def _baddbmm(x, a, b, *, beta=1, alpha=1):
    product = taeda.bmm(a, b)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (x if beta == 1 else x * beta) + product


def _std(x, dim=None, *, correction=None, keepdim=False):
    correction = 1 if correction is None else correction
    return taeda.var(x, dim, correction=correction, keepdim=keepdim).sqrt()


def _logsumexp(x, dim, keepdim=False):
    if not x.dtype.is_floating_point:
        x = x.to(taeda.get_default_dtype())
    top = x.amax(dim, True)
    top = taeda.where(top.abs() == float("inf"), taeda.zeros_like(top), top)
    out = (x - top).exp().sum(dim, True).log() + top
    return out if keepdim else out.squeeze(dim)


# Choices ----------------------------------------------------------


def _masked_fill(x, mask, value):
    return taeda.where(mask, taeda.scalar_tensor(value, dtype=x.dtype), x)


def _triangle(keeps):
    def made(x, diagonal: int = 0):
        rows = taeda.arange(x.shape[-2], device=x.device).unsqueeze(-1)
        columns = taeda.arange(x.shape[-1], device=x.device).unsqueeze(-2)
        return taeda.where(keeps(columns - rows, diagonal), x, taeda.zeros_like(x))

    return made


@cache
def written() -> dict:
    """Operators that are core ones here and are not by PyTorch's list."""
    aten = taeda.ops.aten
    return {
        aten._unsafe_view.default: _unsafe_view,
        aten.baddbmm.default: _baddbmm,
        aten.detach.default: _itself,
        aten.dot.default: _dot,
        aten.dropout.default: _dropout,
        aten.huber_loss.default: _huber_loss,
        aten.linear.default: _linear,
        aten.logsumexp.default: _logsumexp,
        aten.masked_fill.Scalar: _masked_fill,
        aten.matmul.default: _matmul,
        aten.mse_loss.default: _mse_loss,
        aten.mv.default: _mv,
        aten.ones.default: _filled(1),
        aten.ones_like.default: _filled_like(1),
        aten.rsub.Scalar: _rsub,
        aten.silu.default: _silu,
        aten.smooth_l1_loss.default: _smooth_l1_loss,
        aten.stack.default: _stack,
        aten.std.correction: _std,
        aten.sum.default: _sum,
        aten.t.default: _t,
        aten.to.dtype: _to_dtype,
        aten.transpose.int: _transpose,
        aten.tril.default: _triangle(operator.le),
        aten.triu.default: _triangle(operator.ge),
        aten.zeros.default: _filled(0),
        aten.zeros_like.default: _filled_like(0),
    }
