"""A process beside each rank that writes checkpoints.

It is started at the first save of `AsyncCheckpointerType.PROCESS` and ends with its
rank. The processes of a group make a group of their own. A state goes to it through a
pipe as bytes of `pickle`: both ends are of this program, and trust each other.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from datetime import timedelta
from threading import Lock
from typing import Any

__all__ = ["Helper"]

_MAIN = "from taeda.distributed.checkpoint._helper import serve; serve()"


class Helper:
    """This rank's process for a group, or for this rank alone.

    Args:
        group: of the ranks; None means alone.
    """

    _lock = Lock()  # guards `_known`
    _known: dict = {}  # id of a group -> (group, Helper)

    @classmethod
    def of(cls, group: Any) -> Helper:
        """The one of a group; all its ranks call this at the first time."""
        with cls._lock:
            kept, helper = cls._known.get(id(group), (None, None))
            if helper is None or kept is not group:
                helper = cls(group)
                cls._known[id(group)] = group, helper
            return helper

    def __init__(self, group: Any) -> None:
        self.lock = Lock()  # one save at a time
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        path = os.pathsep.join(p for p in sys.path if p)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "PYTHONPATH": path},
        )
        self._send(self._meeting(group))

    def _meeting(self, group: Any) -> dict | None:
        """Where the processes of a group meet: the first one's store."""
        if group is None:
            return None
        import taeda.distributed as dist

        rank, size = dist.get_rank(group), dist.get_world_size(group)
        place = [None]
        if rank == 0:
            import socket

            host = "127.0.0.1" if _on_one_host(group) else socket.gethostname()
            self.store = dist.TCPStore(
                host, 0, size, is_master=True, wait_for_workers=False
            )
            place = [(host, self.store.port)]
        elif size > 1:
            _on_one_host(group)
        source = dist.get_global_rank(group, 0)
        dist.broadcast_object_list(place, src=source, group=group)
        host, port = place[0]
        return {"host": host, "port": port, "rank": rank, "size": size}

    def _send(self, value: Any) -> None:
        pickle.dump(value, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self.process.stdin.flush()

    def save(self, state: dict, options: dict) -> Any:
        """The Metadata of a save, or its exception."""
        with self.lock:
            self._send((state, options))
            try:
                return pickle.load(self.process.stdout)
            except EOFError:
                code = self.process.wait()
                return RuntimeError(
                    f"the process that writes checkpoints has ended with {code}"
                )


def _on_one_host(group: Any) -> bool:
    """Are all ranks of a group on the same machine?"""
    import socket

    import taeda.distributed as dist

    names: list = [None] * dist.get_world_size(group)
    dist.all_gather_object(names, socket.gethostname(), group=group)
    return len(set(names)) == 1


def serve() -> None:
    """What the process does: saves that come in, until its rank ends."""
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    source = sys.stdin.buffer
    meeting = pickle.load(source)
    if meeting is not None:
        _join(meeting)
    while True:
        try:
            state, options = pickle.load(source)
        except EOFError:
            break
        pickle.dump(_saved(state, options), answers)
        answers.flush()
    os._exit(0)


def _join(meeting: dict) -> None:
    import taeda.distributed as dist

    where = meeting["host"], meeting["port"]
    store = dist.TCPStore(*where, meeting["size"], is_master=False)
    dist.init_process_group(
        "gloo",
        store=dist.PrefixStore("checkpoint", store),
        rank=meeting["rank"],
        world_size=meeting["size"],
        timeout=timedelta(minutes=30),
    )


def _saved(state: dict, options: dict) -> Any:
    """The Metadata, or the exception."""
    import warnings

    from .api import Failure
    from .state_dict_saver import save

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return save(state, **options)
    except BaseException as error:
        return Failure(error).error
