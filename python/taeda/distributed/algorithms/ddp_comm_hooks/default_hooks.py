"""Averages of whole buckets, as they are or in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda.futures import Future

from ... import group as _groups
from ..._collectives import all_reduce
from ..._reducer import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _average(group, tensor) -> Future:
    pg = group if group is not None else _groups.WORLD
    tensor.div_(pg.size())
    future = all_reduce(tensor, group=pg, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def allreduce_hook(process_group, bucket: GradBucket) -> Future:
    """The average over ranks, what is done without a hook.

    Args:
        process_group: the ranks; all if None.
        bucket: the gradients.
    """
    return _average(process_group, bucket.buffer())


def _compressed(process_group, bucket: GradBucket, dtype) -> Future:
    buffer = bucket.buffer()

    def back(done: Future):
        buffer.copy_(done.value())
        return buffer

    return _average(process_group, buffer.to(dtype)).then(back)


def fp16_compress_hook(process_group, bucket: GradBucket) -> Future:
    """The average, sent as float16.

    Args:
        process_group: the ranks; all if None.
        bucket: the gradients.
    """
    return _compressed(process_group, bucket, taeda.float16)


def bf16_compress_hook(process_group, bucket: GradBucket) -> Future:
    """The average, sent as bfloat16.

    Args:
        process_group: the ranks; all if None.
        bucket: the gradients.
    """
    return _compressed(process_group, bucket, taeda.bfloat16)


Hook = Callable[[Any, GradBucket], Future]


def _wrapped(hook: Hook, dtype, name: str) -> Hook:
    def compress(state, bucket: GradBucket) -> Future:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))

        def back(done: Future):
            result = done.value()
            whole.copy_(result[0] if isinstance(result, list) else result)
            return whole

        return hook(state, bucket).then(back)

    compress.__name__ = name
    return compress


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook whose bucket is float16; its result becomes the bucket's dtype again."""
    return _wrapped(hook, taeda.float16, "fp16_compress_wrapper_hook")


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook whose bucket is bfloat16; its result becomes the bucket's dtype again."""
    return _wrapped(hook, taeda.bfloat16, "bf16_compress_wrapper_hook")
