"""States for the length of a test: seeds, dtypes, folders, files."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import warnings

import taeda

from ._environment import SEED

__all__ = [
    "BytesIOContext",
    "DeterministicGuard",
    "TemporaryDirectoryName",
    "TemporaryFileName",
    "disable_gc",
    "find_free_port",
    "freeze_rng_state",
    "set_cwd",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_rng_seed",
    "set_warn_always_context",
    "suppress_warnings",
    "wrapDeterministicFlagAPITest",
]


def set_rng_seed(seed: int | None = None) -> None:
    """Seed the generators of the library, of Python, and of NumPy if it is loaded."""
    seed = SEED if seed is None else seed
    taeda.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


@contextlib.contextmanager
def freeze_rng_state():
    """Inside, random numbers are drawn that do not change those drawn afterwards."""
    state = taeda.get_rng_state()
    try:
        yield
    finally:
        taeda.set_rng_state(state)


@contextlib.contextmanager
def set_default_dtype(dtype):
    """Inside, another dtype is the default."""
    before = taeda.get_default_dtype()
    taeda.set_default_dtype(dtype)
    try:
        yield
    finally:
        taeda.set_default_dtype(before)


@contextlib.contextmanager
def set_default_tensor_type(tensor_type):
    """Inside, another old type is the default."""
    before = taeda.get_default_dtype(), taeda.get_default_device()
    taeda.set_default_tensor_type(tensor_type)
    try:
        yield
    finally:
        taeda.set_default_dtype(before[0])
        taeda.set_default_device(before[1])


@contextlib.contextmanager
def set_warn_always_context(new_val: bool):
    """Inside, warnings that are given once are given always, or not."""
    before = taeda.is_warn_always_enabled()
    taeda.set_warn_always(new_val)
    try:
        yield
    finally:
        taeda.set_warn_always(before)


class DeterministicGuard:
    """Inside, operators must be deterministic, or need not be.

    Args:
        deterministic, warn_only: of `use_deterministic_algorithms`.
        fill_uninitialized_memory: of `utils.deterministic`.
    """

    def __init__(
        self, deterministic, *, warn_only=False, fill_uninitialized_memory=True
    ) -> None:
        self.wanted = deterministic, warn_only, fill_uninitialized_memory

    @classmethod
    def _current_state(cls) -> tuple:
        return (
            taeda.are_deterministic_algorithms_enabled(),
            taeda.is_deterministic_algorithms_warn_only_enabled(),
            taeda.utils.deterministic.fill_uninitialized_memory,
        )

    @staticmethod
    def _set(state: tuple) -> None:
        taeda.use_deterministic_algorithms(state[0], warn_only=state[1])
        taeda.utils.deterministic.fill_uninitialized_memory = state[2]

    def __enter__(self) -> None:
        self.before = self._current_state()
        self._set(self.wanted)

    def __exit__(self, *error) -> None:
        self._set(self.before)


def wrapDeterministicFlagAPITest(fn):
    """A decorator: the settings of determinism are afterwards as they were."""

    def wrapped(*args, **kwargs):
        now = DeterministicGuard._current_state()
        with DeterministicGuard(now[0], warn_only=now[1]):
            return fn(*args, **kwargs)

    return _named(wrapped, fn)


def suppress_warnings(fn):
    """A decorator: warnings inside of the function are not shown."""

    def wrapped(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fn(*args, **kwargs)

    return _named(wrapped, fn)


def _named(wrapped, fn):
    from functools import wraps

    return wraps(fn)(wrapped)


@contextlib.contextmanager
def set_cwd(path: str):
    """Inside, another folder is the current one."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def TemporaryFileName(*args, **kwargs):
    """The path of an empty file, which is removed at the end of `with`."""
    import tempfile

    kwargs["delete"] = False
    with tempfile.NamedTemporaryFile(*args, **kwargs) as file:
        path = file.name
    try:
        yield path
    finally:
        os.unlink(path)


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None):
    """The path of an empty folder, which is removed at the end of `with`."""
    import tempfile

    with tempfile.TemporaryDirectory(suffix=suffix) as path:
        yield path


def BytesIOContext(*args, **kwargs):
    """A file in memory, for `with`."""
    import io

    return contextlib.nullcontext(io.BytesIO(*args, **kwargs))


@contextlib.contextmanager
def disable_gc():
    """Inside, Python does not look for cycles of garbage."""
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def find_free_port() -> int:
    """The number of a port that is free at this moment."""
    import socket

    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]
