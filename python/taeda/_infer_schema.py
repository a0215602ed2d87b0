"""The schema of an operator from the annotations of a Python function."""

from __future__ import annotations

import taeda

__all__ = ["infer_schema"]


def infer_schema(
    prototype_function, /, *, mutates_args, op_name: str | None = None, tags=()
) -> str:
    """The schema text of an annotated function, without a name unless one is given.

    Args:
        prototype_function: with an annotation for each parameter.
        mutates_args: names of the arguments that it writes, or "unknown".
        op_name: the operator's.
        tags: none.

    Raises:
        ValueError: a parameter without an annotation, or with one that has no type of
            schemas.
        NotImplementedError: tags, by which aliases would be inferred.
    """
    if tags:
        raise NotImplementedError("library: infer_schema: tags are not implemented")
    import inspect
    import typing

    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    parts, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} must have a type "
                f"annotation. Got func with signature {signature})"
            )
        text = _type_text(hints[parameter.name], parameter.name)
        if parameter.name in mutates_args and mutates_args != "unknown":
            text = text.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        default = ""
        if parameter.default is not parameter.empty:
            default = f"={_default_text(parameter.default)}"
        parts.append(f"{text} {parameter.name}{default}")
    returns = hints.get("return", type(None))
    body = f"({', '.join(parts)}) -> {_return_text(returns)}"
    return f"{op_name}{body}" if op_name else body


def _default_text(value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).removeprefix("taeda.")


def _return_text(hint) -> str:
    import typing

    if hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        return f"({', '.join(_type_text(t, 'return') for t in typing.get_args(hint))})"
    return _type_text(hint, "return")


def _type_text(hint, name: str) -> str:
    import collections.abc
    import types
    import typing

    plain = {
        taeda.Tensor: "Tensor",
        int: "SymInt",
        float: "float",
        bool: "bool",
        str: "str",
        taeda.dtype: "ScalarType",
        taeda.device: "Device",
        taeda.Generator: "Generator",
        typing.Union[int, float, bool]: "Scalar",  # noqa: UP007 (compared as an object)
    }
    if hint in plain:
        return plain[hint]
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and type(None) in parts:
        inner = [p for p in parts if p is not type(None)]
        if len(inner) == 1:
            return _type_text(inner[0], name) + "?"
    if origin in (list, collections.abc.Sequence):
        return _type_text(parts[0], name) + "[]"
    raise ValueError(
        f"infer_schema(func): Parameter {name} has unsupported type {hint}. "
        "The valid types are: Tensor, int, float, bool, str, dtype, device, Generator, "
        "optionals and lists of them"
    )
