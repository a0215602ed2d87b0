"""How a group's parameters lie over ranks, and where they are when whole.

A layout turns this rank's part into one row of numbers, the rows of all ranks into
whole parameters, gradients of those into a row for each rank, and a reduced row into
the gradients of this rank's part. `_group.py` moves the rows.
"""

from __future__ import annotations

import taeda

from ._slots import Slot

__all__ = ["FlatLayout", "Layout"]


def _resize(tensor, numel: int) -> None:
    tensor.untyped_storage().resize_(numel * tensor.element_size())


class Layout:
    """What both layouts share: tensors for whole parameters that come and go.

    Each layout has its own of these:
    - `stored()`: dtype and device of this rank's part.
    - `seen()`: the parameters that optimizers see; `sharded()` registers them.
    - `make(dtype, device)`: buffers of whole parameters, and views of their shapes.
    - `row()`: this rank's part as one row, of equal length at all ranks.
    - `target(row)`: where the rows of all ranks are to go, in one dimension; `fill`
      moves them on to the buffers.
    - `pack(gradients, dtype)`: gradients by number as one row for each rank.
    - `accept(row, numbers)`: makes a reduced row the gradients of this rank's part.

    Args:
        slots: the parameters.
        rank: this rank among those that share them.
        world: how many those are.
    """

    def __init__(self, slots: list[Slot], rank: int, world: int) -> None:
        self.slots, self.rank, self.world = slots, rank, world
        self.buffers: list = []  # hold whole parameters; without memory while freed
        self.wholes: list = []  # views of them without a shared version
        self._key: tuple = ()

    def ensure(self, dtype, device) -> bool:
        """Makes the tensors of whole parameters anew where dtype or device changed."""
        key = self.key(dtype), device
        if key == self._key:
            return False
        self._key = key
        self.buffers, views = self.make(dtype, device)
        self.release()
        # A view of `.data` has a version of its own, so filling the buffer later is
        # no change of what autograd has saved.
        self.wholes = [view.data for view in views]
        return True

    def key(self, dtype):
        """What the tensors of whole parameters are made for."""
        return dtype

    def allocate(self) -> None:
        """Gives the buffers memory."""
        for buffer in self.buffers:
            if buffer.untyped_storage().size() == 0:
                _resize(buffer, buffer.numel())

    def release(self) -> None:
        """Takes it from them; the tensors stay."""
        for buffer in self.buffers:
            _resize(buffer, 0)

    def trainable(self) -> list[bool]:
        """Whether each parameter gets a gradient."""
        return [slot.parameter.requires_grad for slot in self.slots]

    def as_leaf(self, number: int, whole):
        """A whole parameter as a module is to have it."""
        flag = self.slots[number].parameter.requires_grad
        return taeda.nn.Parameter(whole, requires_grad=flag)

    def local_gradient(self, number: int, gradient):
        """A whole parameter's gradient as a plain tensor."""
        return gradient


