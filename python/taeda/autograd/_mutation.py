"""Writing to tensors that backward needs: each is copied before its first write."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager

from taeda.autograd.graph import saved_tensors_hooks
from taeda.utils._python_dispatch import TorchDispatchMode

__all__ = ["allow_mutation_on_saved_tensors"]


class _Saved:
    """A tensor as it was when it was saved."""

    def __init__(self, owner, tensor) -> None:
        self.owner, self.tensor, self.version = owner, tensor, tensor._version


class _Saver(TorchDispatchMode):
    """Looks at every operator for arguments that it writes.

    Belongs to the thread that entered it, as modes do.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open = True
        # Start of the memory -> what was saved of it and not copied yet. Weak: a
        # graph that is gone needs no copies.
        self.saved: dict = defaultdict(_new_set)

    def pack(self, tensor) -> _Saved:
        """What autograd keeps in place of the tensor."""
        entry = _Saved(self, tensor)
        self.saved[_memory(tensor)].add(entry)
        return entry

    @staticmethod
    def unpack(entry: _Saved):
        """The tensor again, for backward."""
        if not entry.owner.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' "
                "context in which the graph was originally recorded."
            )
        return entry.tensor

    def clear(self) -> None:
        """Forget all that was saved; graphs of it cannot be run backward any more."""
        self.saved.clear()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for place, argument in enumerate(func._schema.arguments):
            if argument.written:
                given = args[place] if place < len(args) else kwargs.get(argument.name)
                for t in given if isinstance(given, (list, tuple)) else (given,):
                    if t is not None:
                        self._before_write(t)
        return func(*args, **kwargs)

    def _before_write(self, tensor) -> None:
        for entry in self.saved.pop(_memory(tensor), ()):
            if entry.version == tensor._version:
                entry.tensor = entry.tensor.clone()


def _new_set():
    from weakref import WeakSet

    return WeakSet()


def _memory(tensor) -> int:
    return tensor.untyped_storage().data_ptr()


_active = False  # of the process; entering twice is refused, as PyTorch does


@contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, tensors that backward needs may be written to: it gets them as they were.

    A tensor is copied when it is first written to after it was saved. Forward and
    backward both run inside.

    Raises:
        RuntimeError: contexts are nested.
        AssertionError: in a backward after the context's end.

    Example:
        >>> with taeda.autograd.graph.allow_mutation_on_saved_tensors():
        ...     x = taeda.ones(2, requires_grad=True)
        ...     y = x.clone()
        ...     out = (y**2).sum()
        ...     _ = y.sin_()
        ...     out.backward()
        >>> x.grad
        tensor([2., 2.])
    """
    global _active
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    saver = _Saver()
    _active = True
    try:
        with saved_tensors_hooks(saver.pack, saver.unpack), saver:
            yield saver
    finally:
        _active, saver.open = False, False
        saver.clear()
