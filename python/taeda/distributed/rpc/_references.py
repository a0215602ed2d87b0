"""Who refers to which value, so that an owner keeps it as long as somebody does.

Note [Counting remote references]
The owner of a value holds an `Entry`: the value and one fork for each reference at
another worker. A fork ends with a message of its holder, sent when the reference is
collected; the entry goes with its last fork, the value with the owner's own references.

A reference that travels begins a fork at the receiver. If the owner sends it, the fork
is entered at once. If another worker does, the receiver enters it at the owner and then
tells the sender, who keeps its own reference until then. So at any moment the owner
knows at least one fork for all that are on their way. A fork is ended only after the
owner has confirmed that it was entered.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from typing import Any, NamedTuple

from ._call import CallFuture

__all__ = ["Entry", "Fork", "GloballyUniqueId", "Later", "References"]


class GloballyUniqueId(NamedTuple):
    """A number that no other worker gives.

    Args:
        created_on: the worker that gave it.
        local_id: counts there.
    """

    created_on: int
    local_id: int


class Later(NamedTuple):
    """What a served function returns whose result comes with a future."""

    future: Any


class Entry:
    """A value at its owner; `forks` has the holder of each."""

    def __init__(self, number: GloballyUniqueId, pool) -> None:
        self.number = number
        self.value = CallFuture(pool)
        self.forks: dict[GloballyUniqueId, int] = {}


class Fork:
    """A reference at a worker that is not the owner.

    `confirmed` is done when the owner knows it, with the error if it could not be told.
    """

    def __init__(self, references, number, owner: int, fork: GloballyUniqueId) -> None:
        self.number, self.owner, self.fork = number, owner, fork
        self.confirmed = CallFuture(references._agent.pool)
        self._references = references
        self._ended = False

    def end(self) -> None:
        """Tells the owner, once; in the clock's thread or that of `shutdown`."""
        if not self._ended:
            self._ended = True
            self.confirmed.add_done_callback(self._tell)

    def _tell(self, confirmed) -> None:
        with contextlib.suppress(Exception):
            confirmed.value()
            self._references._call(self.owner, _end_fork, self.number, self.fork)


