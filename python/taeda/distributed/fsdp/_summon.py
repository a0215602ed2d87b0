"""Whole parameters for a while, outside of forward and backward passes."""

from __future__ import annotations

from contextlib import contextmanager

import taeda

from ._group import in_backward

__all__ = ["Opening", "whole_parameters"]


class Opening:
    """A wrapper's parameters, whole and registered as such until `close`.

    Args:
        wrapper: it.
        writeback: keep what was changed.
        first_only: other ranks than the first see their parts as ever.
        offload: the whole parameters lie on the CPU.
        with_grads: gradients are whole too.
    """

    def __init__(self, wrapper, writeback, first_only, offload, with_grads) -> None:
        self.wrapper, self.group = wrapper, wrapper._group
        self.writeback, self.with_grads = writeback, with_grads
        wrapper._is_summoned = True
        group, self.is_shown = self.group, False
        if group is None:
            return
        group.free()
        wholes = group.whole_values()
        self.grads = self._gather_gradients() if with_grads else {}
        if first_only and group.ranks.rank != 0:
            return
        self.is_shown = True
        if offload:
            wholes = [whole.cpu() for whole in wholes]
        self._show(wholes)

    def _gather_gradients(self) -> dict:
        """Whole gradients by number; all ranks take part for each group."""
        group = self.group
        layout, pieces = group.layout, {}
        with taeda.no_grad():
            row = taeda.zeros_like(layout.row())
            for number, slot in enumerate(layout.slots):
                if slot.parameter.grad is not None:
                    layout._piece(row, number).copy_(slot.parameter.grad)
                    pieces[number] = True
            has = taeda.zeros(len(layout.slots), dtype=taeda.int32)
            has[list(pieces)] = 1
            has = has.to(row.device)
            gathered = row
            if group.ranks.world > 1:
                from taeda.distributed import _collectives as collectives

                gathered = row.new_empty(row.numel() * group.ranks.world)
                collectives.all_gather_into_tensor(gathered, row, group.ranks.shard)
                collectives.all_reduce(has, group=group.ranks.shard)
        views = layout.wholes_of(gathered)
        return {n: views[n] for n in range(len(views)) if int(has[n])}

    def _show(self, wholes) -> None:
        layout = self.group.layout
        self.kept_grads = {}
        if layout.keeps_originals:
            for number, (slot, whole) in enumerate(
                zip(layout.slots, wholes, strict=True)
            ):
                self.kept_grads[number] = slot.parameter.grad
                slot.parameter.grad = None
                slot.parameter.data = whole
                slot.parameter.grad = self.grads.get(number)
            return
        self.wrapper._hide_flat()
        for slot, whole in zip(layout.slots, wholes, strict=True):
            flag = layout.flat.requires_grad
            slot.put(taeda.nn.Parameter(whole, requires_grad=flag))

    def close(self) -> None:
        """Registers the parts again."""
        self.wrapper._is_summoned = False
        if not self.is_shown:
            return
        layout = self.group.layout
        with taeda.no_grad():
            if self.writeback:
                layout.store([slot.registered() for slot in layout.slots])
            if layout.keeps_originals:
                self._restore_gradients(layout)
                return
        self.wrapper._show_flat()
        for slot, leaf in zip(layout.slots, self.group.leaves, strict=True):
            slot.show(leaf)

    def _restore_gradients(self, layout) -> None:
        for number, slot in enumerate(layout.slots):
            changed, slot.parameter.grad = slot.parameter.grad, None
            slot.parameter.data = layout._piece(layout.local, number)
            slot.put(slot.parameter)
            grad = self.kept_grads[number]
            if self.with_grads and self.writeback and changed is not None:
                start, inside, length = layout.part(number)
                piece = layout._piece(layout.local, number)
                if length:
                    flat = changed.reshape(-1).narrow(0, inside, length)
                    grad = flat.clone().view(piece.shape)
            slot.parameter.grad = grad


@contextmanager
def whole_parameters(
    wrappers,
    writeback=True,
    rank0_only=False,
    offload_to_cpu=False,
    with_grads=False,
):
    """Within it the wrappers' parameters are whole; see `summon_full_params`."""
    if in_backward():
        raise AssertionError(
            "Cannot manually unshard parameters during a forward or backward pass"
        )
    for wrapper in wrappers:
        if with_grads and not wrapper._keeps_originals:
            raise NotImplementedError(
                "with_grads=True is only supported when use_orig_params=True"
            )
        strategy = wrapper.sharding_strategy.name
        if offload_to_cpu and strategy == "NO_SHARD":
            raise NotImplementedError(
                "offload_to_cpu=True and NO_SHARD is not supported yet"
            )
    if writeback and rank0_only:
        raise NotImplementedError(
            "writeback=True and rank0_only=True is not supported: the other ranks "
            "would keep other values"
        )
    opened: list[Opening] = []
    try:
        for wrapper in wrappers:
            if not wrapper._is_summoned:
                args = writeback, rank0_only, offload_to_cpu, with_grads
                opened.append(Opening(wrapper, *args))
        yield
    finally:
        for opening in reversed(opened):
            opening.close()
