"""A stand-in for each overridable function, with its signature."""

from __future__ import annotations

import ast
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
    stand_in.__signature__ = signatures[0]
    return stand_in


def _any_arguments(input, *args, **kwargs):
    """The signature of functions that tell none: the tensor, and what they take."""


def _of_attribute(self):
    """The signature of what reads an attribute."""


def _signatures(function, natives: dict) -> list[inspect.Signature]:
    name = getattr(function, "__name__", "")
    if name == "__get__":
        return [inspect.signature(_of_attribute)]
    try:
        return [inspect.signature(function)]
    except (TypeError, ValueError):
        pass
    return natives.get(name) or [_documented(function, name)]


def _documented(function, name: str) -> inspect.Signature:
    """The signature in the first line of the documentation, `name(...) -> ...`."""
    head = (function.__doc__ or "").partition("\n")[0].partition(" ->")[0]
    try:
        arguments = ast.parse(f"def {head}: pass").body[0].args
    except SyntaxError:
        return inspect.signature(_any_arguments)
    kinds = inspect.Parameter
    parameters = []
    if getattr(taeda.Tensor, name, None) is function:
        parameters.append(kinds("self", kinds.POSITIONAL_OR_KEYWORD))
    given = [kinds.empty] * (len(arguments.args) - len(arguments.defaults))
    for a, default in zip(arguments.args, given + arguments.defaults, strict=True):
        value = default if default is kinds.empty else ast.unparse(default)
        parameters.append(kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD, default=value))
    if arguments.vararg is not None:
        parameters.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        value = kinds.empty if default is None else ast.unparse(default)
        parameters.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=value))
    return inspect.Signature(parameters)


def testing_overrides() -> dict:
    """See `taeda.overrides.get_testing_overrides`."""
    natives, found = _native_signatures(), {}
    for functions in taeda.overrides.get_overridable_functions().values():
        for function in functions:
            found[function] = _stand_in(function, _signatures(function, natives))
    return found
