"""What stands above the reducer of `taeda._distributed`: how buckets are sent.

The reducer gathers gradients into buckets while the backward pass goes on. It sends
them over a group of the CPU by itself; here they come where a communication hook or
another backend takes them.
"""

from __future__ import annotations

from functools import partial

import taeda

from ._debug import DebugLevel, get_debug_level
from ._join import own_device
from ._process_group import ProcessGroup
from ._types import AllreduceOptions, ReduceOp

__all__ = ["GradBucket", "Reducer"]


class GradBucket:
    """Gradients that travel together; what communication hooks are given.

    Args:
        index: the bucket's place in the order of sending.
        buffer: all gradients in one dimension.
        gradients: views of the buffer, of the parameters' shapes.
        parameters: whose gradients they are.
        is_last: whether it is sent last.
    """

    def __init__(self, index, buffer, gradients, parameters, is_last) -> None:
        self._index, self._buffer, self._gradients = index, buffer, gradients
        self._parameters, self._is_last = parameters, is_last

    def index(self) -> int:
        """The bucket's place in the order of sending."""
        return self._index

    def buffer(self):
        """All gradients in one dimension."""
        return self._buffer

    def set_buffer(self, tensor) -> None:
        """Puts another tensor in the buffer's place."""
        self._buffer = tensor

    def gradients(self) -> list:
        """The gradients, in the parameters' shapes."""
        return list(self._gradients)

    def parameters(self) -> list:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is sent last."""
        return self._is_last


def _native_of(group, parameters):
    """The group of `taeda._distributed` that buckets can go over, None elsewhere."""
    if type(group) is not ProcessGroup or not all(p.is_cpu for p in parameters):
        return None
    from ._gloo import CpuBackend

    backend = group._backends.get("cpu")
    # Who derives from it may send in another way.
    if getattr(type(backend), "allreduce", None) is not CpuBackend.allreduce:
        return None
    return backend._native


class _Sender:
    """Sends buckets for which the reducer asks Python.

    Args:
        parameters: the reducer's.
        group: the ranks.
    """

    def __init__(self, parameters: list, group) -> None:
        self.parameters, self.group = parameters, group
        self.hook = None
        self.divide_by: int | None = None  # fewer than all ranks, within join()

    def send(self, index: int, buffer, views: list, numbers: list, is_last: bool):
        """Begins to average a bucket; a function that waits for it.

        Without `views` the buffer is one sparse gradient.
        """
        if self.hook is None:
            return self._average(buffer).wait
        state, function = self.hook
        shown = GradBucket(
            index,
            buffer,
            views or [buffer],
            [self.parameters[i] for i in numbers],
            is_last,
        )
        return partial(self._take, buffer, views, function(state, shown))

    def _average(self, buffer):
        options = AllreduceOptions()
        options.asyncOp = True
        # Other backends may have no AVG.
        options.reduceOp = ReduceOp.SUM
        with taeda.no_grad():
            if buffer.is_complex():
                buffer = taeda.view_as_real(buffer)
            buffer.div_(self.divide_by or self.group.size())
            return self.group.allreduce([buffer], options)

    @staticmethod
    def _take(buffer, views: list, future) -> None:
        """A hook's result into the buffer."""
        result = future.wait()
        with taeda.no_grad():
            if isinstance(result, (list, tuple)) and len(result) == len(views):
                if len(result) > 1 or result[0].shape != buffer.shape:
                    for view, tensor in zip(views, result, strict=True):
                        view.copy_(tensor)
                    return
            if isinstance(result, (list, tuple)):
                result = result[0]
            if result is buffer:
                return
            if not views:
                buffer.copy_(result)
            elif result.data_ptr() != buffer.data_ptr():
                buffer.copy_(result.view_as(buffer))

    def sum(self, numbers):
        """Begins to add up integers in place; a function that waits for it."""
        options = AllreduceOptions()
        options.asyncOp = True
        return self.group.allreduce([numbers], options).wait


class Reducer:
    """The gradients of a model's parameters.

    Args:
        parameters: each once; all require gradients.
        group: the ranks.
        limits: bytes of the first buckets, in order; the last holds for the rest. The
            first is small so as to be sent early.
        find_unused: look in each graph which parameters it does not reach.
        static_graph: they are the same in each pass: the first one tells.
        views: gradients are views of the buckets.
        dtype: of the buckets; that of the parameters if None.
        names: of the parameters, for errors.
        sparse: of which parameters the gradients are sparse; of none by default.
    """

    def __init__(
        self,
        parameters,
        group,
        limits,
        find_unused,
        static_graph,
        views,
        dtype=None,
        names=(),
        sparse=(),
    ) -> None:
        from taeda import _distributed as native

        self.parameters, self.group = list(parameters), group
        self._sender = _Sender(self.parameters, group)
        options = {
            "limits": limits,
            "find_unused": find_unused,
            "static_graph": static_graph,
            "views": views,
            "dtype": dtype,
            "names": list(names),
            "sparse": list(sparse),
            "tells_names": bool(names) and get_debug_level() != DebugLevel.OFF,
            "rank": group.rank(),
            "own_device": own_device(group),
        }
        over = _native_of(group, self.parameters)
        self._native = native.Reducer(self.parameters, options, over, self._sender)
        self.prepare = self._native.prepare
        self.skip = self._native.skip
        self.check_finished = self._native.check_finished
        self.shadow = self._native.shadow
        self.bucket_bytes = self._native.bucket_bytes
        self.remove_hooks = self._native.remove_hooks

    @property
    def hook(self):
        """(state, function) that sends buckets; None where the reducer does."""
        return self._sender.hook

    @hook.setter
    def hook(self, value) -> None:
        self._sender.hook = value
        self._native.send_by_python()

    @property
    def divide_by(self) -> int | None:
        """By how many ranks sums are divided; by all if None."""
        return self._sender.divide_by

    @divide_by.setter
    def divide_by(self, ranks: int | None) -> None:
        self._sender.divide_by = ranks
        self._native.divide_by(ranks or 0)

    def rebuild(self) -> bool:
        """New buckets in the order of arrival at rank 0, once after the first pass."""
        order = self._native.take_order()
        if order is None:
            return False
        from ._collectives import broadcast

        agreed = taeda.tensor(order, dtype=taeda.int64).to(own_device(self.group))
        broadcast(agreed, group=self.group, group_src=0)
        self._native.set_order(agreed.tolist())
        return True
