"""Cross entropy of rows that are cut over ranks, along rows or along classes.

Rows' losses need the weights of all rows, and a row's loss needs all its classes: so
the record says nothing, and the ranks exchange a few numbers for each row here.
"""

from __future__ import annotations

import taeda

from .. import _collectives as collectives
from .._types import ReduceOp
from ._dtensor_spec import DTensorSpec
from ._layout import compute_local_shape_and_global_offset, meta_of
from ._patterns import REPLICATE
from ._redistribute import moved
from .placement_types import Partial, Shard

Tensor = taeda.Tensor
MEAN = 1  # of the argument `reduction`; 0 is none, 2 a sum

# Whether logits cut along classes stay so; set by `loss_parallel`, which restores it.
# One value for the process, since backward passes run on other threads.
cuts_classes = [False]


class _Rows:
    """Logits [rows, classes] and targets [rows] as they lie at this rank.

    Args:
        logits, target, weight: distributed tensors; weight may be None.
    """

    def __init__(self, logits, target, weight) -> None:
        self.mesh = logits._spec.mesh
        self.kind = type(logits)
        placed = logits._spec.placements
        self.by_class = [
            i for i, p in enumerate(placed) if p == Shard(1) and cuts_classes[0]
        ]
        self.by_row = [i for i, p in enumerate(placed) if p == Shard(0)]
        cut = {*self.by_class, *self.by_row}
        self.placements = tuple(
            p if i in cut else REPLICATE for i, p in enumerate(placed)
        )
        self.row_placements = tuple(
            Shard(0) if i in self.by_row else REPLICATE for i in range(len(placed))
        )
        spec = logits._spec
        self.spec = DTensorSpec(self.mesh, self.placements, spec.tensor_meta)
        self.logits = moved(logits._local_tensor, spec, self.placements)
        self.target = moved(target._local_tensor, target._spec, self.row_placements)
        self.weight = None
        if weight is not None:
            whole = (REPLICATE,) * self.mesh.ndim
            self.weight = moved(weight._local_tensor, weight._spec, whole)
        _, offset = compute_local_shape_and_global_offset(
            spec.shape, self.mesh, self.placements
        )
        self.first = offset[1]

    @property
    def is_cut(self) -> bool:
        """Whether any rank lacks rows or classes."""
        return bool(self.by_class or self.by_row)

    def joined(self, value: Tensor, operation, dims: list[int]) -> Tensor:
        """The reduction over ranks, in place."""
        for dim in dims:
            collectives.all_reduce(value, operation, self.mesh.get_group(dim))
        return value

    def log_sum_exp(self) -> Tensor:
        """Of each row over all classes."""
        if self.logits.shape[1]:
            largest = self.logits.amax(1)
        else:
            largest = self.logits.new_full(self.logits.shape[:1], -float("inf"))
        self.joined(largest, ReduceOp.MAX, self.by_class)
        total = (self.logits - largest.unsqueeze(1)).exp().sum(1)
        return self.joined(total, ReduceOp.SUM, self.by_class).log() + largest

    def here(self, ignore_index: int) -> tuple[Tensor, Tensor]:
        """The targets' columns at this rank, and whether they are here and count."""
        count = self.logits.shape[1]
        at = self.target - self.first
        is_here = (at >= 0) & (at < count) & (self.target != ignore_index)
        return at.clamp(0, max(count - 1, 0)), is_here

    def picked(self, ignore_index: int) -> Tensor:
        """The logit of each row's target."""
        at, is_here = self.here(ignore_index)
        if self.logits.shape[1]:
            found = self.logits.gather(1, at.unsqueeze(1)).squeeze(1)
            found = found.masked_fill(~is_here, 0)
        else:
            found = self.logits.new_zeros(at.shape)
        return self.joined(found, ReduceOp.SUM, self.by_class)

    def factors(self, ignore_index: int) -> Tensor:
        """The weight of each row: its class's, or 0 where it is ignored."""
        counts = self.target != ignore_index
        if self.weight is None:
            return counts.to(self.logits.dtype)
        classes = self.target.masked_fill(~counts, 0)
        return self.weight[classes].masked_fill(~counts, 0)

    def made(self, local: Tensor, placements, shape):
        """A distributed tensor of that shape."""
        like = local.new_empty(shape, device="meta")
        return self.kind._make(local, DTensorSpec(self.mesh, placements, meta_of(like)))

    def output(self, losses: Tensor, total: Tensor, reduction: int):
        """What a loss gives of the rows' losses."""
        rows = self.spec.shape[:1]
        if reduction == 0:
            return self.made(losses, self.row_placements, rows)
        if reduction == MEAN:
            # Shares are multiplied by their number: their average is the mean.
            count = 1
            for dim in self.by_row:
                count *= self.mesh.size(dim)
            local, kind = losses.sum() * count / total, Partial("avg")
        else:
            local, kind = losses.sum(), Partial("sum")
        placements = tuple(
            kind if i in self.by_row else REPLICATE for i in range(self.mesh.ndim)
        )
        return self.made(local, placements, ())


