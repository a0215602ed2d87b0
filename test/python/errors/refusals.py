"""Calls that must be refused: the names they may use, and how they are checked."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import importlib
import io
import pickle
import warnings
import weakref

import numpy
import taeda

SEPARATOR = "  # "
MODULES = (
    *(collections, contextlib, copy, functools, io),
    *(numpy, pickle, weakref),
)


def names(m) -> dict[str, object]:
    """What a call sees: `m` is the library, the rest are short names for its parts."""

    def ones_of(dtype):
        return lambda *size, **options: m.ones(*size, dtype=dtype, **options)

    def sub(name: str):
        return importlib.import_module(f"{m.__name__}.{name}")

    def made(base, **members):
        return type("Made", (base,), members)

    def function(**forms):
        static = {name: staticmethod(form) for name, form in forms.items()}
        return made(m.autograd.Function, **static)

    return {
        **{module.__name__: module for module in MODULES},
        **{"m": m, "nn": m.nn, "F": m.nn.functional, "utils": m.nn.utils},
        **{"data": m.utils.data, "optim": m.optim, "prune": sub("nn.utils.prune")},
        **{"dist": sub("distributions")},
        **{"flex": sub("nn.attention.flex_attention"), "_C": m._C},
        **{"bias": sub("nn.attention.bias"), "T": m.tensor, "ones": m.ones},
        **{"longs": ones_of(m.int64), "doubles": ones_of(m.float64)},
        **{"bools": ones_of(m.bool), "complexes": ones_of(m.complex64)},
        "Leaf": lambda *size: m.ones(*size, requires_grad=True),
        **{"sub": sub, "made": made, "function": function},
        **{"inf": float("inf"), "nan": float("nan")},
    }


def outcome(call: str, library) -> tuple[str, str]:
    """The type of the error and its message; LinAlgError has two names."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            eval(call, names(library))
    except Exception as error:
        return type(error).__name__.lstrip("_"), str(error)
    return "no error", ""


def cases(table: str) -> list[tuple[str, str]]:
    """The calls of a table, each with what its message must have in it."""
    lines = [line for line in table.strip().splitlines() if line.strip()]
    found = [tuple(line.rsplit(SEPARATOR, 1)) for line in lines]
    assert all(len(case) == 2 for case in found)
    assert len(dict(found)) == len(found), "a call stands there twice"
    return found


def check_refused_as_by(torch, call: str, phrase: str) -> None:
    """Taeda refuses with PyTorch's type of error, and says what is wrong."""
    ours, text = outcome(call, taeda)
    theirs, their_text = outcome(call, torch)
    assert theirs != "no error"
    assert ours == theirs, f"{ours}: {text}\nPyTorch {theirs}: {their_text}"
    assert phrase in text


def check_refused_otherwise(torch, call: str, phrase: str) -> None:
    """Taeda refuses in its own way what PyTorch does not refuse so."""
    kind, phrase = phrase.split(": ", 1)
    ours, text = outcome(call, taeda)
    assert ours == kind, f"{ours}: {text}"
    assert phrase in text
    assert outcome(call, torch)[0] != ours, "belongs to the table of equal types"
