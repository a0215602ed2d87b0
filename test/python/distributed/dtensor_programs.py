"""Programs of ranks that use distributed tensors; each returns what went wrong."""

from __future__ import annotations

import itertools

import taeda
from ranks import join
from taeda.nn import functional as F


def _mesh(rank: int, world: int, *shape: int, names=None):
    join(".", rank, world)
    from taeda.distributed.tensor import init_device_mesh

    return init_device_mesh("cpu", shape or (world,), mesh_dim_names=names)


def _numbers(*shape: int, seed: int = 0):
    generator = taeda.Generator().manual_seed(seed)
    return taeda.randn(*shape, dtype=taeda.float64, generator=generator)


def _placed(x, mesh, placements):
    """A tensor that lies so, partial values among it."""
    from taeda.distributed.tensor import DTensor, Partial, Replicate, distribute_tensor

    if not any(p.is_partial() for p in placements):
        return distribute_tensor(x, mesh, list(placements))
    whole = [Replicate() if p.is_partial() else p for p in placements]
    count = 1
    for dim, placement in enumerate(placements):
        count *= mesh.size(dim) if placement.is_partial() else 1
    local = distribute_tensor(x, mesh, whole).to_local() / count
    shape, stride = x.shape, x.stride()
    assert isinstance(placements[0], (Partial, *map(type, placements)))
    return DTensor.from_local(local, mesh, placements, shape=shape, stride=stride)


