"""Tensors that carry a mask: True where an element is there."""

from __future__ import annotations

import warnings

import taeda
from taeda import Tensor
from taeda._subclasses.carried import Carried

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

_DTYPES = "float16 float32 float64 bool int8 int16 int32 int64"


def _check(data, mask) -> None:
    for value, what in ((data, "data"), (mask, "mask")):
        if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
            raise TypeError(f"{what} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError(
            "MaskedTensor: expected data and mask of the same layout, got "
            f"{data.layout} and {mask.layout}"
        )
    if data.layout != taeda.strided:
        raise NotImplementedError(f"MaskedTensor: data of layout {data.layout}")
    if mask.dtype != taeda.bool:
        raise TypeError("mask must have dtype bool.")
    if str(data.dtype).rpartition(".")[2] not in _DTYPES.split():
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    for shape in ("dim", "size"):
        of_data, of_mask = (getattr(value, shape)() for value in (data, mask))
        if of_data != of_mask:
            raise ValueError(f"data.{shape}() must equal mask.{shape}()")


class MaskedTensor(Carried):
    """A tensor some of whose elements are not there.

    Args:
        data: the elements; a copy is kept, which is a leaf.
        mask: of the same sizes, True where an element is there.
        requires_grad: whether autograd records what is computed with it.

    Example:
        >>> mask = taeda.tensor([True, False])
        >>> taeda.masked.masked_tensor(taeda.tensor([1.0, 2.0]), mask)
        MaskedTensor(
          [  1.0000,       --]
        )
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad: bool = False):
        _check(data, mask)
        warnings.warn(
            "MaskedTensor is a prototype in PyTorch: its interface may change",
            UserWarning,
            stacklevel=2,
        )
        if data.requires_grad:
            warnings.warn(
                "MaskedTensor: data that requires_grad is copied into a leaf without "
                "its history; hand over data.detach().clone() to say so",
                UserWarning,
                stacklevel=2,
            )
        made = Carried._make(cls, data.detach().clone())
        made._masked_mask = mask.clone()
        made._inner.requires_grad_(bool(requires_grad))
        return made

    def __init__(self, data, mask, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def _around(cls, data: Tensor, mask: Tensor):
        """A result: data that autograd records, and its mask."""
        _check(data, mask)
        made = Carried._make(cls, data)
        made._masked_mask = mask
        return made

    @classmethod
    def _from_values(cls, data, mask):
        return cls._around(data, mask)

    def _like(self, tensor: Tensor):
        return MaskedTensor._around(tensor, self._masked_mask)

    @classmethod
    def _call(cls, func, args, kwargs):
        from ._rules import call

        return call(func, args, kwargs)

    @property
    def _masked_data(self) -> Tensor:
        return self._inner

    @property
    def shape(self):
        return self._inner.shape

    def size(self, *dim):
        return self._inner.size(*dim)

    def stride(self, *dim):
        return self._inner.stride(*dim)

    def numel(self) -> int:
        return self._inner.numel()

    def is_contiguous(self, memory_format=taeda.contiguous_format) -> bool:
        return self._inner.is_contiguous(memory_format=memory_format)

    def __len__(self) -> int:
        return len(self._inner)

    def get_data(self) -> Tensor:
        """The data, masked elements included; gradients flow through it."""
        return self._inner

    def get_mask(self) -> Tensor:
        """The mask: True where an element is there."""
        return self._masked_mask

    def to_tensor(self, value) -> Tensor:
        """A tensor with a value where no element is there."""
        return self._inner.masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Whether values lie in memory by their indices: never here."""
        return False

    def is_sparse_csr(self) -> bool:
        return False

    def __repr__(self, *, tensor_contents=None) -> str:
        data, mask = self._inner.detach(), self._masked_mask
        form = "{0:8.4f}"
        if data.ndim == 0:
            known = bool(mask)
            text = _shown(data.item(), form) if known else "--"
            return f"MaskedTensor({text}, {known})"
        lines = _text(data, mask, form).split("\n")
        return "MaskedTensor(\n" + "\n".join("  " + s for s in lines) + "\n)"

    def __deepcopy__(self, memo):
        known = memo.get(id(self))
        if known is None:
            from copy import deepcopy

            data = deepcopy(self._inner, memo)
            known = MaskedTensor._around(data, deepcopy(self._masked_mask, memo))
            memo[id(self)] = known
        return known

    def __reduce_ex__(self, protocol):
        return MaskedTensor._from_values, (self._inner, self._masked_mask)


def _shown(value, form: str) -> str:
    return form.format(value) if isinstance(value, float) else str(value)


def _text(data: Tensor, mask: Tensor, form: str) -> str:
    if data.ndim == 1:
        pairs = list(zip(data.tolist(), mask.tolist(), strict=True))
        texts = [_shown(value, form) for value, _ in pairs]
        # A masked element takes eight columns, or those of the widest of the others.
        widths = [
            len(t) if known else 8 for t, (_, known) in zip(texts, pairs, strict=True)
        ]
        gap = "--".rjust(max(widths, default=8))
        shown = [
            t if known else gap for t, (_, known) in zip(texts, pairs, strict=True)
        ]
        return "[" + ", ".join(shown) + "]"
    rows = [
        _text(d, m, form) for d, m in zip(data.unbind(), mask.unbind(), strict=True)
    ]
    rows = ["  " + row.replace("\n", "\n  ") for row in rows]
    return "[\n" + ",\n".join(rows) + "\n]"


def masked_tensor(data, mask, requires_grad: bool = False) -> MaskedTensor:
    """A MaskedTensor of a copy of data; a leaf, like what `tensor` makes."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask) -> MaskedTensor:
    """A MaskedTensor over data, to which gradients flow."""
    return MaskedTensor._from_values(data, mask)


def is_masked_tensor(obj, /) -> bool:
    """Whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
