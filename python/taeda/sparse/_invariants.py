"""Whether constructors of sparse tensors check what they are given."""

from __future__ import annotations

from taeda import _C

__all__ = ["check_sparse_tensor_invariants"]


class check_sparse_tensor_invariants:
    """Checks of indices in constructors: a switch, a context and a decorator.

    Off when the program starts: checks cost time that grows with the number of
    entries. The switch belongs to the process; contexts in several threads at once
    see each other's.

    Args:
        enable: whether constructors check inside of the context.
    """

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check."""
        return _C._check_sparse_tensor_invariants()

    @staticmethod
    def enable() -> None:
        """Let constructors check from now on."""
        _C._set_check_sparse_tensor_invariants(True)

    @staticmethod
    def disable() -> None:
        """Let constructors trust their arguments from now on."""
        _C._set_check_sparse_tensor_invariants(False)

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: list[bool] = []  # one for each time that it was entered

    def __enter__(self) -> None:
        self._before.append(_C._check_sparse_tensor_invariants())
        _C._set_check_sparse_tensor_invariants(self.state)

    def __exit__(self, type, value, traceback) -> None:
        _C._set_check_sparse_tensor_invariants(self._before.pop())

    def __call__(self, mth):
        from functools import wraps

        @wraps(mth)
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return checked
