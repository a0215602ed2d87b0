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
    "one_hot": lambda x, y, w, v, i: F.one_hot(x.argmax(1)),
    "one_hot_of": lambda x, y, w, v, i: F.one_hot((x > 0).long(), 3),
}
_NO_GRADIENT = {"count", "any", "all", "argmax", "equal", "one_hot", "one_hot_of"}


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
    """Results and gradients of all calls, for all ways that operands may lie.

    Each call is made twice: the second is known (csrc/boxed/known_calls.h).
    """
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
        ways = [w for i, w in enumerate(ways) if i in (1, 3, 4, 6, 9, 12, 14)]
    whole = [Replicate()] * mesh.ndim
    failed, count = [], 0
    for (name, function), way in itertools.product(CALLS.items(), ways):
        has_gradient = name not in _NO_GRADIENT and not any(p.is_partial() for p in way)
        want, grad = _call(function, [d.clone() for d in data], has_gradient)
        count += 1
        for turn in ("first", "second"):
            call = f"{name} {way}, {turn}"
            ours = [_placed(d, mesh, way) for d in data[:2]]
            ours += [_placed(d, mesh, whole) for d in data[2:]]
            try:
                got, own = _call(function, ours, has_gradient)
                if not _near(got, want):
                    failed.append(f"{call}: result")
                elif has_gradient and not _near(own, grad):
                    failed.append(f"{call}: gradient, {own.placements}")
            except Exception as error:
                failed.append(f"{call}: {type(error).__name__}: {error}")
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


def randoms(rank: int, world: int) -> dict:
    """Random numbers at several ranks and in one process."""
    from taeda.distributed import tensor as space

    mesh = _mesh(rank, world)
    cut, whole = [space.Shard(0)], [space.Replicate()]
    found = {}
    where = {"device_mesh": mesh, "placements": cut}
    x = _numbers(5, 4)
    calls = {
        "rand": (
            lambda: space.rand(5, 4, **where),
            lambda: taeda.rand(5, 4),
        ),
        "randn": (
            lambda: space.randn((5, 4), dtype=taeda.float64, **where),
            lambda: taeda.randn(5, 4, dtype=taeda.float64),
        ),
        "rand_like": (
            lambda: taeda.rand_like(_placed(x, mesh, cut)),
            lambda: taeda.rand_like(x),
        ),
        "dropout": (
            lambda: F.dropout(_placed(x, mesh, cut), 0.4),
            lambda: F.dropout(x, 0.4),
        ),
        "bernoulli": (
            lambda: taeda.bernoulli(_placed(x.sigmoid(), mesh, cut)),
            lambda: taeda.bernoulli(x.sigmoid()),
        ),
        "normal_": (
            lambda: _placed(x, mesh, cut).normal_(2.0, 3.0),
            lambda: x.clone().normal_(2.0, 3.0),
        ),
        "replica": (
            lambda: _placed(x, mesh, whole).uniform_(),
            lambda: x.clone().uniform_(),
        ),
    }
    for name, (ours, plain) in calls.items():
        taeda.manual_seed(5)
        one = ours()
        taeda.manual_seed(5)
        found[name] = _near(one, plain())
    # Ranks that were seeded differently draw the same numbers for one tensor.
    taeda.manual_seed(rank)
    before = taeda.rand(1)
    taeda.manual_seed(rank)
    replica = space.rand(3, device_mesh=mesh, placements=whole).to_local()
    gathered = space.DTensor.from_local(replica, mesh, cut).full_tensor()
    found["seeds"] = bool((gathered[:3] == gathered[3:]).all())
    found["others"] = _near(taeda.rand(1), before)
    return found


def writes(rank: int, world: int) -> dict:
    """What is written reaches the tensor, also through views across its cut."""
    from taeda.distributed.tensor import Shard

    mesh = _mesh(rank, world)
    found = {}

    def through(change):
        x, y = _numbers(4, 6), _placed(_numbers(4, 6), mesh, [Shard(0)])
        change(x)
        change(y)
        return _near(y, x)

    def nested(t):
        t[1][2:4] = 7

    def viewed(t):
        t[1:].view(3, 2, 3)[0].add_(2)

    def selected(t):
        t[:, 1].mul_(3)

    def assigned(t):
        t[2] = 5

    found = {f.__name__: through(f) for f in (nested, viewed, selected, assigned)}
    y = _placed(_numbers(4, 6), mesh, [Shard(0)])
    version = y._version
    y.add_(1)
    found["version"] = y._version > version
    try:
        y.add_(_placed(_numbers(2, 4, 6), mesh, [Shard(0)]))
    except RuntimeError as error:
        found["shape"] = type(error).__name__
    partial = (y @ y.t()).sum() * 1
    try:
        partial.relu_()
        found["partial"] = "nothing was raised"
    except RuntimeError as error:
        found["partial"] = "placement changes" in str(error)
    return found


def _block():
    from taeda import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(12, 8)
            self.norm = nn.LayerNorm(8)
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
            self.head = nn.Linear(8, 12, bias=False)

        def forward(self, ids):
            x = self.table(ids)
            x = x + self.down(F.gelu(self.up(self.norm(x))))
            return self.head(x)

    taeda.manual_seed(0)
    return Block().double()