class FlatLayout(Layout):
    """All parameters behind each other in one row, cut into equal lengths.

    Args:
        slots, rank, world: as for `Layout`.
        keeps_originals: the parameters stay, as views of this rank's part; else one
            flat parameter stands for all.
        alignment: bytes to whose multiples each parameter's start is moved.
        compute_dtype: of whole parameters, which the alignment is counted in.
        device: of this rank's part.
    """

    def __init__(
        self, slots, rank, world, keeps_originals, alignment, compute_dtype, device
    ) -> None:
        super().__init__(slots, rank, world)
        self.keeps_originals = keeps_originals
        first = slots[0].parameter
        step = 1
        if keeps_originals:
            size = taeda.empty(0, dtype=compute_dtype or first.dtype).element_size()
            step = max(1, alignment // size)
        self.offsets, end = [], 0
        for slot in slots:
            start = -(-end // step) * step
            self.offsets.append(start)
            end = start + slot.numel
        self.length = -(-end // world)
        self.total = self.length * world if keeps_originals else end
        with taeda.no_grad():
            whole = taeda.zeros(self.length * world, dtype=first.dtype, device=device)
            for view, slot in zip(self._views(whole), slots, strict=True):
                view.copy_(slot.parameter)
            mine = whole.narrow(0, rank * self.length, self.length).clone()
        self.local = mine
        if keeps_originals:
            self._shrink()
            self.flat = None
        else:
            self.flat = taeda.nn.Parameter(mine, requires_grad=first.requires_grad)
            for slot in slots:
                slot.parameter = None  # gives its memory back

    def _views(self, whole) -> list:
        return [
            whole.narrow(0, offset, slot.numel).view(slot.shape)
            for offset, slot in zip(self.offsets, self.slots, strict=True)
        ]

    def part(self, number: int) -> tuple[int, int, int]:
        """(start in this rank's row, start in the parameter, length) of a parameter."""
        begin, numel = self.offsets[number], self.slots[number].numel
        mine = self.rank * self.length
        start, stop = max(begin, mine), min(begin + numel, mine + self.length)
        if stop <= start:
            return 0, 0, 0
        return start - mine, start - begin, stop - start

    def _piece(self, row, number: int):
        start, _, length = self.part(number)
        piece = row.narrow(0, start, length)
        return piece.view(self.slots[number].shape) if self.world == 1 else piece

    def _shrink(self) -> None:
        """The original parameters become views of this rank's part."""
        for number, slot in enumerate(self.slots):
            slot.parameter.data = self._piece(self.local, number)

    def _write_back(self) -> None:
        """Takes over parameters that were given other memory, by `to` or `.data`."""
        for number, slot in enumerate(self.slots):
            mine, now = self._piece(self.local, number), slot.parameter.data
            if now.dtype == mine.dtype and now.data_ptr() == mine.data_ptr():
                continue
            if not mine.numel() and not now.numel():
                continue
            if now.shape != mine.shape:
                raise RuntimeError(
                    f"FSDP: parameter {slot.name!r} was given a tensor of shape "
                    f"{tuple(now.shape)} while this rank's part has "
                    f"{tuple(mine.shape)}; change whole parameters within "
                    "summon_full_params()"
                )
            if now.dtype != mine.dtype or now.device != mine.device:
                self.local = self.local.to(now.device, now.dtype)
                self._write_back()
                return self._shrink()
            mine.copy_(now)
            slot.parameter.data = mine
        return None

    def trainable(self):
        if self.flat is None:
            return super().trainable()
        return [self.flat.requires_grad] * len(self.slots)

    def seen(self):
        return [s.parameter for s in self.slots] if self.flat is None else [self.flat]

    def stored(self):
        return self.local.dtype, self.local.device

    def sharded(self) -> None:
        if self.keeps_originals:
            for number, slot in enumerate(self.slots):
                slot.parameter.data = self._piece(self.local, number)
                slot.put(slot.parameter)

    def row(self):
        if self.flat is not None:
            self.local = self.flat.data
        else:
            self._write_back()
        return self.local

    def key(self, dtype):
        # One rank's whole parameters can be its part itself.
        alone = self.world == 1 and self.local.dtype == dtype
        return (dtype, self.local.data_ptr()) if alone else dtype

    def make(self, dtype, device):
        if self.world == 1 and (self.local.dtype, self.local.device) == (dtype, device):
            return [], self._views(self.local)
        whole = taeda.empty(self.length * self.world, dtype=dtype, device=device)
        return [whole], self._views(whole)

    def target(self, row):
        return self.buffers[0] if self.buffers else None

    def fill(self, target) -> None:
        pass

    def wholes_of(self, target) -> list:
        """Whole parameters as views of all rows, of any dtype."""
        return self._views(target)

    def pack(self, gradients: dict, dtype):
        some = next(iter(gradients.values()))
        size = self.length * self.world
        packed = taeda.zeros(size, dtype=dtype, device=some.device)
        views = self._views(packed)
        for number, gradient in gradients.items():
            views[number].copy_(gradient)
        return packed

    def accept(self, row, numbers) -> None:
        if self.flat is not None:
            _add_gradient(self.flat, row)
            return
        for number, slot in enumerate(self.slots):
            piece = self._piece(row, number)
            if piece.numel() and slot.parameter.requires_grad:
                _add_gradient(slot.parameter, piece)

    def store(self, wholes) -> None:
        """Takes this rank's part of whole values."""
        for number, whole in enumerate(wholes):
            start, inside, length = self.part(number)
            if length:
                piece = whole.detach().reshape(-1).narrow(0, inside, length)
                self.local.narrow(0, start, length).copy_(piece)


def _add_gradient(parameter, gradient) -> None:
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.add_(gradient)
