"""Running commands and saying so."""

from __future__ import annotations

import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"


class Failure(Exception):
    """A step failed; the message says which and what to do."""


def say(text: str) -> None:
    """Prints one line of progress."""
    print(f"[taeda] {text}", flush=True)


def python() -> str:
    """The virtual environment's Python where there is one, else this one."""
    own = VENV / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def tool(name: str) -> str:
    """A program of the virtual environment, else whatever PATH has."""
    own = VENV / "bin" / name
    return str(own) if own.exists() else name


def run(
    command: Sequence[str | pathlib.Path],
    *,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    quiet: bool = False,
    timeout: float | None = None,
) -> int:
    """Runs a command at the tree's root and returns its exit status.

    Past `timeout` seconds it is ended with all the processes that it has started.
    """
    words = [str(word) for word in command]
    shown = shlex.join(words)
    if not quiet:
        say("$ " + (shown if len(shown) < 200 else shown[:197] + "..."))
    full_env = {**os.environ, **(env or {})}
    # A group of its own where it may have to be ended; else Ctrl-C reaches it.
    alone = timeout is not None
    try:
        child = subprocess.Popen(
            words,
            cwd=ROOT,
            env=full_env,
            stdin=subprocess.DEVNULL,
            process_group=0 if alone else None,
        )
    except FileNotFoundError:
        raise Failure(f"{words[0]} is not installed; run tools/dev setup") from None
    try:
        status = child.wait(timeout)
    except subprocess.TimeoutExpired:
        raise Failure(f"timed out after {timeout:.0f} s: {shown}") from None
    finally:
        if child.returncode is None and alone:
            os.killpg(child.pid, signal.SIGKILL)
        if child.returncode is None:
            child.wait()
    if check and status:
        raise Failure(f"exit status {status}: {shown}")
    return status


def output(command: Sequence[str | pathlib.Path]) -> str:
    """A command's standard output; empty where the command fails or is absent."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=ROOT, capture_output=True, text=True
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def keep_cores() -> None:
    """A process started from here that crashes leaves its memory in a file."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def show_cores() -> None:
    """Prints the C stack of what crashed at the tree's root, and forgets it.

    A machine that puts such files elsewhere shows nothing.
    """
    for core in sorted(ROOT.glob("core*")):
        with core.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        commands = ["-batch", "-ex", "bt 60", "-ex", "info sharedlibrary taeda"]
        say(f"{core.name}: the stack of a process that crashed")
        print(output(["gdb", *commands, os.path.realpath(python()), core]), flush=True)
        core.unlink()


class Timer:
    """Context manager that measures wall-clock seconds."""

    def __enter__(self) -> Timer:
        self.start = time.monotonic()
        self.seconds = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self.start
