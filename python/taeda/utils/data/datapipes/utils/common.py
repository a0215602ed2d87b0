"""Streams that close themselves, file names, checks of users' functions."""

from __future__ import annotations

import inspect
import os
import warnings
from fnmatch import fnmatch

__all__ = [
    "StreamWrapper",
    "get_file_binaries_from_pathnames",
    "get_file_pathnames_from_root",
    "match_masks",
    "validate_input_col",
]


def no_length(pipe) -> TypeError:
    """The error of `len` where nobody knows the length."""
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def length_of(pipe, source) -> int:
    """How many samples a source of a pipe has; `no_length` of the pipe otherwise."""
    if not hasattr(type(source), "__len__"):
        raise no_length(pipe)
    return len(source)


def check_function(function) -> None:
    """Refuse what cannot be called; warn of what cannot go to a worker by pickle.

    Raises:
        TypeError: it is not callable.
    """
    if not callable(function):
        raise TypeError(
            f"A callable function is expected, but {type(function)} is provided."
        )
    function = getattr(function, "func", function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    for mark, kind in (("<locals>", "Local"), ("<lambda>", "Lambda")):
        if mark in name:
            warnings.warn(
                f"{kind} function is not supported by pickle, please use regular "
                "python function or functools.partial instead.",
                stacklevel=3,
            )
            return


def validate_input_col(fn, input_col) -> None:
    """Check that a function can be called with the columns that it will get.

    Args:
        fn: the function; those that tell no signature are taken as they are.
        input_col: one column, or a list or tuple of them; None for the whole sample.

    Raises:
        ValueError: it takes another number of them, or needs named arguments.
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    inner = getattr(fn, "func", fn)
    name = getattr(inner, "__name__", repr(inner))
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, 1)]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise ValueError(
            f"The function {name} takes {len(named)} non-default keyword-only "
            "parameters, which is not allowed."
        )
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    least = sum(p.default is p.empty for p in placed)
    if least > count or (len(placed) < count and not any_number):
        raise ValueError(
            f"The function {name} takes {len(placed)} positional parameters, but "
            f"{count} are required."
        )


def match_masks(name: str, masks) -> bool:
    """Whether a file name fits one of the patterns (`*.txt`); no pattern fits all."""
    if not masks:
        return True
    return any(fnmatch(name, m) for m in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks,
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
):
    """Paths of the files below a folder, or of one file.

    Args:
        root: folder or file.
        masks: patterns of names. recursive: inner folders too.
        abspath: whole paths. non_deterministic: as the system lists them, unsorted.

    Raises:
        OSError: a folder cannot be read.
    """
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, inner, files in os.walk(root, onerror=_unreadable):
        if not non_deterministic:
            files.sort()
            inner.sort()  # os.walk goes on in this order
        folder = os.path.abspath(folder) if abspath else folder
        yield from (os.path.join(folder, f) for f in files if match_masks(f, masks))
        if not recursive:
            return


def _unreadable(error: OSError) -> None:
    warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
    raise error


def get_file_binaries_from_pathnames(pathnames, mode: str, encoding=None):
    """(path, open stream) of each path.

    Raises:
        TypeError: a path is no string.
    """
    how = {"mode": mode if mode[0] == "r" else f"r{mode}", "encoding": encoding}
    for path in pathnames:
        kind = type(path)
        if not issubclass(kind, str):
            raise TypeError(f"Expected string type for pathname, but got {kind}")
        yield path, StreamWrapper(open(path, **how))


class StreamWrapper:
    """A stream that is closed when nothing refers to it any more.

    Args:
        file_obj: the stream.
        parent_stream: a wrapper that it reads from (an archive). `autoclose` of that
            one closes it once its last child has closed.
        name: shown by repr.
    """

    def __init__(self, file_obj, parent_stream=None, name=None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, None, name
        self.child_counter = 0
        self.close_on_last_child = self.closed = False
        kind = type(parent_stream)
        if issubclass(kind, StreamWrapper):
            self.parent_stream = parent_stream
            parent_stream.child_counter += 1
        elif parent_stream is not None:
            raise RuntimeError(
                f"Parent stream should be StreamWrapper, {kind} was given"
            )

    @classmethod
    def close_streams(cls, v, depth: int = 0) -> None:
        """Close the wrappers in nested lists, tuples and dictionaries."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)) and depth <= 10:
            for inner in v.values() if isinstance(v, dict) else v:
                cls.close_streams(inner, depth + 1)

    def __getattr__(self, name: str):
        return getattr(self.__dict__["file_obj"], name)

    def close(self, *args, **kwargs) -> None:
        """Close the stream, once."""
        if self.closed:
            return
        self.closed, parent = True, self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if parent.close_on_last_child and not parent.child_counter:
                parent.close()
        close = getattr(self.file_obj, "close", None)
        if close is not None:
            close(*args, **kwargs)

    def autoclose(self) -> None:
        """Close as soon as no child is open."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name},"
        return f"StreamWrapper<{name}{self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, state) -> None:
        self.__init__(state)
