"""Signatures of what graphs call, and arguments in their order."""

from __future__ import annotations

import inspect
import types
import typing
from types import FunctionType
from typing import Any, NamedTuple

import taeda
from taeda._ops import OpOverload, OpOverloadPacket

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_BY_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple
    kwargs: dict[str, Any]


def _overloads(op) -> list[OpOverload]:
    """The operators that a function of the library may stand for."""
    if isinstance(op, OpOverload):
        return [op]
    packet = op
    if not isinstance(op, OpOverloadPacket):
        if isinstance(op, FunctionType):  # which has a signature of its own
            return []
        name = getattr(op, "__name__", "")
        space, _, short = name.lstrip("_").partition("_")
        spaces = (taeda, taeda.Tensor, taeda.nn.functional, taeda._C._nn)
        known = any(getattr(space, name, None) is op for space in spaces)
        # `linalg.det` is named `linalg_det`, as its operator.
        within = getattr(taeda, space, None) if short else None
        if not known and getattr(within, short, None) is not op:
            return []
        packet = getattr(taeda.ops.aten, name, None)
    if not isinstance(packet, OpOverloadPacket):
        return []
    return [getattr(packet, overload) for overload in packet.overloads()]


def _signature(op: OpOverload) -> inspect.Signature:
    parameters = []
    for a in op._schema.arguments:
        name = "input" if a.name == "self" else a.name
        default = a.default_value if a.has_default_value() else inspect.Parameter.empty
        kind = _BY_KEYWORD if a.kwarg_only else _EITHER
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def get_signature_for_torch_op(op, return_schemas: bool = False):
    """The signatures of an operator's overloads; None for what is no operator.

    Args:
        op: a function of the library, or an operator of `taeda.ops`.
        return_schemas: give their schemas too, as a second list.
    """
    found = _overloads(op)
    signatures = [_signature(each) for each in found] or None
    if not return_schemas:
        return signatures
    return signatures, [each._schema for each in found] or None


def _bound(signature: inspect.Signature, args, kwargs) -> dict | None:
    """Name -> value of all parameters; None where the arguments do not fit."""
    simple = (_EITHER, _BY_KEYWORD)
    if any(p.kind not in simple for p in signature.parameters.values()):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return bound.arguments


def _in_order(bound: dict, args, only_kwargs: bool) -> ArgsKwargsPair:
    count = 0 if only_kwargs else len(args)
    items = list(bound.items())
    return ArgsKwargsPair(tuple(v for _, v in items[:count]), dict(items[count:]))


def _fits(schema, values: dict, types: dict) -> bool:
    """Whether the given types of arguments are those of a schema."""
    kinds = {"Tensor": taeda.Tensor, "int": int, "float": float, "bool": bool}
    kinds |= {"SymInt": int, "str": str, "Scalar": (int, float, bool, complex)}
    for a in schema.arguments:
        given = types.get("input" if a.name == "self" else a.name)
        wanted = kinds.get(str(a.type).rstrip("?"))
        known = isinstance(given, type) and wanted is not None
        if known and not issubclass(given, wanted):
            return False
    return True


def normalize_function(
    target,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function in the order of its signature, with defaults.

    Args:
        target: the function.
        args, kwargs: of the call.
        arg_types, kwarg_types: types of the arguments, to choose an overload.
        normalize_to_only_use_kwargs: give all by keyword.

    Returns:
        The arguments, or None where the signature is not known or they do not fit.

    Raises:
        RuntimeError: several overloads fit, and the types do not decide.
    """
    kwargs = kwargs or {}
    only = normalize_to_only_use_kwargs
    if not _overloads(target):
        try:
            bound = _bound(inspect.signature(inspect.unwrap(target)), args, kwargs)
        except (TypeError, ValueError):
            return None
        return None if bound is None else _in_order(bound, args, only)
    fitting = []
    for op in _overloads(target):
        bound = _bound(_signature(op), args, kwargs)
        types = dict(zip(bound or (), arg_types or (), strict=False))
        types.update(kwarg_types or {})
        if bound is not None and _fits(op._schema, bound, types):
            fitting.append(bound)
    results = [_in_order(bound, args, only) for bound in fitting]
    if len(results) > 1 and any(r != results[0] for r in results[1:]):
        if not arg_types and not kwarg_types:
            raise RuntimeError(
                f"Tried to normalize arguments to {taeda.typename(target)} but the "
                "schema match was ambiguous! Please provide argument types to the "
                "normalize_arguments() call"
            )
    return results[0] if results else None


def normalize_module(
    root,
    target: str,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The same for a call of a submodule of `taeda.nn`; None for other modules.

    Args:
        root: the module.
        target: the submodule's path.
        args, kwargs, normalize_to_only_use_kwargs: as for functions.

    Raises:
        RuntimeError: there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that "
            "target!"
        ) from error
    kind = type(module)
    if getattr(taeda.nn, kind.__name__, None) is not kind:
        return None
    bound = _bound(inspect.signature(module.forward), args, kwargs or {})
    if bound is None:
        return None
    return _in_order(bound, args, normalize_to_only_use_kwargs)


def check_for_mutable_operation(target, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises RuntimeError for a call that writes to its arguments."""
    fitting = [
        op._schema
        for op in _overloads(target)
        if _bound(_signature(op), args, kwargs) is not None
    ]
    if fitting and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports "
            "functional code, so operations that mutate operands in-place (e.g. via "
            "`out` arguments) are not supported"
        )


def create_type_hint(x):
    """The hint of a list or tuple of types; any other type as it is.

    Args:
        x: a type, or a list or tuple of them, of which one has to be above the others.

    Example:
        >>> taeda.fx.operator_schemas.create_type_hint([bool, int])
        list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    whole = Any
    for kind in x:
        if all(isinstance(each, type) and issubclass(each, kind) for each in x):
            whole = kind
            break
    return list[whole] if isinstance(x, list) else tuple[whole, ...]


def type_matches(signature_type, argument_type) -> bool:
    """Whether an argument of one type may be given where a signature asks for another.

    Example:
        >>> taeda.fx.operator_schemas.type_matches(list[int], tuple[int, int])
        True
    """
    if signature_type == argument_type:
        return True
    kind = typing.get_origin(signature_type)
    if kind in (typing.Union, types.UnionType):
        choices = typing.get_args(signature_type)
        return any(type_matches(choice, argument_type) for choice in choices)
    if signature_type is int and argument_type is taeda.dtype:
        return True  # dtypes are numbers in schemas
    if kind is list:
        (wanted,) = typing.get_args(signature_type)
        if argument_type is int is wanted:
            return True  # one number stands for all, as in sizes
        if typing.get_origin(argument_type) not in (list, tuple):
            return False
        given = [a for a in typing.get_args(argument_type) if a is not ...]
        return all(a == wanted or _is_below(a, wanted) for a in given)
    return _is_below(argument_type, signature_type)


def _is_below(argument_type, signature_type) -> bool:
    both = isinstance(argument_type, type) and isinstance(signature_type, type)
    return both and issubclass(argument_type, signature_type)
