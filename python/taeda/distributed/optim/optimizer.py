"""An optimizer over parameters at several workers."""

from __future__ import annotations

import threading

from taeda.distributed import autograd, rpc

__all__ = ["DistributedOptimizer"]


class _LocalOptimizer:
    """The part of an optimizer at one worker.

    Args:
        optimizer_class: of the parameters here.
        parameters: references to them.
    """

    # One step at a time at a worker: optimizers read `.grad`, which all steps set.
    _lock = threading.Lock()

    def __init__(self, optimizer_class, parameters, *args, **kwargs) -> None:
        self._parameters = [rref.local_value() for rref in parameters]
        self.optimizer = optimizer_class(self._parameters, *args, **kwargs)

    def step(self, context_id: int) -> None:
        gradients = autograd.get_gradients(context_id)
        with self._lock:
            for parameter in self._parameters:
                parameter.grad = gradients.get(parameter)
            self.optimizer.step()


class DistributedOptimizer:
    """Gives each worker an optimizer for its parameters and lets all step at once.

    Gradients are those of a context of distributed autograd. Steps of several programs
    over the same parameters follow each other at each worker, in any order.

    Args:
        optimizer_class: of `taeda.optim`.
        params_rref: references to the parameters.
        args: what `optimizer_class` is given besides.
        kwargs: and by name.

    Raises:
        Exception: what `optimizer_class` raises at a worker.

    Example::

        with dist_autograd.context() as context_id:
            loss = model(x).sum()
            dist_autograd.backward(context_id, [loss])
            DistributedOptimizer(optim.SGD, rrefs, lr=0.1).step(context_id)
    """

    def __init__(self, optimizer_class, params_rref, *args, **kwargs) -> None:
        parameters: dict = {}
        for rref in params_rref:
            parameters.setdefault(rref.owner(), []).append(rref)
        made = [
            rpc.rpc_async(worker, _make, args=(optimizer_class, rrefs, args, kwargs))
            for worker, rrefs in parameters.items()
        ]
        self.remote_optimizers = _all(made)

    def step(self, context_id: int) -> None:
        """One step of each worker's optimizer, with a context's gradients.

        Args:
            context_id: of a `distributed.autograd.context` that is still open.

        Raises:
            RuntimeError: no such context, or a worker is lost.
        """
        _all(
            [
                optimizer.rpc_async().step(context_id)
                for optimizer in self.remote_optimizers
            ]
        )


def _make(optimizer_class, parameters, args, kwargs):
    return rpc.RRef(_LocalOptimizer(optimizer_class, parameters, *args, **kwargs))


def _all(futures: list) -> list:
    """The results, once all are there; the last failure is raised."""
    results, failure = [], None
    for future in futures:
        try:
            results.append(future.wait())
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure
    return results