def training(rank: int, world: int) -> dict:
    """A model in tensor parallel with parallel loss, and alone."""
    from taeda.distributed.tensor import Replicate, Shard
    from taeda.distributed.tensor import parallel as tp

    mesh = _mesh(rank, world)
    plan = {
        "table": tp.RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
        ),
        "norm": tp.SequenceParallel(),
        "up": tp.ColwiseParallel(input_layouts=Shard(1)),
        "down": tp.RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "head": tp.ColwiseParallel(
            input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
        ),
    }
    model, alone = tp.parallelize_module(_block(), mesh, plan), _block()
    ids = taeda.tensor([[1, 4, 11, 2], [0, 7, 7, 3]])
    target = taeda.tensor([3, 1, 0, 11, 5, 5, 2, 9])
    losses, each = [], [model, alone]
    steps = [taeda.optim.AdamW(m.parameters(), lr=0.05) for m in each]
    for _ in range(3):
        row = []
        for m, step in zip(each, steps, strict=True):
            with tp.loss_parallel():
                loss = F.cross_entropy(m(ids).flatten(0, 1), target)
                loss.backward()
            step.step()
            step.zero_grad()
            row.append(loss.full_tensor() if m is model else loss)
        losses.append(_near(row[0].detach(), row[1].detach()))
    weights = zip(model.parameters(), alone.parameters(), strict=True)
    placed = {n: str(p.placements[0]) for n, p in model.named_parameters()}
    same = [_near(a.detach(), b.detach()) for a, b in weights]
    return {"losses": losses, "weights": same, "placed": placed}


def pieces(rank: int, world: int) -> dict:
    """Parts, files, functions of parts, counts and errors."""
    import copy
    import io

    from taeda.distributed import tensor as space
    from taeda.distributed.tensor.debug import CommDebugMode
    from taeda.distributed.tensor.experimental import (
        implicit_replication,
        local_map,
        register_sharding,
    )

    mesh = _mesh(rank, world)
    x = _numbers(5, 4)
    t = _placed(x, mesh, [space.Shard(0)])
    found: dict = {"part": list(t.to_local().shape)}
    buffer = io.BytesIO()
    taeda.save({"t": t}, buffer)
    buffer.seek(0)
    loaded = taeda.load(buffer)["t"]
    found["file"] = _near(loaded, x) and loaded.device_mesh == mesh
    parameter = taeda.nn.Parameter(t)
    copied = copy.deepcopy(parameter)
    found["copy"] = isinstance(copied, taeda.nn.Parameter) and copied._spec == t._spec
    with CommDebugMode() as mode:
        (t @ t.t()).full_tensor()
    counts = mode.get_comm_counts()
    found["counts"] = counts[taeda.ops.c10d_functional.all_gather_into_tensor]
    double = local_map(lambda a: a * 2, [space.Shard(0)], ([space.Shard(0)],))
    even = _placed(x[:4], mesh, [space.Shard(0)])
    found["local_map"] = _near(double(even), x[:4] * 2)
    with implicit_replication():
        found["implicit"] = _near(t + x, x + x)
    calls = {
        "mixed": lambda: t + x,
        "mismatch": lambda: double(t.redistribute(placements=[space.Replicate()])),
        "no_placements": t.redistribute,
        "to_partial": lambda: t.redistribute(placements=[space.Partial()]),
        "count": lambda: space.distribute_tensor(x, mesh, [space.Shard(0)] * 2),
        "again": lambda: space.distribute_tensor(t, mesh, [space.Shard(1)]),
        "of_ours": lambda: space.DTensor.from_local(t, mesh),
        "kinds": lambda: space.DTensor.from_local(
            x, mesh, [space.Partial("max"), space.Partial("min")]
        ),
    }
    for name, call in calls.items():
        try:
            call()
            found[name] = "nothing was raised"
        except Exception as error:
            found[name] = type(error).__name__

    @register_sharding(taeda.ops.aten.cumsum.default)
    def columns(x, dim, dtype=None):
        whole = ([space.Replicate()], [space.Replicate(), None])
        return [whole, ([space.Shard(1)], [space.Shard(1), None])]

    made = _placed(x, mesh, [space.Shard(1)]).cumsum(0)
    found["registered"] = str(made.placements[0]), _near(made, x.cumsum(0))
    return found


def sequences(rank: int, world: int) -> dict:
    """Attention over a sequence that is cut, and alone; results and gradients."""
    from taeda.distributed.tensor.experimental import context_parallel
    from taeda.distributed.tensor.experimental._attention import (
        context_parallel_unshard,
        set_rotate_method,
    )

    mesh = _mesh(rank, world)
    found = {}
    ways = itertools.product(("alltoall", "allgather"), (True, False), (12, 9))
    for method, causal, length in ways:
        if length % world:
            continue
        set_rotate_method(method)
        data = [_numbers(2, 3, length, 4, seed=s) for s in range(3)]
        alone = [d.clone().requires_grad_() for d in data]
        want = F.scaled_dot_product_attention(*alone, is_causal=causal)
        (want**2).sum().backward()
        with context_parallel(mesh, buffers=data, buffer_seq_dims=[2] * 3):
            parts = [d.clone().requires_grad_() for d in data]
            out = F.scaled_dot_product_attention(*parts, is_causal=causal)
            (out**2).sum().backward()
        made = [out.detach(), *(p.grad for p in parts)]
        wholes = context_parallel_unshard(mesh, made, [2] * 4)
        wanted = [want.detach(), *(a.grad for a in alone)]
        restored = all(d.shape[2] == length for d in data)
        found[method, causal, length] = restored and _near(wholes, wanted)
    set_rotate_method("allgather")
    return found
