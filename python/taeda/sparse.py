"""Sparse tensors: not in this build, and it says so."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function

_FUNCTIONS = "addmm mm sum softmax log_softmax spdiags spsolve sampled_addmm".split()
_TYPES = "FloatTensor DoubleTensor HalfTensor LongTensor IntTensor".split()
__all__ = [*_FUNCTIONS, *_TYPES, "check_sparse_tensor_invariants"]

globals().update((name, absent_function(f"sparse.{name}")) for name in _FUNCTIONS)
globals().update((name, absent_class(f"sparse.{name}")) for name in _TYPES)


class check_sparse_tensor_invariants:
    """Whether sparse tensors are checked when they are made; there are none."""

    _on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable

    @staticmethod
    def is_enabled() -> bool:
        """Whether they are checked."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Check from here on."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Do not check."""
        check_sparse_tensor_invariants._on = False

    def __enter__(self) -> None:
        self.before, check_sparse_tensor_invariants._on = self._on, self.state

    def __exit__(self, *error) -> None:
        check_sparse_tensor_invariants._on = self.before
