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
        ValueError: a parameter or the result without an annotation, or with one that
            has no type of schemas; parameters that are no arguments by name; names in
            mutates_args that no parameter has.
        NotImplementedError: tags, by which aliases would be inferred.

    Example:
        >>> def scaled(x: taeda.Tensor, factor: float = 2.0) -> taeda.Tensor:
        ...     return x * factor
        >>> taeda.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float factor=2.0) -> Tensor'
    """
    if tags:
        raise NotImplementedError("library: infer_schema: tags are not implemented")
    import inspect
    import typing

    signature = inspect.signature(prototype_function)
    about = f"Got func with signature {signature})"
    hints = typing.get_type_hints(prototype_function)
    parts, keyword_only = [], False
    for parameter in signature.parameters.values():
        if parameter.kind not in (
            parameter.KEYWORD_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        ):
            raise ValueError(
                "infer_schema(func): We do not support positional-only args, varargs, "
                f"or varkwargs. {about}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if parameter.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} must have a type "
                f"annotation. {about}"
            )
        what = f"Parameter {parameter.name}"
        text = _type_text(hints[parameter.name], what)
        if mutates_args == "unknown" or parameter.name in mutates_args:
            written = len(parts) - keyword_only
            text = text.replace("Tensor", f"Tensor(a{written}!)", 1)
        default = ""
        if parameter.default is not parameter.empty:
            default = f"={_default_text(parameter.default, what, about)}"
        parts.append(f"{text} {parameter.name}{default}")
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that "
            f"are mutated or the string 'unknown', got {mutates_args!r}"
        )
    strangers = set(mutates_args) - set(signature.parameters)
    if mutates_args != "unknown" and strangers:
        raise ValueError(
            f"infer_schema(func): {strangers} in mutates_args were not found in the "
            f"custom op's signature. {about}"
        )
    if signature.return_annotation is signature.empty:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add "
            f"one. {about}"
        )
    body = f"({', '.join(parts)}) -> {_return_text(hints['return'])}"
    return f"{op_name}{body}" if op_name else body


def _default_text(value, what: str, about: str) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (str, taeda.device)):
        return f'"{value}"'
    if isinstance(value, taeda.dtype):
        return str(value).partition(".")[2]
    raise ValueError(
        f"infer_schema(func): {what} has an unsupported default value type "
        f"{type(value)}. {about}"
    )


_RESULTS = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")


def _return_text(hint) -> str:
    import typing

    if hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        if Ellipsis not in parts:
            return f"({', '.join(map(_return_text, parts))})"
    elif (text := _type_text(hint, "Return")) in _RESULTS:
        return text
    raise ValueError(
        f"infer_schema(func): Return has unsupported type {hint}. The valid types are: "
        f"{', '.join(_RESULTS)}, tuples of them and None"
    )


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
        if len(inner) == 1 and not _type_text(inner[0], name).startswith("Tensor["):
            return _type_text(inner[0], name) + "?"
    if origin in (list, collections.abc.Sequence):
        return _type_text(parts[0], name) + "[]"
    raise ValueError(
        f"infer_schema(func): {name} has unsupported type {hint}. "
        "The valid types are: Tensor, int, float, bool, str, dtype, device, Generator, "
        "optionals and lists of them"
    )
