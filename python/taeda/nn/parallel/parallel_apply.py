"""Calling several modules at once."""

from __future__ import annotations

import taeda

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """The first tensor in nested lists, tuples and dictionaries; None without any."""
    if isinstance(obj, taeda.Tensor):
        return obj
    if isinstance(obj, dict):
        obj = [part for item in obj.items() for part in item]
    if isinstance(obj, (list, tuple)):
        return next((t for t in map(get_a_var, obj) if t is not None), None)
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Call each module on its inputs, all at once, in threads.

    Args:
        modules, inputs: as many as one another.
        kwargs_tup: named arguments of each.
        devices: of each.

    Raises:
        Exception: the first that a module raised.
    """
    from concurrent.futures import ThreadPoolExecutor

    kwargs_tup = kwargs_tup or ({},) * len(modules)
    mode = taeda.is_grad_enabled()

    def work(module, args, kwargs):
        args = args if isinstance(args, (tuple, list)) else (args,)
        with taeda.set_grad_enabled(mode):
            return module(*args, **kwargs)

    jobs = list(zip(modules, inputs, kwargs_tup, strict=True))
    if len(jobs) == 1:
        return [work(*jobs[0])]
    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(work, *zip(*jobs, strict=True)))
