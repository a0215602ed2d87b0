"""Contexts: what each backward pass over several workers needs to know.

A context has one number at all workers; each keeps its own part of it here.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator

from taeda.autograd import Function

__all__ = ["Context", "begin", "current", "end", "of", "within"]

# Numbers of contexts and of transfers: the worker above, a count below.
_WORKER_SHIFT = 48

# The number of the running thread's context (`number`).
_this = threading.local()
_lock = threading.Lock()
# Guarded by _lock: the contexts of this worker, and its agent.
_contexts: dict[int, Context] = {}
_agent = None
_counts = itertools.count()


class Receipt:
    """Tensors that came from another worker, where their gradients go back to.

    Args:
        sender: the worker's number.
        transfer: the number of the transfer.
        tensors: as they came, without gradients.
    """

    def __init__(self, sender: int, transfer: int, tensors: list) -> None:
        import taeda

        self.sender, self.transfer = sender, transfer
        self.tensors: list = tensors
        # A leaf below them, by which a backward pass is told to come here.
        self.token = taeda.zeros((), requires_grad=True)
        # Sums of gradients that have not been sent; None where none came.
        self.gradients: list = [None] * len(tensors)

    def add(self, gradients) -> None:
        """Adds gradients; within a pass, of which each context runs one at a time."""
        for index, gradient in enumerate(gradients):
            if gradient is not None:
                before = self.gradients[index]
                total = gradient if before is None else before + gradient
                self.gradients[index] = total

    def take(self) -> list | None:
        """The gradients that are to be sent, or None."""
        taken, self.gradients = self.gradients, [None] * len(self.gradients)
        return taken if any(g is not None for g in taken) else None


class RecvRpc(Function):
    """Hands out what came; its backward collects gradients in the receipt."""

    @staticmethod
    def forward(ctx, token, receipt):
        ctx.set_materialize_grads(False)
        ctx.receipt = receipt
        given, receipt.tensors = receipt.tensors, []
        return tuple(given)

    @staticmethod
    def backward(ctx, *gradients):
        ctx.receipt.add(gradients)
        return None, None


class SendRpc(Function):
    """What leaves, apart from the tensor: writing to that one later changes nothing."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.set_materialize_grads(False)
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


class Context:
    """This worker's part of a context.

    Args:
        number: of the context.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        # Guards the dictionaries; `passes` keeps backward passes apart.
        self.lock = threading.Lock()
        self.passes = threading.RLock()
        self.sends: dict[int, list] = {}
        self.receipts: dict[tuple[int, int], Receipt] = {}
        # id -> the leaf and its gradient.
        self.gradients: dict[int, tuple] = {}
        self.workers: set[int] = set()
        # Number of a backward pass -> its plan at this worker.
        self.plans: dict = {}

    def _context_id(self) -> int:
        return self.number

    def _known_worker_ids(self) -> set[int]:
        return set(self.workers)

    def _send_functions(self) -> dict[int, list]:
        return dict(self.sends)

    def _recv_functions(self) -> dict[int, Receipt]:
        return {key[1]: receipt for key, receipt in self.receipts.items()}

    def knows(self, worker: int) -> None:
        with self.lock:
            self.workers.add(worker)

    def sent(self, to: int, tensors: list) -> int | None:
        """Keeps tensors that leave, for their gradients; the transfer's number."""
        import taeda

        with self.lock:
            self.workers.add(to)
            if not tensors:
                return None
            transfer = next(_counts) | _me() << _WORKER_SHIFT
            with taeda.enable_grad():
                self.sends[transfer] = list(SendRpc.apply(*tensors))
            return transfer

    def received(self, sender: int, transfer: int, tensors: list) -> list:
        """The tensors that came, as parts of this context."""
        import taeda

        receipt = Receipt(sender, transfer, tensors)
        with self.lock:
            self.receipts[sender, transfer] = receipt
        with taeda.enable_grad():
            return list(RecvRpc.apply(receipt.token, receipt))


def _me() -> int:
    if _agent is None:
        raise RuntimeError(
            "Need to initialize distributed autograd: call rpc.init_rpc first"
        )
    return _agent.worker.id


def begin(agent) -> None:
    """Contexts can be made from now on."""
    global _agent
    with _lock:
        _agent = agent


def end() -> None:
    """Drops all contexts."""
    global _agent
    with _lock:
        _agent = None
        _contexts.clear()


def new() -> Context:
    """A context that begins at this worker, in the running thread.

    Raises:
        RuntimeError: the thread is in one.
    """
    before = getattr(_this, "number", None)
    if before is not None:
        raise RuntimeError(
            f"Already have autograd context id for this thread: {before}"
        )
    number = next(_counts) | _me() << _WORKER_SHIFT
    with _lock:
        _contexts[number] = made = Context(number)
    _this.number = number
    return made


def current() -> Context | None:
    """The running thread's context."""
    number = getattr(_this, "number", None)
    return None if number is None else of(number)


def leave() -> None:
    """The running thread has no context from now on."""
    _this.number = None


@contextlib.contextmanager
def within(number: int | None) -> Iterator[None]:
    """Runs what is inside in a context."""
    before = getattr(_this, "number", None)
    _this.number = number
    try:
        yield
    finally:
        _this.number = before


def of(number: int) -> Context:
    """The context of a number; one of another worker is made at its first sight.

    Raises:
        RuntimeError: it began at this worker and has ended.
    """
    with _lock:
        found = _contexts.get(number)
        if found is None:
            if number >> _WORKER_SHIFT == _me():
                raise _unknown(number)
            _contexts[number] = found = Context(number)
        return found


def known(number: int) -> Context:
    """The context of a number.

    Raises:
        RuntimeError: this worker has no part in it.
    """
    with _lock:
        if number not in _contexts:
            raise _unknown(number)
        return _contexts[number]


def release(number: int) -> set[int]:
    """Drops a context; the workers that have parts of it."""
    with _lock:
        dropped = _contexts.pop(number, None)
    return set() if dropped is None else dropped.workers


def _unknown(number: int) -> RuntimeError:
    return RuntimeError(f"Could not find autograd context with id: {number}")
