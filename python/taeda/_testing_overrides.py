"""A stand-in for each overridable function, with its signature."""

from __future__ import annotations

import inspect
from keyword import iskeyword

import taeda
from taeda import _C

__all__ = ["testing_overrides"]


def _native_signatures() -> dict[str, list[inspect.Signature]]:
    """Signatures of the overloads of each native, from their schemas."""
    from taeda._schema import Schema

    found: dict[str, list] = {}
    for name, _, text in _C._op_schemas():
        if "::" not in name:
            found.setdefault(name, []).append(_signature(Schema(text).arguments))
    return found


def _signature(arguments) -> inspect.Signature:
    parameters = []
    for a in arguments:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if a.kwarg_only or a.name == "out":
            kind = inspect.Parameter.KEYWORD_ONLY
        default = a.default if a.has_default else inspect.Parameter.empty
        name = "input" if a.name == "self" else a.name
        name = f"{name}_" if iskeyword(name) else name
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(sorted(parameters, key=lambda p: p.kind))


def _stand_in(function, signatures: list[inspect.Signature]):
    def stand_in(*args, **kwargs) -> int:
        failures = []
        for signature in signatures:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                failures.append(str(error))
            else:
                return -1
        raise TypeError(f"{stand_in.__name__}(): {'; '.join(failures)}")

    stand_in.__name__ = getattr(function, "__name__", "function")
    if len(signatures) == 1:
        stand_in.__signature__ = signatures[0]
    return stand_in


def testing_overrides() -> dict:
    """See `taeda.overrides.get_testing_overrides`."""
    natives, found = _native_signatures(), {}
    for functions in taeda.overrides.get_overridable_functions().values():
        for function in functions:
            try:
                signatures = [inspect.signature(function)]
            except (TypeError, ValueError):
                signatures = natives.get(getattr(function, "__name__", ""), [])
            if signatures:
                found[function] = _stand_in(function, signatures)
    return found
