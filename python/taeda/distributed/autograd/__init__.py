"""Gradients of computations that remote calls spread over workers."""

from __future__ import annotations

from . import _contexts
from ._contexts import Context as DistAutogradContext  # noqa: F401

__all__ = ["backward", "context", "get_gradients"]


def is_available() -> bool:
    """Whether the build has distributed autograd."""
    from .. import is_available

    return is_available()


class context:
    """Records the remote calls inside, forward passes that span workers.

    Gradients gather in the context and not in `.grad`, so that passes of several
    programs over the same parameters do not mix. On leaving, all workers drop it.

    Returns:
        On entering, its number.

    Raises:
        RuntimeError: the thread is inside one, or `init_rpc` was not called.

    Example::

        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync("worker1", taeda.mul, args=(x, x)).sum()
            dist_autograd.backward(context_id, [loss])
            gradient = dist_autograd.get_gradients(context_id)[x]
    """

    def __enter__(self) -> int:
        self._context = _contexts.new()
        return self._context.number

    def __exit__(self, *error) -> None:
        _contexts.leave()
        _release(self._context.number)


def backward(context_id: int, roots: list, retain_graph: bool = False) -> None:
    """Gradients of the roots' sum, at every worker that took part.

    They are added up in the context; `get_gradients` has those of this worker.

    Args:
        context_id: of a `context`.
        roots: tensors of one number, which require gradients.
        retain_graph: keeps what a second pass needs.

    Raises:
        RuntimeError: no such context; roots without gradients; a lost worker, by name.
    """
    from ._backward import run

    run(context_id, roots, retain_graph)


def get_gradients(context_id: int) -> dict:
    """The gradients of a context at this worker: leaf -> gradient.

    Raises:
        RuntimeError: this worker has no part in the context.
    """
    found = _contexts.known(context_id)
    with found.lock:
        return dict(found.gradients.values())


def _release(number: int) -> None:
    """Drops a context here and where it went from here."""
    agent = _contexts._agent
    for worker in _contexts.release(number):
        if agent is not None and worker != agent.worker.id and not agent.closed:
            agent.call(agent.directory.find(worker), _release, (number,), record=False)


def _current_context():
    return _contexts.current()


def _retrieve_context(context_id: int):
    return _contexts.known(context_id)


def _is_valid_context(context_id: int) -> bool:
    return context_id in _contexts._contexts


def _get_debug_info() -> dict[str, str]:
    return {"num_autograd_contexts": str(len(_contexts._contexts))}
