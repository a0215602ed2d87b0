"""A tensor that a collective still fills."""

from __future__ import annotations

import taeda
from taeda.utils._pytree import tree_map

__all__ = ["AsyncCollectiveTensor"]


class _Pending:
    """A work, for all tensors that see its result."""

    def __init__(self, work) -> None:
        self._work = work

    def is_over(self) -> bool:
        """Whether it was waited for."""
        return self._work is None

    def wait(self) -> None:
        """Waits; an error is raised by each call."""
        work = self._work
        if work is not None:
            work.wait()
            self._work = None


class AsyncCollectiveTensor(taeda.Tensor):
    """What a functional collective returns before it has ended.

    Whatever reads or writes the values waits for it; views do not, they are such
    tensors too. `wait_tensor` waits and returns the plain tensor. The collective's own
    input must not be written before.

    Args:
        elem (Tensor): what is filled.
        pending: what fills it; nothing by default.
    """

    elem: taeda.Tensor
    _pending: _Pending

    @staticmethod
    def __new__(cls, elem, pending: _Pending | None = None):
        made = taeda.Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=elem.device,
        )
        made.elem, made._pending = elem, pending or _Pending(None)
        return made

    @property
    def completed(self) -> bool:
        """Whether it was waited for."""
        return self._pending.is_over()

    def trigger_wait(self):
        """The plain tensor, once it is there.

        Raises:
            DistBackendError: the collective failed.
        """
        self._pending.wait()
        return self.elem

    def wait(self):
        """The same as `trigger_wait`."""
        return self.trigger_wait()

    def _get_acs_underlying_tensor(self):
        return self.elem

    def __tensor_flatten__(self):
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors, meta, outer_size, outer_stride):
        return AsyncCollectiveTensor(inner_tensors["elem"])

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()!r})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not _only_sees(func):
            return func(*tree_map(_waited, args), **tree_map(_waited, kwargs))
        pending = args[0]._pending
        made = func(*tree_map(_inside, args), **kwargs)
        return tree_map(lambda t: cls(t, pending), made)


_detach = taeda.ops.aten.detach.default


def _only_sees(func) -> bool:
    """Whether an operator's results are the first argument's memory in any case."""
    record = getattr(func, "record", None)
    return func is _detach or (record is not None and record.family == "view")


def _inside(value):
    return value.elem if isinstance(value, AsyncCollectiveTensor) else value


def _waited(value):
    return value.trigger_wait() if isinstance(value, AsyncCollectiveTensor) else value


def _reader(name: str):
    """A method that hands the values out past all operators."""
    plain = getattr(taeda.Tensor, name)

    def read(self, *args, **kwargs):
        return plain(self.trigger_wait(), *args, **kwargs)

    read.__name__, read.__doc__ = name, plain.__doc__
    return read


for _name in (
    "tolist numpy data_ptr untyped_storage __array__ __dlpack__ __reduce_ex__"
    " __deepcopy__"
).split():
    setattr(AsyncCollectiveTensor, _name, _reader(_name))
