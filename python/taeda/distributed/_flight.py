"""What all ranks say of themselves when one of them fails, in one report.

Note [Gathering the flight record]
A rank whose collective fails tells in the store what it called last. The first that
does so for its group asks all others, waits a moment for their answers, writes one
report of them, which goes to the log and into the exceptions of all. A rank that waits,
computes or hangs cannot answer itself: a thread of every process looks into the store
for questions, and says also at which line the program's main thread is. Who does not
answer has ended, is stopped or cut off, or hangs with Python's lock held.

Nothing here may hang or take long, since an exception waits for it: the store is used
by threads of their own, over a connection of their own, and is waited for `_LONGEST`
at most. A group is reported once in a while; errors that follow come without.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
import time
from typing import Any

from taeda import _distributed as native

from ._flight_report import explain
from ._types import PrefixStore
from ._world import _world

__all__ = ["added", "begin", "end", "report"]

_log = logging.getLogger("taeda.distributed")

# Seconds between two looks for questions.
_PAUSE = 0.5
# Seconds for which answers are waited for, and for which the report is.
_ANSWERS, _REPORT, _LONGEST = 1.5, 2.5, 3.5
# Seconds in which the ranks of a group mean the same failure.
_SAME = 10.0
# Seconds in which a group is reported once by a process.
_ONCE = 60.0
# Calls of a group that a rank tells.
_CALLS = 16


def _is_program(file: str) -> bool:
    """Whether a file is the program's, neither this package's nor Python's."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    python = os.path.dirname(os.__file__)
    if file.startswith("<") or file.startswith(own):
        return False
    return not file.startswith(python) or "site-packages" in file


def _line() -> str:
    """Where the program's main thread is, "train.py:12 in step"."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost = frame
    while frame is not None and not _is_program(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None:
        return "no line"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"


def _standing(question: int) -> str:
    """This rank's last calls of each group, as text."""
    groups: dict[str, list] = {}
    for entry in native.flight_record():
        groups.setdefault(entry["pg_name"], []).append(entry)
    told = {name: calls[-_CALLS:] for name, calls in groups.items()}
    return json.dumps({"question": question, "line": _line(), "groups": told})


class _Witness:
    """Answers questions for this process.

    Args:
        store: where the ranks of the default group met.
        rank: this process's number in it.
    """

    def __init__(self, store, rank: int) -> None:
        self._parent, self.rank = store, rank
        self._stop = threading.Event()
        # Group -> when it was reported here; changed by one call under the GIL.
        self._reported: dict[str, float] = {}
        self._thread = threading.Thread(
            target=self._serve, name="taeda-flight", daemon=True
        )
        self._thread.start()
        atexit.register(self.stop)

    def _store(self):
        """A connection of its own: others wait in the program's."""
        return PrefixStore("flight/", self._parent.clone())

    def stop(self) -> None:
        """Ends the thread, unless the store does not answer it."""
        self._stop.set()
        self._thread.join(0.2)
        atexit.unregister(self.stop)

    def _serve(self) -> None:
        try:
            store, answered = self._store(), 0
            while not self._stop.wait(_PAUSE):
                if not store.check(["asked"]):
                    continue
                asked = int(store.get("asked"))
                if asked != answered:
                    answered = asked
                    store.set(f"answer/{self.rank}", _standing(asked))
        except Exception as error:
            # The store has gone, and with it whoever could ask.
            _log.debug("flight record: rank %d no longer answers: %s", self.rank, error)

    def report(self, group: str, ranks: list[int]) -> str:
        """What the ranks of a group say; nothing where they were asked just now."""
        now = time.monotonic()
        if now - self._reported.get(group, -_ONCE) < _ONCE:
            return ""
        self._reported[group] = now
        found: list[str] = []
        thread = threading.Thread(
            target=lambda: found.append(self._gather(group, ranks)), daemon=True
        )
        thread.start()
        thread.join(_LONGEST)
        return found[0] if found else "the store does not answer, no rank was asked"

    def _gather(self, group: str, ranks: list[int]) -> str:
        try:
            store = self._store()
            key, gathers = self._claim(store, group)
            store.set(f"{key}/stands/{self.rank}", _standing(0))
            if gathers:
                question, limit = store.add("asked", 1), _ANSWERS
            elif text := self._read(store, key):
                return text
            else:
                # Who gathers has ended or is late: what was answered has to do.
                question, limit = store.add("asked", 0), 0.0
            answers = self._answers(store, key, ranks, question, limit)
            text = explain(group, ranks, self.rank, answers)
            store.set(f"{key}/text", text)
            _log.error(text)
            return text
        except Exception as error:
            return f"the ranks cannot be asked, the store is lost ({error})"

    def _claim(self, store, group: str) -> tuple[str, bool]:
        """The place of the report, and whether this rank gathers it."""
        count = 0
        while True:
            key = f"report/{group}/{count}"
            mine = f"{self.rank} {time.time()}"
            by = store.compare_set(f"{key}/by", "", mine).decode()
            if by == mine:
                return key, True
            if time.time() - float(by.split()[1]) < _SAME:
                return key, False
            count += 1

    def _read(self, store, key: str) -> str:
        """The report that another rank gathers; nothing where it does not come."""
        end = time.monotonic() + _REPORT
        while not store.check([f"{key}/text"]):
            if time.monotonic() > end:
                return ""
            time.sleep(0.02)
        return store.get(f"{key}/text").decode()

    def _answers(
        self, store, key: str, ranks: list[int], question: int, limit: float
    ) -> dict[int, Any]:
        """The answers of those who give one within `limit` seconds."""
        answers: dict[int, Any] = {}
        end = time.monotonic() + limit
        while True:
            for rank in ranks:
                places = f"{key}/stands/{rank}", f"answer/{rank}"
                for place in places:
                    if rank in answers or not store.check([place]):
                        continue
                    told = json.loads(store.get(place))
                    if place == places[0] or told["question"] >= question:
                        answers[rank] = told
            if len(answers) == len(ranks) or time.monotonic() > end:
                return answers
            time.sleep(0.02)


# Of this process, as long as it has a default group; replaced as a whole.
_witness: _Witness | None = None


def begin(store, rank: int) -> None:
    """Answers questions of other ranks from now on, and asks them on a failure."""
    global _witness
    end()
    if os.environ.get("TAEDA_FLIGHT_REPORT", "1") != "0":
        _witness = _Witness(store, rank)
        native.set_reporter(added)


def end() -> None:
    """Answers no more."""
    global _witness
    witness, _witness = _witness, None
    if witness is not None:
        witness.stop()


def report(group: str) -> str:
    """What the ranks of a group say of themselves, gathered now.

    Takes some seconds at most. The text is empty where there is nobody to ask, or where
    they were asked by this process within the last minute.

    Args:
        group: its name.
    """
    witness = _witness
    pg = next((pg for pg, name in _world.pg_names.items() if name == group), None)
    if witness is None or pg is None:
        return ""
    return witness.report(group, list(_world.pg_group_ranks[pg]))


def added(group: str) -> str:
    """The same behind an error's text."""
    text = report(group)
    return f"\n{text}" if text else ""
