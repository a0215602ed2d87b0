"""Parameters that are gathered, freed and reduced together.

Note [The life of a sharded group]
Between steps a rank holds its part alone. `gather` gives the buffers of whole
parameters memory, fills them with all ranks' parts and registers the whole parameters,
`free` takes the memory back and registers the parts. The whole parameters are the same
tensors for ever, so what autograd has saved of a forward pass is whole again after the
next gather. Each of them says when its gradient has arrived; with the last, the
gradients are packed into one tensor, added over ranks while the pass goes on, and this
rank's part of the sum is given to the optimizer's parameters.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda.distributed import _collectives as collectives

__all__ = ["Group", "Ranks", "first_divisor", "in_backward"]


def first_divisor(count: float) -> float:
    """The first of two divisors that make an average, about the square root."""
    divisor = 1.0
    while count % divisor == 0 and count / divisor > divisor:
        divisor *= 2
    return divisor


def in_backward() -> bool:
    """Whether this thread is in a backward pass."""
    return taeda._C._current_graph_task_id() != -1


class Ranks:
    """The processes of a group: those that share its parameters, and their copies.

    Args:
        shard: a process group over which parameters are split; None for one rank.
        copies: a process group of ranks with equal parts; None without copies.
    """

    def __init__(self, shard, copies=None) -> None:
        self.shard, self.copies = shard, copies
        self.world = 1 if shard is None else shard.size()
        self.rank = 0 if shard is None else shard.rank()
        self.all = self.world * (1 if copies is None else copies.size())


class _Reduction:
    """Gradients under way."""

    def __init__(self, numbers, packed, out, work, after: float) -> None:
        self.numbers, self.packed, self.out = numbers, packed, out
        self.work, self.after = work, after


class Group:
    """See Note [The life of a sharded group].

    Args:
        layout: where the parameters lie.
        ranks: who shares them.
        device: of computation.
        param_dtype, reduce_dtype: of computation and of sums; None for the parameters'.
        as_parameters: whole parameters are registered as parameters; else they are
            attributes of their modules.
    """

    def __init__(
        self, layout, ranks, device, param_dtype, reduce_dtype, as_parameters
    ) -> None:
        self.layout, self.ranks, self.device = layout, ranks, device
        self.param_dtype, self.reduce_dtype = param_dtype, reduce_dtype
        self.as_parameters = as_parameters
        self.leaves: list = []
        self.expected = 0  # gradients
        self.is_gathered = self.is_hidden = False
        self.gathering: tuple | None = None  # (work, target) under way
        self.sync = self.all_reduce = self.reshard_after_backward = True
        self.zero_unused = False
        self.divide_by: float | None = None
        self.in_flight = 1  # how many groups' gradients may be under way
        self.reduce_over: Any = None  # a process group in place of `ranks.shard`
        self.arrived: set[int] = set()
        self.in_pass = self.finished = False  # of this backward pass
        self.held: dict[int, Any] = {}  # gradients not yet reduced, in reduce_dtype
        self.partial: Any = None  # reduced over `shard`, not yet over `copies`
        self.reduction: _Reduction | None = None
        self.comm_hook: tuple | None = None
        self.all_reduce_hook: Any = None
        self.gatherer: Any = None  # in place of the collectives
        self.reducer: Any = None
        self.arrival: Any = None  # called when a gradient has arrived
        self.smaller: Any = None  # a process group that shares them after the forward
        self._kept: Any = None  # what a rank of the smaller group holds meanwhile

    # Gathering.

    def start_gather(self, waits: bool = False) -> None:
        """Asks for the parts of all ranks.

        Args:
            waits: the caller does so next: no other thread is needed.
        """
        if self.is_gathered or self.gathering is not None:
            return
        with taeda.no_grad():
            row = self.layout.row()
            dtype = self.param_dtype if row.is_floating_point() else None
            self._ensure(dtype or row.dtype)
            self.layout.allocate()
            target = self.layout.target(row)
            if self.gatherer is not None and target is not None:
                target = _made_by(self.gatherer, target.numel(), target)
            group = self.ranks.shard
            kept, self._kept = self._kept, None
            if kept is not None and in_backward():
                row, group = kept, self.smaller
            work = None
            if target is None:
                pass  # the whole parameters are the part itself
            elif group is None or group.size() == 1:
                target.copy_(row)
            else:
                row = row.to(self.device, target.dtype)
                work = self._all_gather(target, row, group, not waits)
        self.gathering = work, target, row

    def _all_gather(self, target, row, group, later: bool):
        call = self.gatherer or collectives.all_gather_into_tensor
        return call(output_tensor=target, input_tensor=row, group=group, async_op=later)

    def _ensure(self, dtype) -> None:
        if not self.layout.ensure(dtype, self.device):
            return
        self.leaves = []
        for number, (slot, whole) in enumerate(
            zip(self.layout.slots, self.layout.wholes, strict=True)
        ):
            leaf = self.layout.as_leaf(number, whole) if self.as_parameters else whole
            if self.as_parameters:
                own = slot.parameter.__dict__.items()
                leaf.__dict__.update(
                    {k: v for k, v in own if k not in ("_local_tensor", "_spec")}
                )
            self.leaves.append(leaf)
        self._hooked = [False] * len(self.leaves)

    def finish_gather(self) -> None:
        """Waits for them and registers the whole parameters."""
        if self.is_gathered or self.gathering is None:
            return
        work, target, _ = self.gathering
        if work is not None:
            work.wait()
        with taeda.no_grad():
            self.layout.fill(target)
            if self.smaller is not None and not in_backward():
                length = target.numel() // self.smaller.size()
                start = self.smaller.rank() * length
                self._kept = target.narrow(0, start, length).clone()
        self.gathering = None
        self.is_gathered = True
        self.expose()

    def gather(self) -> None:
        """Makes the parameters whole."""
        self.start_gather(waits=True)
        self.finish_gather()

    def expose(self) -> None:
        """Registers the whole parameters."""
        self.is_hidden = False
        flags = self.layout.trainable()
        for number, (slot, leaf) in enumerate(
            zip(self.layout.slots, self.leaves, strict=True)
        ):
            if leaf.requires_grad != flags[number]:
                leaf.requires_grad_(flags[number])
            if flags[number] and not self._hooked[number]:
                self._hooked[number] = True
                leaf.register_post_accumulate_grad_hook(self._hook_of(number))
            if self.as_parameters:
                slot.put(leaf)
            else:
                slot.show(leaf)
        self.expected = sum(flags)

    def _hook_of(self, number: int):
        def arrived(_leaf) -> None:
            self.arrived.add(number)
            self.arrival(self)

        return arrived

    @property
    def has_frozen(self) -> bool:
        """Whether whole parameters may be needed after the last gradient's arrival."""
        return self.expected < len(self.leaves)

    @property
    def is_complete(self) -> bool:
        """Whether all gradients have arrived."""
        return self.expected > 0 and len(self.arrived) >= self.expected

    def hide(self) -> None:
        """Registers the parts, and leaves the whole parameters their memory."""
        self.is_hidden = True
        self.layout.sharded()

    def free(self, keep_smaller: bool = False) -> None:
        """Registers the parts and frees the whole parameters."""
        if self.gathering is not None:
            self.finish_gather()
        if not keep_smaller:
            self._kept = None
        if self.is_gathered:
            self.is_gathered = False
            self.is_hidden = False
            self.layout.sharded()
            self.layout.release()

    def prepare(self) -> None:
        """Makes the whole parameters, without memory, and shows them as attributes."""
        row = self.layout.row()
        self._ensure(self.param_dtype or row.dtype)
        for slot, leaf in zip(self.layout.slots, self.leaves, strict=True):
            slot.show(leaf)

    def whole_values(self) -> list:
        """Whole parameters in the dtype of the parts, in memory of their own."""
        with taeda.no_grad():
            row = self.layout.row()
            if self.ranks.world == 1:
                row = row.to(self.device)
                return [w.clone() for w in self.layout.wholes_of(row)]
            size = row.numel() * self.ranks.world
            row = row.to(self.device)
            target = taeda.empty(size, dtype=row.dtype, device=self.device)
            collectives.all_gather_into_tensor(target, row, self.ranks.shard)
            return self.layout.wholes_of(target)

    # Reducing.

    def _take_gradients(self) -> dict:
        found = {}
        for number, leaf in enumerate(self.leaves):
            gradient, before = leaf.grad, self.held.pop(number, None)
            if gradient is not None:
                gradient = self.layout.local_gradient(number, gradient)
                leaf.grad = None
            if before is not None:
                gradient = before if gradient is None else before.add_(gradient)
            if gradient is None and self.zero_unused and self._hooked[number]:
                gradient = taeda.zeros_like(self.layout.wholes[number])
            if gradient is not None:
                found[number] = gradient
        return found

    def _hold(self) -> None:
        """Gradients of a pass without communication, in the dtype of sums."""
        dtype = self.reduce_dtype
        for number, leaf in enumerate(self.leaves):
            gradient = leaf.grad
            if gradient is None or dtype in (None, gradient.dtype):
                continue
            gradient = self.layout.local_gradient(number, gradient)
            before, leaf.grad = self.held.get(number), None
            self.held[number] = (
                gradient.to(dtype) if before is None else before.add_(gradient)
            )

    def start_reduce(self) -> bool:
        """Sends the gradients that have arrived; whether there were any."""
        with taeda.no_grad():
            if not self.sync:
                self._hold()
                return False
            gradients = self._take_gradients()
            if not gradients:
                return False
            some = next(iter(gradients.values()))
            packed = self.layout.pack(gradients, self.reduce_dtype or some.dtype)
            gradients_of = list(gradients)
            del gradients, some
            out, work, after = self._reduce_scatter(packed)
        self.reduction = _Reduction(gradients_of, packed, out, work, after)
        return True

    def _factors(self, dtype) -> tuple[float, float]:
        """Divisors before and after a sum; small dtypes would overflow meanwhile."""
        factor = float(self.divide_by or self.ranks.all)
        if dtype != taeda.float16:
            return 1.0, factor
        before = first_divisor(factor)
        return before, factor / before

    def _reduce_scatter(self, packed):
        group = self.ranks.shard
        if self.comm_hook is not None:
            return self._by_hook(packed)
        before, after = self._factors(packed.dtype)
        if before != 1.0:
            packed.div_(before)
        if group is None or group.size() == 1:
            return packed, None, after
        out = _made_by(self.reducer, packed.numel() // group.size(), packed)
        call = self.reducer or _reduce_scatter
        work = call(
            output_tensor=out,
            input_tensor=packed,
            group=self.reduce_over or group,
            op=collectives.ReduceOp.SUM,
            async_op=True,
        )
        return out, work, after

    def _by_hook(self, packed):
        state, hook = self.comm_hook
        if self.ranks.world == 1:
            hook(state, packed)
            return packed, None, 1.0
        out = packed.new_empty(packed.numel() // self.ranks.world)
        hook(state, packed, out)
        return out, None, 1.0

    def sum_copies(self) -> bool:
        """Waits for the sums over a row; whether those over copies are under way."""
        reduction = self.reduction
        if reduction is None:
            return False
        if reduction.work is not None:
            reduction.work.wait()
            reduction.work = None
        if self.partial is not None:
            with taeda.no_grad():
                reduction.out.add_(self.partial)
            self.partial = None
        if self.ranks.copies is None or self.ranks.copies.size() == 1:
            return False
        if not self.all_reduce:
            self.partial, self.reduction = reduction.out, None
            return False
        if self.comm_hook is None or self.ranks.world > 1:
            reduction.work = collectives.all_reduce(
                reduction.out, group=self.ranks.copies, async_op=True
            )
        return reduction.work is not None

    def finish_reduce(self) -> None:
        """Waits for what `sum_copies` began; the sums become the parts' gradients."""
        reduction, self.reduction = self.reduction, None
        if reduction is None:
            return
        if reduction.work is not None:
            reduction.work.wait()
        out = reduction.out
        with taeda.no_grad():
            if reduction.after != 1.0:
                out.div_(reduction.after)
            if self.all_reduce_hook is not None:
                self.all_reduce_hook(out)
            dtype, device = self.layout.stored()
            self.layout.accept(out.to(device, dtype), reduction.numbers)

    def forget(self) -> None:
        """Drops what a pass that failed has left."""
        self.arrived.clear()
        self.held.clear()
        self.finished = False
        self.partial = None
        reduction, self.reduction = self.reduction, None
        if reduction is not None and reduction.work is not None:
            reduction.work.wait()
        for leaf in self.leaves:
            leaf.grad = None
        self.free()


def _made_by(comm, size: int, like):
    """A tensor of one dimension, from a `Comm` where there is one."""
    if comm is None:
        return like.new_empty(size)
    return comm.allocate((size,), dtype=like.dtype, device=like.device)


def _reduce_scatter(output_tensor, input_tensor, group, op, async_op):
    given = output_tensor, input_tensor, op, group, async_op
    return collectives.reduce_scatter_tensor(*given)
