"""Averages gradients over ranks while the backward pass goes on.

Parameters are gathered into buckets in the order in which their gradients arrived in
the first pass. A bucket is sent once the gradients of all its parameters are there; the
pass ends when all that were sent have come back.
"""

from __future__ import annotations

import taeda

from ._join import own_device
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


class _Bucket:
    """A buffer, its parameters by number, and what is under way."""

    def __init__(self, numbers: list[int], parameters: list, dtype=None) -> None:
        self.numbers = numbers
        sizes = [parameters[i].numel() for i in numbers]
        first = parameters[numbers[0]]
        dtype = dtype or first.dtype
        self.buffer = taeda.zeros(sum(sizes), dtype=dtype, device=first.device)
        flat = self.buffer.split(sizes)
        self.views = [
            part.view(parameters[i].shape)
            for part, i in zip(flat, numbers, strict=True)
        ]
        self.left = 0
        self.future = self.work = None

    def place_of(self, number: int) -> int:
        return self.numbers.index(number)


def buckets_of(parameters, order, limits) -> list[list[int]]:
    """Numbers of parameters, cut into buckets of a dtype and device.

    Args:
        parameters: all of them.
        order: their numbers, as gradients arrive.
        limits: bytes of the first buckets, in order; the last holds for the rest. The
            first is small so as to be sent early.
    """
    found: list[list[int]] = []
    open_buckets: dict = {}
    for i in order:
        p = parameters[i]
        key = p.dtype, p.device
        numbers, size = open_buckets.get(key, ([], 0))
        numbers.append(i)
        size += p.numel() * p.element_size()
        if size >= limits[min(len(found), len(limits) - 1)]:
            found.append(numbers)
            open_buckets.pop(key, None)
        else:
            open_buckets[key] = numbers, size
    return found + [numbers for numbers, _ in open_buckets.values()]