def _ours(kind, mesh, tensor):
    """A target or a weight that is a plain tensor is a replica."""
    if tensor is None or isinstance(tensor, kind):
        return tensor
    whole = (REPLICATE,) * mesh.ndim
    return kind._make(tensor, DTensorSpec(mesh, whole, meta_of(tensor)))


def cross_entropy_rows(values: dict):
    """`_cross_entropy_rows`; None where nothing is cut that may stay so."""
    logits = values["self"]
    kind, mesh = type(logits), logits._spec.mesh
    rows = _Rows(
        logits,
        _ours(kind, mesh, values["target"]),
        _ours(kind, mesh, values["weight"]),
    )
    if not rows.is_cut:
        return None
    reduction, ignored = values["reduction"], values["ignore_index"]
    log_sum_exp = rows.log_sum_exp()
    factors = rows.factors(ignored)
    losses = (log_sum_exp - rows.picked(ignored)) * factors
    losses = losses.masked_fill(factors == 0, 0)
    total = rows.joined(factors.sum(), ReduceOp.SUM, rows.by_row)
    whole = (REPLICATE,) * mesh.ndim
    return (
        rows.output(losses, total, reduction),
        rows.made(log_sum_exp, rows.row_placements, rows.spec.shape[:1]),
        rows.made(total, whole, ()),
    )


def cross_entropy_rows_backward(values: dict):
    """`_cross_entropy_rows_backward`: probabilities less one at the target."""
    logits, grad = values["self"], values["grad"]
    kind, mesh = type(logits), logits._spec.mesh
    rows = _Rows(
        logits,
        _ours(kind, mesh, values["target"]),
        _ours(kind, mesh, values["weight"]),
    )
    if not rows.is_cut:
        return None
    factor = _row_factors(rows, grad, values)
    lse = values["log_sum_exp"]
    log_sum_exp = moved(lse._local_tensor, lse._spec, rows.row_placements)
    made = (rows.logits - log_sum_exp.unsqueeze(1)).exp()
    at, is_here = rows.here(values["ignore_index"])
    if made.shape[1]:
        one = is_here.to(made.dtype).unsqueeze(1)
        made.scatter_add_(1, at.unsqueeze(1), -one)
    made = made * factor.unsqueeze(1)
    return kind._make(made, rows.spec)


def _row_factors(rows: _Rows, grad, values: dict) -> Tensor:
    """What each row's gradient is multiplied by."""
    factors = rows.factors(values["ignore_index"])
    reduction = values["reduction"]
    whole = (REPLICATE,) * rows.mesh.ndim
    wanted = rows.row_placements if reduction == 0 else whole
    factors = factors * moved(grad._local_tensor, grad._spec, wanted)
    if reduction == MEAN:
        total = values["total_weight"]
        factors = factors / moved(total._local_tensor, total._spec, whole)
    return factors


def nll_loss_forward(values: dict):
    """`nll_loss_forward` of rows of log probabilities."""
    logits = values["self"]
    kind, mesh = type(logits), logits._spec.mesh
    if logits.dim() != 2:
        return None
    rows = _Rows(
        logits,
        _ours(kind, mesh, values["target"]),
        _ours(kind, mesh, values["weight"]),
    )
    if not rows.is_cut:
        return None
    ignored = values["ignore_index"]
    factors = rows.factors(ignored)
    losses = -rows.picked(ignored) * factors
    total = rows.joined(factors.sum(), ReduceOp.SUM, rows.by_row)
    output = rows.output(losses, total, values["reduction"])
    return output, rows.made(total, (REPLICATE,) * mesh.ndim, ())


def nll_loss_backward(values: dict):
    """`nll_loss_backward` of rows of log probabilities."""
    logits, grad = values["self"], values["grad_output"]
    kind, mesh = type(logits), logits._spec.mesh
    if logits.dim() != 2:
        return None
    rows = _Rows(
        logits,
        _ours(kind, mesh, values["target"]),
        _ours(kind, mesh, values["weight"]),
    )
    if not rows.is_cut:
        return None
    factor = _row_factors(rows, grad, values)
    at, is_here = rows.here(values["ignore_index"])
    made = taeda.zeros_like(rows.logits)
    if made.shape[1]:
        shares = (-factor * is_here.to(made.dtype)).unsqueeze(1)
        made.scatter_add_(1, at.unsqueeze(1), shares)
    return kind._make(made, rows.spec)


ROW_LOSSES = {
    "aten::_cross_entropy_rows": cross_entropy_rows,
    "aten::_cross_entropy_rows_backward": cross_entropy_rows_backward,
    "aten::nll_loss_forward": nll_loss_forward,
    "aten::nll_loss_backward": nll_loss_backward,
}
