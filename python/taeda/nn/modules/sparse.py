"""Tables of vectors looked up by index."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .._types import MaybeDevice, MaybeDtype, MaybeFloat, MaybeInt, MaybeTensor
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """The table and its first values."""

    _padding_name = "Padding_idx"

    def _make(self, padding_idx, given, freeze, device, dtype) -> None:
        from ..functional._sparse import padding_row

        shape = (self.num_embeddings, self.embedding_dim)
        if padding_idx is not None:
            name = self._padding_name
            padding_idx = padding_row(padding_idx, shape[0], name)
        self.padding_idx = padding_idx
        table = given
        if given is None:
            table = taeda.empty(shape, device=device, dtype=dtype)
        elif tuple(given.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"{tuple(given.shape)} for {shape}"
            )
        self.weight = Parameter(table, requires_grad=not freeze)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew from the standard normal distribution."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        row = self.padding_idx
        if row is not None:
            self.weight.detach()[row].zero_()


def _rows_and_width(table):
    if table.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return table.shape


class Embedding(_Table):
    """weight[input]: one row of a table for every index.

    Args:
        num_embeddings, embedding_dim: rows and width of the table.
        padding_idx: this row begins as zero and gets no gradient.
        max_norm: rows used are first scaled down, in place, to this norm.
        norm_type: exponent of that norm.
        scale_grad_by_freq: divide a row's gradient by the row's count in the input.
        sparse: a sparse gradient of `weight`.
        device, dtype: of the table.

    Raises:
        AssertionError: `padding_idx` out of range.

    Example:
        >>> tuple(taeda.nn.Embedding(5, 3)(taeda.tensor([[1, 4]])).shape)
        (1, 2, 3)
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: MaybeInt = None,
        max_norm: MaybeFloat = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: MaybeTensor = None,
        _freeze: bool = False,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.sparse = max_norm, norm_type, sparse
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make(padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        norm = (self.padding_idx, self.max_norm, self.norm_type)
        gradient = (self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, *norm, *gradient)

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, usual in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = getattr(self, name)
            if value != usual:
                shown += f", {name}={value}"
        return shown

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: MaybeInt = None,
        max_norm: MaybeFloat = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding of a given table.

        Args:
            embeddings (Tensor): (rows, width).
            freeze: whether the table is not trained.
            padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse: as for the
                class.

        Raises:
            AssertionError: the table is not 2-D.

        Example:
            >>> taeda.nn.Embedding.from_pretrained(taeda.eye(2))(taeda.tensor(1))
            tensor([0., 1.])
        """
        rows, width = _rows_and_width(embeddings)
        norm = (padding_idx, max_norm, norm_type)
        gradient = (scale_grad_by_freq, sparse)
        return cls(rows, width, *norm, *gradient, _weight=embeddings, _freeze=freeze)


class EmbeddingBag(_Table):
    """Sum, mean or maximum of table rows over bags of indices, in one pass.

    Args:
        num_embeddings, embedding_dim: rows and width of the table.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for `Embedding`.
        mode: "sum", "mean" or "max".
        include_last_offset: the offsets also have the end of the last bag.
        padding_idx: these entries are left out of their bag.
        device, dtype: of the table.

    In forward: input (bags, length), or 1-D with offsets (1-D, where each bag begins);
    per_sample_weights, with "sum" only.

    Example:
        >>> tuple(taeda.nn.EmbeddingBag(5, 3)(taeda.tensor([[1, 4]])).shape)
        (1, 3)
    """

    _padding_name = "padding_idx"
    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: MaybeFloat = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: MaybeTensor = None,
        include_last_offset: bool = False,
        padding_idx: MaybeInt = None,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.sparse = max_norm, norm_type, sparse
        self.scale_grad_by_freq, self.mode = scale_grad_by_freq, mode
        self.include_last_offset = include_last_offset
        self._make(padding_idx, _weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: MaybeTensor = None,
        per_sample_weights: MaybeTensor = None,
    ) -> Tensor:
        norm = (self.max_norm, self.norm_type, self.scale_grad_by_freq)
        bags = (per_sample_weights, self.include_last_offset, self.padding_idx)
        kind = (self.mode, self.sparse)
        return F.embedding_bag(input, self.weight, offsets, *norm, *kind, *bags)

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, usual in (
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("mode", ""),
            ("padding_idx", None),
        ):
            value = getattr(self, name)
            if value != usual:
                shown += f", {name}={value!r}"
        return shown

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: MaybeFloat = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: MaybeInt = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag of a given table; arguments as for the class.

        Raises:
            AssertionError: the table is not 2-D.

        Example:
            >>> bag = taeda.nn.EmbeddingBag.from_pretrained(taeda.eye(2))
            >>> bag(taeda.tensor([[0, 1]]))
            tensor([[0.5000, 0.5000]])
        """
        rows, width = _rows_and_width(embeddings)
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings)
        bag = cls(rows, width, *options, include_last_offset, padding_idx)
        bag.weight.requires_grad = not freeze
        return bag