class References:
    """All entries and forks of an agent."""

    def __init__(self, agent) -> None:
        self._agent = agent
        self._numbers = itertools.count()
        # Guards the dictionaries and the forks of entries.
        self._lock = threading.RLock()
        self._entries: dict[GloballyUniqueId, Entry] = {}
        # References kept until a receiver says that the owner knows its fork.
        self._children: dict[GloballyUniqueId, Any] = {}
        self._forks: weakref.WeakSet[Fork] = weakref.WeakSet()

    def new_number(self) -> GloballyUniqueId:
        return GloballyUniqueId(self._agent.worker.id, next(self._numbers))

    def _call(self, to: int, function, *args) -> CallFuture:
        worker = self._agent.directory.find(to)
        return self._agent.call(worker, function, args, record=False)

    # At the owner

    def entry(self, number: GloballyUniqueId) -> Entry:
        """The entry of a number; made if the call that creates it is still to come."""
        with self._lock:
            if number not in self._entries:
                self._entries[number] = Entry(number, self._agent.pool)
            return self._entries[number]

    def add_fork(self, number, fork, holder: int) -> None:
        with self._lock:
            self.entry(number).forks[fork] = holder

    def end_fork(self, number, fork) -> None:
        with self._lock:
            entry = self._entries.get(number)
            if entry is None:
                return
            entry.forks.pop(fork, None)
            if not entry.forks:
                del self._entries[number]

    def created(self, ids: tuple, holder: int) -> None:
        """A call came whose result other workers refer to."""
        number, fork = (GloballyUniqueId(*i) for i in ids)
        self.add_fork(number, fork, holder)

    def fulfil(self, ids, value) -> None:
        self._finish(ids, lambda entry: entry.value.set_result(value))

    def fail(self, ids, error) -> None:
        self._finish(ids, lambda entry: entry.value.set_exception(error))

    def _finish(self, ids, how) -> None:
        number = GloballyUniqueId(*ids)
        with self._lock:
            entry = self._entries.get(number)
        if entry is not None:
            how(entry)
        # The fork of a call that the owner sent to itself.
        self.end_fork(number, number)

    def lost(self, worker: int) -> None:
        """Ends the forks of a worker that died."""
        with self._lock:
            ended = [
                (number, fork)
                for number, entry in self._entries.items()
                for fork, holder in entry.forks.items()
                if holder == worker
            ]
            for number, fork in ended:
                self.end_fork(number, fork)

    # At all workers

    def new_fork(self, number, owner: int, fork) -> Fork:
        made = Fork(self, number, owner, fork)
        with self._lock:
            self._forks.add(made)
        return made

    def send(self, reference, to: int) -> tuple:
        """The state that a reference travels with."""
        number, owner = reference._number, reference._owner.id
        fork = self.new_number()
        mine = owner == self._agent.worker.id
        entered = mine and to != owner
        with self._lock:
            if mine:
                self._entries[number] = reference._entry
                reference._entry.forks[fork] = to
            if not entered:
                self._children[fork] = reference
        return tuple(number), owner, tuple(fork), entered

    def unsent(self, number, owner, fork, entered) -> None:
        """Undoes `send` for a message that could not be made."""
        self.accepted(fork)
        self.end_fork(GloballyUniqueId(*number), GloballyUniqueId(*fork))

    def accepted(self, fork) -> None:
        """The receiver of a reference has it, and the owner knows."""
        fork = GloballyUniqueId(*fork)
        with self._lock:
            reference = self._children.pop(fork, None)
            if reference is not None and reference._entry is not None:
                self.end_fork(reference._number, fork)
        del reference  # Outside of the lock: its finalizer may be ours.

    def receive(self, sender: int, number, owner: int, fork, entered: bool):
        """The reference of a message."""
        from ._rref import RRef

        number, fork = GloballyUniqueId(*number), GloballyUniqueId(*fork)
        worker = self._agent.directory.find(owner)
        if owner == self._agent.worker.id:
            reference = RRef._of(worker, number, entry=self.entry(number))
            self._agent.clock.later(lambda: self._call(sender, _accept, fork))
            return reference
        made = self.new_fork(number, owner, fork)
        if entered:
            made.confirmed.set_result(None)
        else:
            self._agent.clock.later(lambda: self._enter(sender, made))
        return RRef._of(worker, number, fork=made)

    def _enter(self, sender: int, made: Fork) -> None:
        holder = self._agent.worker.id
        told = self._call(made.owner, _enter_fork, made.number, made.fork, holder)

        def confirm(told) -> None:
            follow(told, made.confirmed)
            self._call(sender, _accept, made.fork)

        told.add_done_callback(confirm)

    # The end

    def end_all(self) -> None:
        """Ends every fork of this worker, as if its references were collected."""
        with self._lock:
            forks = list(self._forks)
        for fork in forks:
            fork.end()

    def debug_info(self) -> dict[str, str]:
        with self._lock:
            forks = sum(len(entry.forks) for entry in self._entries.values())
            pending = sum(not fork.confirmed.done() for fork in self._forks)
            return {
                "num_owner_rrefs": str(len(self._entries)),
                "num_forks": str(forks),
                "num_pending_users": str(pending),
                "num_pending_futures": "0",
            }


def follow(done, following) -> None:
    """Ends a future as another ended."""
    try:
        value = done.value()
    except BaseException as error:
        following.set_exception(error)
    else:
        following.set_result(value)


def _mine() -> References:
    from . import api

    return api._agent().references


def _enter_fork(number, fork, holder: int) -> None:
    _mine().add_fork(number, fork, holder)


def _end_fork(number, fork) -> None:
    _mine().end_fork(number, fork)


def _accept(fork) -> None:
    _mine().accepted(fork)
