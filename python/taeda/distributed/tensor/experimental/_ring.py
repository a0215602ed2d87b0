"""Attention of queries of one rank with keys and values of all."""

from __future__ import annotations

import taeda
from taeda.autograd import Function

from ... import _functional_collectives as functional

_attend = taeda.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
SEQUENCE = 2  # the axis of positions in [batch, heads, positions, width]


class _Blocks:
    """Which chunks of queries meet which of keys.

    Args:
        held: chunks of the sequence that each rank holds.
        rank: this one.
        is_causal: whether a position sees only those before it and itself.
    """

    def __init__(self, held: list[list[int]], rank: int, is_causal: bool) -> None:
        self.held, self.rank, self.is_causal = held, rank, is_causal

    def pairs(self, other: int):
        """(place of the queries, place of the keys, whether the block is causal)."""
        for i, query in enumerate(self.held[self.rank]):
            for j, key in enumerate(self.held[other]):
                if not self.is_causal or key <= query:
                    yield i, j, self.is_causal and key == query


class _Travel:
    """Keys and values of one rank after the other, this rank's first.

    Args:
        tensors: this rank's, in one tensor.
        group: the ranks.
        passes: around the ring, or gathered at once.
    """

    def __init__(self, tensors, group, passes: bool) -> None:
        self.now, self.group, self.passes = tensors, group, passes
        self.rank, self.count = group.rank(), group.size()
        self.all = None
        if not passes and self.count > 1:
            whole = functional.all_gather_tensor(tensors.unsqueeze(0), 0, group)
            self.all = whole.unbind(0)

    def __iter__(self):
        for step in range(self.count):
            other = (self.rank - step) % self.count
            coming = self.now
            if self.passes and step + 1 < self.count:
                coming = passed(self.now, self.group)  # while these are used
            yield other, self.now if self.all is None else self.all[other]
            self.now = coming


def passed(tensor, group):
    """The tensor of the rank before this one."""
    count = group.size()
    targets = [(r + 1) % count for r in range(count)]
    return functional.permute_tensor(tensor, targets, group).view(tensor.shape)


def _joined(out, log_sum, new, new_log_sum):
    """Attention to two sets of keys, of the attention to each."""
    total = taeda.logaddexp(log_sum, new_log_sum)
    weights = (log_sum - total).exp().unsqueeze(-1)
    others = (new_log_sum - total).exp().unsqueeze(-1)
    return out * weights + new * others, total


def _block_gradients(grad, query, key, value, shift, log_sum, causal, scale):
    """Gradients of query, key and value by one block of keys.

    The kernel's own would take the block's sums of exponentials for those of all keys.

    Args:
        grad: of the output.
        query, key, value: the block's.
        shift: the output times its gradient, summed [batch, heads, queries, 1].
        log_sum: of all keys' exponentials [batch, heads, queries].
        causal: whether queries see keys up to their own place only.
        scale: of the scores, or None.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-1, -2)) * scale
    weights = (scores - log_sum.unsqueeze(-1)).exp()
    if causal:
        weights = weights.tril()
    of_scores = weights * (grad @ value.transpose(-1, -2) - shift) * scale
    of_value = weights.transpose(-1, -2) @ grad
    return of_scores @ key, of_scores.transpose(-1, -2) @ query, of_value


class RingAttention(Function):
    """Attention of [batch, heads, positions, width], positions cut over ranks.

    Arguments: query, key, value, chunks that ranks hold, whether causal, scale or None,
    group, whether keys and values pass around the ring.
    """

    @staticmethod
    def forward(ctx, query, key, value, held, is_causal, scale, group, passes):
        blocks = _Blocks(held, group.rank(), is_causal)
        parts = query.chunk(len(held[0]), SEQUENCE)
        width = key.shape[-1]
        outs: list = [None] * len(parts)
        sums: list = [None] * len(parts)
        together = taeda.cat([key, value], -1)
        for other, both in _Travel(together, group, passes):
            keys = both[..., :width].chunk(len(held[0]), SEQUENCE)
            values = both[..., width:].chunk(len(held[0]), SEQUENCE)
            for i, j, causal in blocks.pairs(other):
                new = _attend(parts[i], keys[j], values[j], 0.0, causal, scale=scale)
                if outs[i] is None:
                    outs[i], sums[i] = new
                else:
                    outs[i], sums[i] = _joined(outs[i], sums[i], *new)
        out, log_sum = taeda.cat(outs, SEQUENCE), taeda.cat(sums, SEQUENCE)
        ctx.save_for_backward(query, together, out, log_sum)
        ctx.blocks, ctx.width, ctx.scale = blocks, width, scale
        ctx.group, ctx.passes = group, passes
        return out

    @staticmethod
    def backward(ctx, grad):
        query, together, out, log_sum = ctx.saved_tensors
        blocks, group, width = ctx.blocks, ctx.group, ctx.width
        count = len(blocks.held[0])
        shift = (grad * out).sum(-1, keepdim=True)
        mine = [t.chunk(count, SEQUENCE) for t in (grad, query, shift, log_sum)]
        grad_query = taeda.zeros_like(query)
        own = taeda.zeros_like(together)
        found = {}
        for other, both in _Travel(together, group, ctx.passes):
            if not ctx.passes:
                own = taeda.zeros_like(together)
            halves = both.chunk(count, SEQUENCE), own.chunk(count, SEQUENCE)
            for i, j, causal in blocks.pairs(other):
                g, q, *sums = (t[i] for t in mine)
                k, v = halves[0][j][..., :width], halves[0][j][..., width:]
                new = _block_gradients(g, q, k, v, *sums, causal, ctx.scale)
                grad_query.chunk(count, SEQUENCE)[i].add_(new[0])
                halves[1][j].add_(taeda.cat(new[1:], -1))
            found[other] = own
            if ctx.passes:
                # Gradients travel with their keys, and are at home after the last step.
                own = passed(own, group)
        if not ctx.passes:
            parts = taeda.stack([found[r] for r in range(group.size())])
            own = functional.reduce_scatter_tensor(parts, "sum", 0, group)[0]
        nothing = (None,) * 5
        return grad_query, own[..., :width], own[..., width:], *nothing