class Reducer:
    """The gradients of a model's parameters.

    Args:
        parameters: each once; all require gradients.
        group: the ranks.
        limits: bytes of buckets; see `buckets_of`.
        find_unused: look in each graph which parameters it does not reach.
        static_graph: they are the same in each pass: look in the first alone.
        views: gradients are views of the buckets.
        dtype: of the buckets; that of the parameters if None.
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
    ) -> None:
        self.parameters, self.group, self.limits = list(parameters), group, limits
        self.dtype = dtype
        self.find_unused, self.static_graph, self.views = (
            find_unused,
            static_graph,
            views,
        )
        order = list(reversed(range(len(self.parameters))))
        self._make_buckets(order)
        self._is_first_order = True
        self.arrivals: list[int] = []
        self.active = self.finished_once = False
        self.expecting = False  # a pass of which not all gradients have come
        self.unused: set[int] | None = None
        self.missing: set[int] = set()  # unused here, in this pass
        self.hook = None
        self.divide_by: int | None = None  # fewer than all ranks, within join()
        self._handles = [
            p.register_post_accumulate_grad_hook(self._hook_of(i))
            for i, p in enumerate(self.parameters)
        ]

    def _make_buckets(self, order: list[int]) -> None:
        lists = buckets_of(self.parameters, order, self.limits)
        made = (_Bucket(numbers, self.parameters, self.dtype) for numbers in lists)
        self.buckets = list(made)
        self.home = {i: b for b in self.buckets for i in b.numbers}
        self.next_bucket = 0

    def _hook_of(self, number: int):
        def arrived(_parameter) -> None:
            if self.active:
                self._arrived(number)

        return arrived

    # Before the pass.

    def prepare(self, outputs: list) -> None:
        """Called after a forward pass whose gradients are to be averaged."""
        self.active = self.expecting = True
        self.arrivals.clear()
        self.next_bucket = 0
        self._has_callback = False
        for bucket in self.buckets:
            bucket.left = len(bucket.numbers)
            bucket.future = bucket.work = None
        self.seen: set[int] = set()
        self.missing = set()
        if self.find_unused or (self.static_graph and self.unused is None):
            self.unused = self._unreached(outputs)
        if (self.find_unused or self.static_graph) and self.unused:
            self.missing = set(self.unused)

    def _unreached(self, outputs: list) -> set[int]:
        """Numbers of the parameters to which no output leads."""
        numbers = {id(p): i for i, p in enumerate(self.parameters)}
        left = set(range(len(self.parameters)))
        todo = [t.grad_fn for t in outputs if t.grad_fn is not None]
        left -= {numbers[id(t)] for t in outputs if id(t) in numbers}
        seen = set(todo)
        while todo and left:
            node = todo.pop()
            variable = getattr(node, "variable", None)
            if variable is not None:
                left.discard(numbers.get(id(variable), -1))
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    todo.append(following)
        return left

    def check_finished(self) -> None:
        """Raises where the pass before left parameters without a gradient.

        Raises:
            RuntimeError: names them by number.
        """
        if not self.expecting or not self.active:
            return
        if not self.seen:
            return  # the forward pass had no backward pass
        numbers = sorted(set(range(len(self.parameters))) - self.seen - self.missing)
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before "
            "starting a new one. This error indicates that your module has parameters "
            "that were not used in producing loss. You can enable unused parameter "
            "detection by passing the keyword argument `find_unused_parameters=True` "
            "to `taeda.nn.parallel.DistributedDataParallel`, and by making sure all "
            "`forward` function outputs participate in calculating loss.\nParameter "
            f"indices which did not receive grad for rank {self.group.rank()}: "
            + " ".join(map(str, numbers))
        )

    # During the pass.

    def _arrived(self, number: int) -> None:
        if not self._has_callback:
            self._has_callback = True
            taeda._C._queue_callback(self._at_end)
            for unused in sorted(self.missing):
                self._ready(unused)
        if number in self.missing and number not in self.seen:
            raise RuntimeError(
                f"DistributedDataParallel: parameter {number} was taken to be unused, "
                "and has got a gradient; is the graph not the same in each iteration?"
            )
        self.arrivals.append(number)
        self._ready(number)

    def _ready(self, number: int) -> None:
        if number in self.seen:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: parameter {number} got "
                "two gradients in one backward pass"
            )
        self.seen.add(number)
        bucket = self.home[number]
        view = bucket.views[bucket.place_of(number)]
        grad = self.parameters[number].grad
        if number in self.missing or grad is None:
            view.zero_()
        elif grad.data_ptr() != view.data_ptr() or not view.numel():
            with taeda.no_grad():
                view.copy_(grad)
        bucket.left -= 1
        # All ranks send in the same order.
        while self.next_bucket < len(self.buckets):
            following = self.buckets[self.next_bucket]
            if following.left:
                return
            self._send(following)
            self.next_bucket += 1

    def _send(self, bucket: _Bucket) -> None:
        if self.hook is not None:
            state, function = self.hook
            shown = GradBucket(
                self.buckets.index(bucket),
                bucket.buffer,
                bucket.views,
                [self.parameters[i] for i in bucket.numbers],
                bucket is self.buckets[-1],
            )
            bucket.future = function(state, shown)
            return
        bucket.work = self._average(bucket.buffer)

    def _average(self, buffer):
        options = AllreduceOptions()
        options.asyncOp = True
        if buffer.is_complex():
            buffer = taeda.view_as_real(buffer)
        if self.group.name() == "gloo" and self.divide_by is None:
            options.reduceOp = ReduceOp.AVG
        else:
            # Ranks without inputs do not count; other backends may have no AVG.
            options.reduceOp = ReduceOp.SUM
            buffer.div_(self.divide_by or self.group.size())
        return self.group.allreduce([buffer], options)

    # At its end.

    def _at_end(self) -> None:
        if self.next_bucket < len(self.buckets):
            return  # the next forward pass says which are missing
        self.active = self.expecting = False
        used = self._used_anywhere()
        with taeda.no_grad():
            for bucket in self.buckets:
                self._receive(bucket, used)
        self.finished_once = True

    def _used_anywhere(self) -> set[int]:
        """Numbers of the parameters that some rank has used."""
        everything = set(range(len(self.parameters)))
        if not (self.find_unused or self.static_graph):
            return everything
        flags = taeda.ones(len(self.parameters), dtype=taeda.int32)
        flags[sorted(self.missing)] = 0
        flags = flags.to(own_device(self.group))
        self.group.allreduce([flags], AllreduceOptions()).wait()
        used = flags.tolist()
        return {i for i in everything if used[i]}

    def _receive(self, bucket: _Bucket, used: set[int]) -> None:
        if bucket.future is not None:
            self._take(bucket, bucket.future.wait())
        else:
            bucket.work.wait()
        for number, view in zip(bucket.numbers, bucket.views, strict=True):
            parameter = self.parameters[number]
            if number not in used:
                continue
            if self.views:
                parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = view.to(parameter.dtype, copy=True)
            else:
                parameter.grad.copy_(view)

    @staticmethod
    def _take(bucket: _Bucket, result) -> None:
        """A hook's result into the buffer."""
        if isinstance(result, (list, tuple)) and len(result) == len(bucket.views):
            if len(result) > 1 or result[0].shape != bucket.buffer.shape:
                for view, tensor in zip(bucket.views, result, strict=True):
                    view.copy_(tensor)
                return
        if isinstance(result, (list, tuple)):
            result = result[0]
        if result.data_ptr() != bucket.buffer.data_ptr():
            bucket.buffer.copy_(result.view_as(bucket.buffer))

    def rebuild(self) -> bool:
        """New buckets in the order of arrival at rank 0, once after the first pass."""
        if not (self.finished_once and self._is_first_order) or self.find_unused:
            return False
        self._is_first_order = False
        order = self.arrivals + sorted(set(range(len(self.parameters))) - self.seen)
        order += [i for i in range(len(self.parameters)) if i not in set(order)]
        from ._collectives import broadcast

        agreed = taeda.tensor(order, dtype=taeda.int64).to(own_device(self.group))

        broadcast(agreed, group=self.group, group_src=0)
        before = [b.numbers for b in self.buckets]
        after = buckets_of(self.parameters, agreed.tolist(), self.limits)
        if after == before:
            return False
        self._make_buckets(agreed.tolist())
        return True

    def shadow(self) -> None:
        """What a rank that has no more inputs does while others go on."""
        for bucket in self.buckets:
            with taeda.no_grad():
                bucket.buffer.zero_()
            self._send(bucket)
        for bucket in self.buckets:
            if bucket.future is not None:
                bucket.future.wait()
            else:
                bucket.work.wait()
        if self.find_unused or self.static_graph:
            self.missing = set(range(len(self.parameters)))
            self._used_anywhere()
        self.finished_once = True

    def remove_hooks(self) -> None:
        """Lets go of the parameters."""
        for handle in self._handles:
            handle.remove()
