"""Gradients sent as products of two thin matrices (PowerSGD, arXiv:1905.13727).

A matrix M of n x m is approximated by P Q^T with P of n x r and Q of m x r: one step of
power iteration per backward pass, begun with the Q of the pass before. What is lost is
added to the next gradient (error feedback).
"""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda.futures import Future, collect_all

from ... import group as _groups
from ..._collectives import all_reduce
from ..._reducer import GradBucket
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What the hook keeps between passes.

    Args:
        process_group: the ranks; all if None.
        matrix_approximation_rank: the r of the factors.
        start_powerSGD_iter: passes before it that are sent whole; at least 2 with error
            feedback or warm start.
        min_compression_rate: smaller savings are not taken.
        use_error_feedback: add what was lost to the next gradient.
        warm_start: begin with the factors of the pass before.
        orthogonalization_epsilon: added to norms that may be zero.
        random_seed: of the first factors, the same at all ranks.
        compression_stats_logging_frequency: passes between two reports.
        batch_tensors_with_same_shape: of no effect on results.

    Raises:
        ValueError: it starts before the second pass.
    """

    def __init__(
        self,
        process_group,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or "
                "`warm_start` is enabled, because PowerSGD can only be applied after "
                "the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.generator = taeda.Generator().manual_seed(random_seed)
        self.iter = 0
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list] = {}
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts passes, at their last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate, the elements before and those after compression."""
        before = self.total_numel_before_compression
        after = self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def _compresses(self, shape) -> bool:
        if len(shape) < 2:
            return False
        n, m = shape[0], math.prod(shape[1:])
        rank = min(n, m, self.matrix_approximation_rank)
        return (n + m) * rank * self.min_compression_rate < n * m


def _orthonormal(matrix, epsilon: float) -> None:
    """Makes the columns orthonormal, in place."""
    if epsilon == 0 and matrix.dtype in (taeda.float32, taeda.float64):
        matrix.copy_(taeda.linalg.qr(matrix)[0])
        return
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        column /= column.norm() + epsilon
        rest = matrix[:, i + 1 :]
        rest -= column[:, None] * (column @ rest)


def _summed(tensor, group) -> Future:
    return all_reduce(tensor, group=group, async_op=True).get_future()


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """The average over ranks of what two thin matrices hold of each gradient.

    Args:
        state: of all buckets.
        bucket: the gradients. Those of one dimension, and those that would not get
            smaller, are sent whole.
    """
    group = state.process_group or _groups.WORLD
    buffer, index = bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(group, bucket)
    if state.use_error_feedback:
        if index in state.error_dict:
            buffer.add_(state.error_dict[index])
        else:
            state.error_dict[index] = taeda.zeros_like(buffer)
        wanted = buffer.clone()
    matrices, whole = [], []
    for grad in bucket.gradients():
        (matrices if state._compresses(grad.shape) else whole).append(grad)
    matrices = [m.view(m.shape[0], -1) for m in matrices]
    qs = _first_factors(state, index, matrices)
    ps = [m @ q for m, q in zip(matrices, qs, strict=True)]
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += sum(t.numel() for t in (*ps, *qs, *whole))
    flat = taeda.cat([g.reshape(-1) for g in whole]) if whole else buffer.new_zeros(1)
    flat_p = taeda.cat([p.reshape(-1) for p in ps]) if ps else buffer.new_zeros(1)
    size = group.size()

    def factors(_: Future):
        at = 0
        for p, q, m in zip(ps, qs, matrices, strict=True):
            p.copy_(flat_p[at : at + p.numel()].view_as(p))
            at += p.numel()
            _orthonormal(p, state.orthogonalization_epsilon)
            taeda.matmul(m.t(), p, out=q)
        flat_q = taeda.cat([q.reshape(-1) for q in qs]) if qs else flat_p
        all_reduce(flat_q, group=group)
        flat_q.div_(size)
        at = 0
        for p, q, m in zip(ps, qs, matrices, strict=True):
            q.copy_(flat_q[at : at + q.numel()].view_as(q))
            at += q.numel()
            taeda.matmul(p, q.t(), out=m)
        at = 0
        flat.div_(size)
        for grad in whole:
            grad.copy_(flat[at : at + grad.numel()].view_as(grad))
            at += grad.numel()
        if state.use_error_feedback:
            taeda.sub(wanted, buffer, out=state.error_dict[index])
        state.maybe_increase_iter(bucket)
        return buffer

    # The second reduction waits for the first, so it may not run in its thread.
    first = collect_all([_summed(flat, group), _summed(flat_p, group)])
    first.wait()
    done = Future()
    with taeda.no_grad():
        done.set_result(factors(first))
    return done


def _first_factors(state: PowerSGDState, index: int, matrices: list) -> list:
    """The Q's of the pass before, or random ones that all ranks agree on."""
    known = state.q_memory_dict.get(index)
    if known is not None and state.warm_start:
        for q in known:
            _orthonormal(q, state.orthogonalization_epsilon)
        return known
    made = []
    for m in matrices:
        rank = min(*m.shape, state.matrix_approximation_rank)
        q = taeda.randn(m.shape[1], rank, generator=state.generator).to(m.dtype)
        _orthonormal(q, state.orthogonalization_epsilon)
        made.append(q)
    state.q_memory_dict[index] = made
    return made