def _near(a, b) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_near, a, b))
    if hasattr(a, "full_tensor"):
        a = a.full_tensor()
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(taeda.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


# Functions of x [4, 6], y [4, 6], w [6, 3], v [6], i (numbers of rows, [5]).
CALLS = {
    "add": lambda x, y, w, v, i: x + y,
    "add_number": lambda x, y, w, v, i: x + 2,
    "sub": lambda x, y, w, v, i: taeda.sub(x, y, alpha=3),
    "broadcast": lambda x, y, w, v, i: x * v + v,
    "div": lambda x, y, w, v, i: x / (y + 10) / 3,
    "number_over": lambda x, y, w, v, i: 1 / (x + 10),
    "addcmul": lambda x, y, w, v, i: taeda.addcmul(x, x, y, value=0.5),
    "lerp": lambda x, y, w, v, i: taeda.lerp(x, y, 0.3),
    "relu": lambda x, y, w, v, i: F.relu(x),
    "gelu": lambda x, y, w, v, i: F.gelu(x, approximate="tanh"),
    "where": lambda x, y, w, v, i: taeda.where(x > 0, x, y),
    "clamp": lambda x, y, w, v, i: x.clamp(-0.5, 0.5),
    "matmul": lambda x, y, w, v, i: x @ w,
    "matmul_t": lambda x, y, w, v, i: x.t() @ y,
    "matmul_batch": lambda x, y, w, v, i: x.view(2, 2, 6) @ w,
    "bmm": lambda x, y, w, v, i: x.view(2, 2, 6) @ y.view(2, 6, 2),
    "addmm": lambda x, y, w, v, i: taeda.addmm(v[:3], x, w, beta=2, alpha=3),
    "linear": lambda x, y, w, v, i: F.linear(x, w.t(), v[:3]),
    "mv": lambda x, y, w, v, i: x @ v,
    "dot": lambda x, y, w, v, i: taeda.dot(x[0], y[1]),
    "einsum": lambda x, y, w, v, i: taeda.einsum("ij,kj->ik", x, y),
    "outer": lambda x, y, w, v, i: taeda.outer(x[:, 0], v),
    "sum": lambda x, y, w, v, i: x.sum(),
    "sum_dims": lambda x, y, w, v, i: x.view(2, 2, 6).sum((0, 2), keepdim=True),
    "mean": lambda x, y, w, v, i: x.mean(),
    "mean_0": lambda x, y, w, v, i: x.mean(0),
    "prod": lambda x, y, w, v, i: x.prod(1),
    "max": lambda x, y, w, v, i: x.max(),
    "amin": lambda x, y, w, v, i: x.amin(0, keepdim=True),
    "max_dim": lambda x, y, w, v, i: x.max(1).values,
    "var": lambda x, y, w, v, i: x.var(0),
    "std": lambda x, y, w, v, i: x.std(),
    "norm": lambda x, y, w, v, i: taeda.linalg.vector_norm(x),
    "norm_1": lambda x, y, w, v, i: taeda.linalg.vector_norm(x, 1, dim=0),
    "norm_inf": lambda x, y, w, v, i: taeda.linalg.vector_norm(x, float("inf")),
    "logsumexp": lambda x, y, w, v, i: x.logsumexp(1),
    "softmax": lambda x, y, w, v, i: x.softmax(0),
    "log_softmax": lambda x, y, w, v, i: x.log_softmax(-1),
    "layer_norm": lambda x, y, w, v, i: F.layer_norm(x, (6,), v, v),
    "rms_norm": lambda x, y, w, v, i: F.rms_norm(x, (6,), v),
    "view": lambda x, y, w, v, i: x.view(4, 2, 3),
    "view_split": lambda x, y, w, v, i: x.reshape(2, 2, 3, 2),
    "reshape": lambda x, y, w, v, i: x.reshape(8, 3),
    "flatten": lambda x, y, w, v, i: x.flatten() * 2,
    "flatten_back": lambda x, y, w, v, i: (x.flatten() * 2).view(4, 6),
    "transpose": lambda x, y, w, v, i: x.t(),
    "permute": lambda x, y, w, v, i: x.view(4, 2, 3).permute(2, 0, 1),
    "unsqueeze": lambda x, y, w, v, i: x.unsqueeze(1),
    "expand": lambda x, y, w, v, i: x.unsqueeze(0).expand(2, 4, 6),
    "squeeze": lambda x, y, w, v, i: x.unsqueeze(0).squeeze(0),
    "slice": lambda x, y, w, v, i: x[:, 1:4],
    "slice_step": lambda x, y, w, v, i: x[::2],
    "select": lambda x, y, w, v, i: x[1],
    "split": lambda x, y, w, v, i: list(x.split(4, 1)),
    "chunk": lambda x, y, w, v, i: list(x.chunk(2, 0)),
    "unbind": lambda x, y, w, v, i: list(x.unbind(0)),
    "cat": lambda x, y, w, v, i: taeda.cat([x, y], 0),
    "stack": lambda x, y, w, v, i: taeda.stack([x, y], 1),
    "flip": lambda x, y, w, v, i: x.flip(1),
    "roll": lambda x, y, w, v, i: x.roll(1, 0),
    "repeat": lambda x, y, w, v, i: x.repeat(2, 1),
    "pad": lambda x, y, w, v, i: F.pad(x, (1, 2), value=3.0),
    "tril": lambda x, y, w, v, i: x.tril(),
    "diagonal": lambda x, y, w, v, i: x.diagonal(),
    "cumsum": lambda x, y, w, v, i: x.cumsum(1),
    "sort": lambda x, y, w, v, i: x.sort(1).values,
    "topk": lambda x, y, w, v, i: x.topk(2, 1).values,
    "gather": lambda x, y, w, v, i: x.gather(0, i.view(5, 1)[:4].expand(4, 6)),
    "index_select": lambda x, y, w, v, i: x.index_select(0, i),
    "index": lambda x, y, w, v, i: x[i],
    "index_1": lambda x, y, w, v, i: x[:, i],
    "embedding": lambda x, y, w, v, i: F.embedding(i, x),
    "mse": lambda x, y, w, v, i: F.mse_loss(x, y),
    "cross_entropy": lambda x, y, w, v, i: F.cross_entropy(x, i[:4], v.abs()),
    "cross_entropy_sum": lambda x, y, w, v, i: F.cross_entropy(
        x, i[:4], ignore_index=1, reduction="sum"
    ),
    "cross_entropy_none": lambda x, y, w, v, i: F.cross_entropy(
        x, i[:4], reduction="none"
    ),
    "nll": lambda x, y, w, v, i: F.nll_loss(x.log_softmax(1), i[:4]),
    "attention": lambda x, y, w, v, i: F.scaled_dot_product_attention(
        *(t.view(1, 2, 2, 6) for t in (x, y, x))
    ),
    "conv": lambda x, y, w, v, i: F.conv1d(x.view(2, 2, 6), y.view(2, 2, 6)[:, :, :3]),
    "inplace": lambda x, y, w, v, i: (x * 1).add_(y).mul_(2),
    "count": lambda x, y, w, v, i: (x > 0).sum(1),
    "any": lambda x, y, w, v, i: (x > 1).any(0),
    "all": lambda x, y, w, v, i: (x > -9).all(),
    "argmax": lambda x, y, w, v, i: x.argmax(1),
    "masked": lambda x, y, w, v, i: x[x > 0],
    "equal": lambda x, y, w, v, i: x == y,
}
_NO_GRADIENT = {"count", "any", "all", "argmax", "equal"}


def _call(function, tensors, has_gradient: bool):
    x = tensors[0]
    if has_gradient:
        x = tensors[0].requires_grad_()
    out = function(x, *tensors[1:])
    outs = out if isinstance(out, list) else [out]
    if has_gradient:
        total = sum((o * o).sum() for o in outs)
        total.backward()
    return [o.detach() for o in outs], x.grad if has_gradient else None


def operators(rank: int, world: int, shape: tuple[int, ...]) -> dict:
    """Results and gradients of all calls, for all ways that operands may lie."""
    from taeda.distributed.tensor import Partial, Replicate, Shard

    mesh = _mesh(rank, world, *shape)
    data = [
        _numbers(4, 6, seed=1),
        _numbers(4, 6, seed=2),
        _numbers(6, 3, seed=3),
        _numbers(6, seed=4),
        taeda.tensor([1, 0, 3, 1, 2]),
    ]
    kinds = [Shard(0), Shard(1), Replicate(), Partial()]
    ways = list(itertools.product(kinds, repeat=mesh.ndim))
    if mesh.ndim > 1:
        ways = ways[::3]
    whole = [Replicate()] * mesh.ndim
    failed, count = [], 0
    for (name, function), way in itertools.product(CALLS.items(), ways):
        has_gradient = name not in _NO_GRADIENT and not any(p.is_partial() for p in way)
        want, grad = _call(function, [d.clone() for d in data], has_gradient)
        ours = [_placed(d, mesh, way) for d in data[:2]]
        ours += [_placed(d, mesh, whole) for d in data[2:]]
        count += 1
        try:
            got, own = _call(function, ours, has_gradient)
            if not _near(got, want):
                failed.append(f"{name} {way}: result")
            elif has_gradient and not _near(own, grad):
                failed.append(f"{name} {way}: gradient, {own.placements}")
        except Exception as error:
            failed.append(f"{name} {way}: {type(error).__name__}: {error}")
    return {"count": count, "failed": failed}


def redistributions(rank: int, world: int, shape: tuple[int, ...]) -> dict:
    """From every way to lie to every other, with gradients."""
    from taeda.distributed.tensor import Partial, Replicate, Shard, _StridedShard

    mesh = _mesh(rank, world, *shape)
    x = _numbers(7, 5)
    kinds = [Shard(0), Shard(1), Replicate(), Partial()]
    if mesh.ndim == 2:
        kinds.append(_StridedShard(0, split_factor=2))
    failed, count = [], 0
    ways = list(itertools.product(kinds, repeat=mesh.ndim))
    for source, target in itertools.product(ways, repeat=2):
        if any(b.is_partial() and a != b for a, b in zip(source, target, strict=True)):
            continue
        count += 1
        try:
            given = _placed(x, mesh, source).detach().requires_grad_()
            moved = given.redistribute(placements=list(target))
            if moved.placements != target or not _near(moved.detach(), x):
                failed.append(f"{source} {target}")
            (moved * _placed(x + 1, mesh, [Replicate()] * mesh.ndim)).sum().backward()
            if not _near(given.grad, x + 1):
                failed.append(f"{source} {target}: gradient {given.grad.placements}")
        except Exception as error:
            failed.append(f"{source} {target}: {type(error).__name__}: {error}")
    return {"count": count, "failed": failed}
