"""Masks of attention kept as lists of blocks."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from .. import functional as F
from .._types import MaybeTensor

# The classes and functions show themselves as part of flex_attention.py.
__name__ = f"{__package__}.flex_attention"

_BLOCK = 128


def noop_mask(batch, head, token_q, token_kv) -> Tensor:
    """The mask that hides nothing."""
    return batch.new_ones((), dtype=taeda.bool)


def _sliced_mask_mod(batch, head, token_q, token_kv):
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: its indices are another mask's. "
        "Assign the slice a mask_mod that adds the offset"
    )


def _combined(mask_mods, begin, join):
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b, h, q_idx, kv_idx):
        result = begin(b)
        for mod in mask_mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    return mask


def and_masks(*mask_mods):
    """The mask that shows what all of `mask_mods` show."""
    return _combined(
        mask_mods, lambda b: b.new_ones((), dtype=taeda.bool), lambda x, y: x & y
    )


def or_masks(*mask_mods):
    """The mask that shows what any of `mask_mods` shows."""
    return _combined(
        mask_mods, lambda b: b.new_zeros((), dtype=taeda.bool), lambda x, y: x | y
    )


def indices(sizes, device):
    """Index tensors of (B, H, Q, KV) that broadcast to that shape."""
    made = []
    for at, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[at] = size
        made.append(taeda.arange(size, device=device).view(shape))
    return made


def create_mask(mod_fn, B, H, Q_LEN: int, KV_LEN: int, device=None) -> Tensor:
    """The boolean mask (B, H, Q_LEN, KV_LEN) that a function of indices describes.

    Args:
        mod_fn: `mask_mod(b, h, q, kv)`, or `score_mod(score, b, h, q, kv)`, which
            hides where it returns -inf. It is called once, with index tensors that
            broadcast.
        B, H: batch and heads; None is 1.
        Q_LEN, KV_LEN: lengths.
        device: of the mask.

    Example:
        >>> from taeda.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)[0, 0]
        tensor([[ True, False],
                [ True,  True]])
    """
    import inspect

    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = indices(sizes, device)
    required = [
        p
        for p in inspect.signature(mod_fn).parameters.values()
        if p.default is p.empty
        and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) == 5:
        scores = mod_fn(taeda.zeros(sizes, device=device), *places)
        return (~taeda.isneginf(scores)).expand(sizes).clone()
    return mod_fn(*places).expand(sizes).clone()


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def _as_lists(blocks):
    """A dense grid of blocks -> how many in each row, and their columns first."""
    order = taeda.argsort(blocks.to(taeda.int32), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(taeda.int32), order.to(taeda.int32)


def _as_grid(counts, columns):
    """The inverse of `_as_lists`, as int32."""
    places = taeda.arange(columns.shape[-1], device=columns.device)
    listed = (places < counts.unsqueeze(-1)).to(taeda.int32)
    return taeda.zeros_like(listed).scatter_(-1, columns.long(), listed)


def _transposed(counts, columns):
    return _as_lists(_as_grid(counts, columns).transpose(-2, -1))


class BlockMask:
    """Which blocks of an attention matrix are computed, and by what mask inside.

    Partial blocks are masked by `mask_mod`, full ones are not. `create_block_mask`
    makes it; `from_kv_blocks` takes the lists of blocks of each row of queries.

    Args:
        seq_lengths: (queries, keys).
        kv_num_blocks, kv_indices (Tensor): (B, H, rows) counts of partial blocks, and
            (B, H, rows, columns) their columns, the valid ones first.
        full_kv_num_blocks, full_kv_indices (Tensor): the same of full blocks.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices (Tensor): the same
            of each column.
        BLOCK_SIZE: (queries, keys) of one block.
        mask_mod: `mask_mod(b, h, q, kv)`.
        dq_write_order and the other dq_*: order in which backward kernels add; kept,
            not used.

    Raises:
        RuntimeError: fewer than two dimensions.
        AssertionError: counts of full blocks without columns.
    """

    _TENSORS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
        "dq_write_order",
        "dq_write_order_full",
        "dq_kv_order",
    )

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: MaybeTensor,
        full_kv_indices: MaybeTensor,
        q_num_blocks: MaybeTensor,
        q_indices: MaybeTensor,
        full_q_num_blocks: MaybeTensor,
        full_q_indices: MaybeTensor,
        BLOCK_SIZE=(_BLOCK, _BLOCK),
        mask_mod=noop_mask,
        *,
        dq_write_order: MaybeTensor = None,
        dq_write_order_full: MaybeTensor = None,
        dq_kv_order: MaybeTensor = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        given = locals()
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for kind in ("full_kv", "full_q"):
            parts = (given[f"{kind}_num_blocks"], given[f"{kind}_indices"])
            if (parts[0] is None) != (parts[1] is None):
                raise AssertionError(
                    f"{kind}_num_blocks and {kind}_indices must be both provided or "
                    "omitted"
                )
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        for name in (*self._TENSORS, "seq_lengths", "BLOCK_SIZE", "mask_mod"):
            setattr(self, name, given[name])
        self.dq_kv_order_spt = dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: MaybeTensor = None,
        full_kv_indices: MaybeTensor = None,
        BLOCK_SIZE=_BLOCK,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: MaybeTensor = None,
        dq_write_order_full: MaybeTensor = None,
        dq_kv_order=None,
    ) -> BlockMask:
        """A mask from the blocks of each row; those of each column are computed.

        Args:
            compute_q_blocks: whether to compute them.
            kv_num_blocks ... dq_kv_order: as for the class; lengths default to whole
                blocks.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = _pair(BLOCK_SIZE)
        lists = [(kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)]
        columns = [
            _transposed(*pair)
            if compute_q_blocks and pair[0] is not None
            else (None,) * 2
            for pair in lists
        ]
        if seq_lengths is None:
            grid = kv_indices.shape[-2:]
            seq_lengths = tuple(n * b for n, b in zip(grid, size, strict=True))
        order = {} if dq_kv_order is None else {"dq_kv_order": dq_kv_order}
        if isinstance(dq_kv_order, bool):
            order = {"dq_kv_order_spt": dq_kv_order}
        return cls(
            seq_lengths,
            *(t for pair in (*lists, *columns) for t in pair),
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            **order,
        )

    def as_tuple(self, flatten: bool = True) -> tuple:
        """All parts; lengths and block size one by one where `flatten`."""
        lengths, size = tuple(self.seq_lengths), tuple(self.BLOCK_SIZE)
        tensors = tuple(getattr(self, name) for name in self._TENSORS[:10])
        order = (
            self.dq_kv_order if self.dq_kv_order is not None else self.dq_kv_order_spt
        )
        if flatten:
            return (*lengths, *tensors, order, *size, self.mask_mod)
        return (lengths, *tensors, order, size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Number of elements of the attention matrices."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """(B, H, rows, columns): 1 for each block that is computed."""
        grid = _as_grid(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            grid = grid | _as_grid(self.full_kv_num_blocks, self.full_kv_indices)
        return grid

    def sparsity(self) -> float:
        """Percentage of the elements that are not computed."""
        count = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            count += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - count * math.prod(self.BLOCK_SIZE) / self.numel())

    def to(self, device) -> BlockMask:
        """A copy on another device."""
        moved = (getattr(self, name) for name in self._TENSORS)
        moved = [t if t is None else t.to(device) for t in moved]
        named = dict(zip(self._TENSORS, moved, strict=True))
        rest = {"BLOCK_SIZE": self.BLOCK_SIZE, "mask_mod": self.mask_mod}
        return BlockMask(
            self.seq_lengths, **named, **rest, dq_kv_order_spt=self.dq_kv_order_spt
        )

    def __getitem__(self, index) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        padded = (*index, *(slice(None),) * 3)[:3]
        sizes = self.kv_num_blocks.shape[:3]
        index = tuple(
            slice(i % n, i % n + 1) if isinstance(i, int) else i
            for i, n in zip(padded, sizes, strict=True)
        )
        picked = (getattr(self, name) for name in self._TENSORS[:4])
        return BlockMask.from_kv_blocks(
            *(t if t is None else t[index] for t in picked),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def __repr__(self) -> str:
        lines = ["BlockMask("]
        for name in self._TENSORS[:8]:
            value = getattr(self, name)
            lines.append(f"    {name}={None if value is None else value.shape},")
        lines += [f"    BLOCK_SIZE={self.BLOCK_SIZE},", f"    shape={self.shape},"]
        lines.append(f"    sparsity={self.sparsity():.2f}%,")
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return "\n".join([*lines, f"    mask_mod={name}", ")"])

    def __str__(self) -> str:
        head = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, "
        return f"{head}\n{self.to_string().strip()}\n)"

    def to_string(self, grid_size=(20, 20), limit: int = 4) -> str:
        """A picture: two columns of characters for each group of blocks.

        Args:
            grid_size: largest rows and columns of the picture; -1 shows every block.
            limit: largest number of matrices.
        """
        grid = self.to_dense()
        rows, columns = grid.shape[-2:]
        most = (rows, columns) if grid_size == -1 else _pair(grid_size)
        tall, wide = (
            max(1, -(-n // m)) for n, m in zip((rows, columns), most, strict=True)
        )
        flat, pictures = grid.reshape(-1, rows, columns), []
        for at, matrix in enumerate(flat):
            if at == limit:
                pictures.append(
                    "...\nTo print out more, set BlockMask.to_string(limit=N)"
                )
                break
            place = []
            for size in reversed(grid.shape[:-2]):
                at, part = divmod(at, size)
                place.insert(0, part)
            lines = [f"{tuple(place)}"]
            for r in range(0, rows, tall):
                parts = matrix[r : r + tall].split(wide, dim=1)
                means = [part.float().mean().item() for part in parts]
                shown = (" " if m == 0 else "█" if m == 1 else "░" for m in means)
                lines.append("".join(c * 2 for c in shown))
            pictures.append("\n".join(lines) + "\n")
        return "\n".join(pictures)


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN: int,
    KV_LEN: int,
    device=None,
    BLOCK_SIZE=_BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The blocks of the mask that a function of indices describes.

    Args:
        mask_mod: `mask_mod(b, h, q, kv)` -> whether query q sees key kv.
        B, H: batch and heads; None is 1, which broadcasts.
        Q_LEN, KV_LEN: lengths.
        device: of the mask.
        BLOCK_SIZE: of one block, one number or (queries, keys).
        separate_full_blocks: keep blocks without hidden elements apart.

    Raises:
        NotImplementedError: `compute_dq_write_order`, which no kernel reads yet.

    Example:
        >>> from taeda.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
        >>> mask.sparsity()
        25.0
    """
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order")
    size = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rest = [-n % b for n, b in zip((Q_LEN, KV_LEN), size, strict=True)]
    mask = F.pad(mask, (0, rest[1], 0, rest[0]))
    batch, heads, q, kv = mask.shape
    cut = mask.view(batch, heads, q // size[0], size[0], kv // size[1], size[1])
    seen = cut.sum(dim=(3, 5))
    full = seen == size[0] * size[1] if separate_full_blocks else None
    partial = seen > 0 if full is None else (seen > 0) & ~full
    lists = _as_lists(partial) + (() if full is None else _as_lists(full))
    lengths = (Q_LEN, KV_LEN)
    return BlockMask.from_kv_blocks(
        *lists, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=lengths
    )
