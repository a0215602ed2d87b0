"""References to values at other workers."""

from __future__ import annotations

import types
from typing import Any

from . import api
from ._references import Entry, Fork, GloballyUniqueId, Later, follow

__all__ = ["RRef"]

_UNSET = -1.0


class RRef:
    """A reference to a value that a worker owns; it can be passed in remote calls.

    Made of a value, this worker is the owner; `rpc.remote` makes references to results
    at others. The owner keeps the value while a reference to it lives at any worker.

    Args:
        value: what is referred to.
        type_hint: taken for PyTorch's sake; types are those of the values.

    Example::

        rref = rpc.remote("worker1", taeda.add, args=(taeda.ones(2), 3))
        rref.to_here()  # tensor([4., 4.])
    """

    _number: GloballyUniqueId
    _entry: Entry | None
    _fork: Fork | None

    # For annotations: `RRef[Tensor]`.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        agent = api._agent()
        self._agent, self._owner = agent, agent.worker
        self._number = agent.references.new_number()
        self._entry = Entry(self._number, agent.pool)
        self._entry.value.set_result(value)
        self._fork = None

    @classmethod
    def _of(cls, owner, number, entry=None, fork=None) -> RRef:
        made = cls.__new__(cls)
        made._agent, made._owner, made._number = api._agent(), owner, number
        made._entry, made._fork = entry, fork
        return made

    def __del__(self) -> None:
        fork = getattr(self, "_fork", None)
        if fork is not None:
            self._agent.clock.later(fork.end)

    def __reduce_ex__(self, protocol):
        raise RuntimeError(
            "Can not pickle rref in python pickler, rref can only be pickled when "
            "using RPC"
        )

    def __repr__(self) -> str:
        if self._fork is None:
            return f"OwnerRRef({self._number})"
        return f"UserRRef(RRefId = {self._number}, ForkId = {self._fork.fork})"

    def _rpc_fork(self, agent, to: int) -> tuple:
        return agent.references.send(self, to)

    def owner(self):
        """The worker that has the value, a `WorkerInfo`."""
        return self._owner

    def owner_name(self) -> str:
        """The name of the worker that has the value."""
        return self._owner.name

    def is_owner(self) -> bool:
        """Whether this worker has the value."""
        return self._fork is None

    def confirmed_by_owner(self) -> bool:
        """Whether the owner knows of this reference."""
        return self._fork is None or self._fork.confirmed.done()

    def local_value(self) -> Any:
        """The value, at its owner; waits until it is there.

        Raises:
            RuntimeError: another worker is the owner.
        """
        if self._entry is None:
            raise RuntimeError(
                f"For UserRRef(rref_id={self._number}, fork_id={self._fork.fork}), "
                f"can't call localValue() on user {self._agent.worker}. Call it on "
                f"owner {self._owner}"
            )
        return self._entry.value.wait()

    def to_here(self, timeout: float = _UNSET) -> Any:
        """The value, or a copy of it from its owner.

        Args:
            timeout: seconds; negative for the default of RPC, 0 for no limit.

        Raises:
            RuntimeError: the owner did not answer in time, or is lost.
            Exception: what the function raised that was to make the value.
        """
        if self._entry is not None:
            return self._entry.value.wait()
        return self._fetch(_value_of, timeout).wait()

    def _fetch(self, function, timeout: float):
        self._raise_failure()
        number = tuple(self._number)
        return self._agent.call(self._owner, function, (number,), timeout=timeout)

    def _raise_failure(self) -> None:
        """Raises what kept the owner from knowing this reference."""
        confirmed = self._fork.confirmed if self._fork is not None else None
        if confirmed is not None and confirmed.done():
            confirmed.value()

    def _get_type(self, timeout: float = _UNSET, blocking: bool = True):
        """The value's class; a future of it unless `blocking`."""
        if self._entry is not None:
            future = self._entry.value.then(lambda f: type(f.value()))
        else:
            future = self._fetch(_type_of, timeout)
        return future.wait() if blocking else future

    def _get_future(self):
        """Done when the owner knows this reference."""
        return self._entry.value if self._fork is None else self._fork.confirmed

    def rpc_sync(self, timeout: float = _UNSET):
        """The value's methods, called at the owner with their results brought here.

        Example::

            rref.rpc_sync().size()
        """
        return _Methods(self, api.rpc_sync, timeout)

    def rpc_async(self, timeout: float = _UNSET):
        """The value's methods, called at the owner, with futures of their results."""
        return _Methods(self, api.rpc_async, timeout)

    def remote(self, timeout: float = _UNSET):
        """The value's methods, called at the owner; references to their results."""
        return _Methods(self, api.remote, timeout)

    def backward(
        self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False
    ) -> None:
        """Runs the backward pass from the value, a tensor of one number, at its owner.

        Args:
            dist_autograd_ctx_id: a context of distributed autograd; -1 for the owner's
                ordinary autograd.
            retain_graph: keeps what a second backward pass needs.
        """
        args = (dist_autograd_ctx_id, retain_graph)
        if self._entry is None:
            api.rpc_sync(self._owner, _backward, args=(self, *args))
        else:
            _backward(self, *args)


def created_by_call(agent, to, function, args, kwargs, timeout: float) -> RRef:
    """A reference to the result of a call that is sent now."""
    from ._wire import REMOTE

    references = agent.references
    number = references.new_number()
    if to.id == agent.worker.id:
        made = RRef._of(to, number, entry=references.entry(number))
        extra, confirmed = (tuple(number), tuple(number)), None
        references.add_fork(number, number, to.id)
    else:
        fork = references.new_fork(number, to.id, references.new_number())
        made = RRef._of(to, number, fork=fork)
        extra, confirmed = (tuple(number), tuple(fork.fork)), fork.confirmed
    future = agent.call(to, function, args, kwargs, timeout, kind=REMOTE, extra=extra)
    if confirmed is not None:
        future.add_done_callback(lambda future: follow(future, confirmed))
    return made


class _Methods:
    """The methods of a reference's value, called in one of three ways."""

    def __init__(self, rref: RRef, way, timeout: float) -> None:
        self._rref, self._way, self._timeout = rref, way, timeout

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__") and name != "__call__":
            raise AttributeError(name)

        def call(*args, **kwargs):
            given = (self._rref, name, args, kwargs)
            owner = self._rref.owner()
            return self._way(owner, _method, args=given, timeout=self._timeout)

        return call


def _method(rref: RRef, name: str, args: tuple, kwargs: dict) -> Any:
    method = getattr(rref.local_value(), name)
    result = method(*args, **kwargs)
    if getattr(method, "_wrapped_async_rpc_function", None) is not None:
        return Later(result)
    return result


def _value_of(number) -> Any:
    return Later(_entry_of(number).value)


def _type_of(number) -> Any:
    return Later(_entry_of(number).value.then(lambda future: type(future.value())))


def _entry_of(number) -> Entry:
    return api._agent().references.entry(GloballyUniqueId(*number))


def _backward(rref: RRef, context: int, retain_graph: bool) -> None:
    import taeda

    from .. import autograd

    value = rref.local_value()
    if not isinstance(value, taeda.Tensor):
        raise RuntimeError(
            f"RRef.backward: the value is a {type(value).__name__}; only tensors have "
            "gradients"
        )
    if context == -1:
        value.backward(retain_graph=retain_graph)
    else:
        autograd.backward(context, [value], retain_graph)
