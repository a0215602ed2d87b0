"""A backward pass through several workers.

Note [Gradients between workers]
Each worker runs ordinary passes from what it has gradients of: the roots at the worker
that began, and tensors that it sent, whose gradients come back. A walk tells before
which leaves and which receipts each of these reaches. A receipt's gradients are sent
back once all that reach it have had theirs, so each transfer is answered once.

The answer to a message with gradients comes when all that it set off has ended. It
tells how many receipts still hold gradients at the workers that were visited; these
wait for tensors that were sent and never used. When the pass has ended otherwise, the
worker that began lets them go. What reaches them later would be sent behind: sums of
gradients may travel in parts. So no use of the results is needed for the pass to end.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, NamedTuple

import taeda

from ..rpc import _pool
from ..rpc._references import Later
from . import _contexts
from ._contexts import Context, Receipt

__all__ = ["run"]

_counts = itertools.count()
_ROOTS = -1


class _Reach(NamedTuple):
    """What a walk from some tensors finds."""

    nodes: set
    leaves: list
    receipts: list[Receipt]


class _Plan:
    """A backward pass at one worker.

    Args:
        context: it is of.
        roots: tensors that the pass begins with here.
    """

    def __init__(self, context: Context, roots: list) -> None:
        with context.lock:
            starts = dict(context.sends)
            tokens = {id(r.token): r for r in context.receipts.values()}
        if roots:
            starts[_ROOTS] = roots
        self.starts = starts
        self.reach = {key: _walk(tensors, tokens) for key, tensors in starts.items()}
        # Starts without their last gradients.
        self.open = set(starts)
        # How much has happened: the latest count of stuck receipts is the true one.
        self.events = 0

    def stuck(self) -> list[Receipt]:
        """Receipts that hold gradients."""
        receipts = {id(r): r for reach in self.reach.values() for r in reach.receipts}
        return [r for r in receipts.values() if any(g is not None for g in r.gradients)]


def _walk(tensors: list, tokens: dict[int, Receipt]) -> _Reach:
    leaves: dict[int, Any] = {}
    receipts: dict[int, Receipt] = {}
    nodes: set = set()
    todo = []
    for tensor in tensors:
        if tensor.grad_fn is None:
            leaves[id(tensor)] = tensor
        else:
            todo.append(tensor.grad_fn)
    while todo:
        node = todo.pop()
        if node in nodes:
            continue
        nodes.add(node)
        if type(node).__name__ != "AccumulateGrad":
            todo.extend(n for n, _ in node.next_functions if n is not None)
            continue
        leaf = node.variable
        if id(leaf) in tokens:
            receipts[id(leaf)] = tokens[id(leaf)]
        else:
            leaves[id(leaf)] = leaf
    return _Reach(nodes, list(leaves.values()), list(receipts.values()))


class _Told(NamedTuple):
    """What is told of a pass: worker -> (events, stuck receipts) there."""

    workers: dict[int, tuple[int, int]]

    def join(self, other) -> None:
        for worker, state in other.items():
            if state > self.workers.get(worker, (-1, 0)):
                self.workers[worker] = state


def run(number: int, roots: list, retain_graph: bool) -> None:
    """The backward pass of a context from roots at this worker.

    Raises:
        RuntimeError: a root has no gradient or is no scalar; a worker is lost.
    """
    context = _contexts.known(number)
    _check(roots)
    agent = _contexts._agent
    session = (agent.worker.id, next(_counts))
    told = _Told({})
    ones = [taeda.ones_like(root) for root in roots]
    pending = _advance(context, session, _ROOTS, ones, True, retain_graph, roots, told)
    _wait(pending, told)
    # Receipts that wait for tensors which nobody used.
    while any(stuck for _, stuck in told.workers.values()):
        pending = [
            agent.call(
                agent.directory.find(worker),
                _let_go,
                (number, session, retain_graph),
                record=False,
            )
            for worker, (_, stuck) in told.workers.items()
            if stuck
        ]
        _wait(pending, told)
    with context.lock:
        context.plans.pop(session, None)


def _wait(pending: list, told: _Told) -> None:
    for future in pending:
        told.join(future.wait())


def _check(roots: list) -> None:
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(
                f"a root of shape {list(root.shape)} is not a scalar, all roots "
                "need to be scalar"
            )


def _advance(context, session, start, gradients, last, retain_graph, roots, told):
    """Runs the pass of one start and sends what is complete; futures of the answers.

    Args:
        start: whose gradients have come.
        last: whether no more will come for it.
        told: gets this worker's state.
    """
    with _pool.lent():
        context.passes.acquire()
    try:
        plan = _plan_of(context, session, roots)
        if start not in plan.starts:
            raise RuntimeError(
                f"distributed autograd: context {context.number} sent no tensors by "
                f"the transfer {start}"
            )
        reach = plan.reach[start]
        others = plan.open - {start}
        shared = any(not reach.nodes.isdisjoint(plan.reach[k].nodes) for k in others)
        keep = retain_graph or not last or shared
        _local_pass(context, plan.starts[start], gradients, reach, keep)
        if last:
            plan.open.discard(start)
        waited_for = [plan.reach[key].receipts for key in plan.open]
        ready = [r for r in reach.receipts if not any(r in w for w in waited_for)]
        return _send_back(context, session, plan, ready, True, retain_graph, told)
    finally:
        context.passes.release()


def _plan_of(context: Context, session, roots: list) -> _Plan:
    with context.lock:
        plan = context.plans.get(session)
    if plan is None:
        plan = _Plan(context, roots)
        with context.lock:
            context.plans[session] = plan
    return plan


def _local_pass(context, outputs, gradients, reach: _Reach, keep: bool) -> None:
    """Adds gradients of leaves to the context and those of transfers to receipts."""
    given = [(o, g) for o, g in zip(outputs, gradients, strict=True) if g is not None]
    inputs = [*reach.leaves, *(receipt.token for receipt in reach.receipts)]
    if not given or not inputs:
        return
    results = taeda.autograd.grad(
        [o for o, _ in given], inputs, [g for _, g in given],
        retain_graph=keep, allow_unused=True,
    )  # fmt: skip
    with context.lock:
        for leaf, gradient in zip(reach.leaves, results, strict=False):
            if gradient is not None:
                _, before = context.gradients.get(id(leaf), (leaf, None))
                total = gradient if before is None else before + gradient
                context.gradients[id(leaf)] = (leaf, total)


def _send_back(context, session, plan, receipts, last, retain_graph, told) -> list:
    """Sends gradients of receipts to where the tensors came from."""
    agent = _contexts._agent
    futures = []
    for receipt in receipts:
        gradients = receipt.take()
        if gradients is not None:
            args = (context.number, session, receipt.transfer, gradients, last)
            futures.append(
                agent.call(
                    agent.directory.find(receipt.sender),
                    _gradients_came,
                    (*args, retain_graph),
                    record=False,
                )
            )
    plan.events += 1
    told.join({agent.worker.id: (plan.events, len(plan.stuck()))})
    return futures


def _gradients_came(number, session, transfer, gradients, last, retain_graph) -> Later:
    """Gradients of tensors that this worker sent."""
    context = _contexts.known(number)
    told = _Told({})
    pending = _advance(
        context, session, transfer, gradients, last, retain_graph, [], told
    )
    return Later(_all_told(pending, told))


def _let_go(number, session, retain_graph) -> Later:
    """Sends what receipts hold, though more could come."""
    context = _contexts.known(number)
    told = _Told({})
    with _pool.lent():
        context.passes.acquire()
    try:
        plan = _plan_of(context, session, [])
        pending = _send_back(
            context, session, plan, plan.stuck(), False, retain_graph, told
        )
    finally:
        context.passes.release()
    return Later(_all_told(pending, told))


def _all_told(pending: list, told: _Told):
    """A future of all that is told, done when every answer is there."""
    from ..rpc._call import CallFuture

    together = CallFuture(_contexts._agent.pool)
    left, lock = len(pending), threading.Lock()
    if not pending:
        together.set_result(told.workers)

    def one(future) -> None:
        nonlocal left
        try:
            answer = future.value()
        except BaseException as error:
            with lock:
                if not together.done():
                    together.set_exception(error)
            return
        with lock:
            told.join(answer)
            left -= 1
            if left == 0 and not together.done():
                together.set_result(told.workers)

    for future in pending:
        future.add_done_callback(one)
    return together
