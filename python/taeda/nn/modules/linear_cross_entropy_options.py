"""How the fused linear layer and cross entropy is computed."""

from __future__ import annotations

import taeda

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")


class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` cuts its batch into chunks; cannot be changed.

    Args:
        allow_retain_graph: whether backward may run more than once (it always may).
        batch_chunk_size: rows of one chunk; default chosen by
        chunking_method: "auto", "aspect_ratio[:n]" (chunks whose scores take about
            1/n of the memory of the input) or None.
        acc_policy: "auto", "accurate", "balanced" or "compact".
        acc_dtype: dtype of the scores; default float32 for half types.

    Raises:
        ValueError: a value that means nothing.

    Example:
        >>> taeda.nn.LinearCrossEntropyOptions(batch_chunk_size=2).batch_chunk_size
        2
    """

    __slots__ = (
        "acc_dtype",
        "acc_policy",
        "allow_retain_graph",
        "batch_chunk_size",
        "chunking_method",
    )
    _order = (
        "allow_retain_graph",
        "batch_chunk_size",
        "chunking_method",
        "acc_policy",
        "acc_dtype",
    )

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype=None,
    ) -> None:
        size = batch_chunk_size
        if acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        if chunking_method not in (None, "auto"):
            name, colon, factor = chunking_method.partition(":")
            factor = factor if colon else "1"
            if name != "aspect_ratio" or not factor.isdigit() or int(factor) == 0:
                raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(
                f"batch_chunk_size must be positive int or None, got {size!r}"
            )
        kinds = ("float16", "bfloat16", "float32", "float64")
        if acc_dtype not in (None, *(getattr(taeda, kind) for kind in kinds)):
            raise ValueError(f"acc_dtype must be None or one of {kinds}")
        values = (allow_retain_graph, size, chunking_method, acc_policy, acc_dtype)
        for name, value in zip(self._order, values, strict=False):
            object.__setattr__(self, name, value)

    def _values(self):
        return tuple(getattr(self, name) for name in self._order)

    def __setattr__(self, name, value) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name) -> None:
        raise AttributeError(f"cannot delete field {name!r}")

    def __eq__(self, other) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{n}={v!r}" for n, v in zip(self._order, self._values(), strict=False)
        )
        return f"{type(self).__name__}({shown})"

    def __reduce__(self):
        return type(self), self._values()

    def _rows(self, batch: int, in_features: int, num_classes: int) -> int:
        """Rows of one chunk."""
        size, method = self.batch_chunk_size, self.chunking_method
        if method is None or (method == "auto" and size is not None):
            return max(1, min(size or batch, batch))
        factor = 1 if method == "auto" else int(method.partition(":")[2] or 1)
        wider = -(-num_classes // in_features)
        fitting = -(-batch // wider)
        chosen = max(1, min((1 << (fitting - 1).bit_length()) // factor, batch))
        if size is not None and size != chosen:
            raise ValueError(
                f"batch_chunk_size ({size}) and chunking_method ({method!r}) give "
                f"different chunk sizes ({size} vs {chosen}); pass only one"
            )
        return chosen
