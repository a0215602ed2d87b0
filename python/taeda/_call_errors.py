"""What a TypeError says of a call that fits no overload, in PyTorch's words.

Imported by the first such call (`csrc/python/arg_error.cpp`). Objects are known here by
the names of their types alone.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["no_match"]


class Argument(NamedTuple):
    """One object of the call: its type, that of its first item, if it is a list."""

    type: str
    first: str
    is_int: bool


class Parameter(NamedTuple):
    """One parameter of an overload, and which of the call's arguments fit it."""

    names: list[str]
    type: str
    is_int_list: bool
    has_default: bool
    keyword_only: bool
    variadic: bool
    fits: list[bool]


class Overload(NamedTuple):
    """One overload as the call sees it: without a method's own object."""

    signature: str
    deprecated: bool
    params: list[Parameter]

    @property
    def positional(self) -> int:
        return sum(not p.keyword_only for p in self.params)

    @property
    def required(self) -> int:
        return sum(not p.has_default for p in self.params)


class Call(NamedTuple):
    """The arguments by position, then those by keyword."""

    head: str
    args: list[Argument]
    keywords: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.args) - len(self.keywords)

    def keyword_of(self, param: Parameter) -> int | None:
        """The place among all arguments of the one that names the parameter."""
        for k, name in enumerate(self.keywords, self.count):
            if name in param.names:
                return k
        return None


def no_match(name: str, is_method: bool, args, keywords, overloads) -> str:
    """The message of the error.

    Args:
        name: of the function.
        is_method: whether it was called on a tensor.
        args: the fields of `Argument`, of each.
        keywords: the names of the last of them.
        overloads: the fields of `Overload`, of each that may be shown.
    """
    call = Call(f"{name}()", [Argument(*a) for a in args], keywords)
    shown = [
        Overload(signature, old, [Parameter(*p) for p in params])
        for signature, old, params in overloads
    ]
    if len(shown) == 1:
        if is_method and not shown[0].params and call.count > 0:
            return f"TensorBase.{call.head} takes no arguments ({call.count} given)"
        return _explain(call, shown[0])
    visible = [o for o in shown if not o.deprecated]
    given = len(call.args)
    plausible = [o for o in visible if o.required <= given <= len(o.params)]
    if len(plausible) == 1:
        return _explain(call, plausible[0])
    text = (
        f"{call.head} received an invalid combination of arguments - got "
        f"{_described(call)}, but expected "
    )
    if len(visible) == 1:
        return text + visible[0].signature
    rows = (f" * {o.signature}\n{_mismatch(call, o.signature)}" for o in visible)
    return text + "one of:\n" + "".join(rows)


def _explain(call: Call, overload: Overload) -> str:
    """Why the one plausible overload does not fit."""
    variadic = any(p.variadic for p in overload.params)
    if call.count > overload.positional and not variadic:
        return _extra_positional(call, overload)
    position = 0
    for i, param in enumerate(overload.params):
        by_position = position < call.count
        if by_position and param.keyword_only:
            return _extra_positional(call, overload)
        at = position if by_position else call.keyword_of(param)
        if at is None and not param.has_default:
            return _missing(call, overload.params[i:])
        taken = by_position and param.variadic and call.args[position].is_int
        if taken:
            position = call.count - 1
        elif at is not None and not param.fits[at]:
            return _wrong_type(call, param, at)
        position += by_position
    return _wrong_keywords(call, overload)


def _extra_positional(call: Call, overload: Overload) -> str:
    most, least = overload.positional, overload.required
    start = "" if least == most else f"from {least} to "
    plural = "" if most == 1 and not start else "s"
    verb = "was" if call.count == 1 and not start else "were"
    return (
        f"{call.head} takes {start}{most} positional argument{plural} but "
        f"{call.count} {verb} given"
    )


def _missing(call: Call, params: list[Parameter]) -> str:
    names = [f'"{p.names[0]}"' for p in params if not p.has_default]
    plural = "s" if len(names) == 1 else ""  # as PyTorch spells it
    return (
        f"{call.head} missing {len(names)} required positional argument{plural}: "
        f"{', '.join(names)}"
    )


def _wrong_type(call: Call, param: Parameter, at: int) -> str:
    argument = call.args[at]
    place = f" (position {at + 1})" if at < call.count else ""
    text = f"{call.head}: argument '{param.names[0]}'{place} must be {param.type}"
    if param.is_int_list and argument.first:
        return f"{text}, but found element of type {argument.first} at pos 0"
    return f"{text}, not {argument.type}"


def _wrong_keywords(call: Call, overload: Overload) -> str:
    known = {name for p in overload.params for name in p.names}
    for name in call.keywords:
        if name not in known:
            return f"{call.head} got an unexpected keyword argument '{name}'"
    for param in overload.params[: call.count]:
        if call.keyword_of(param) is not None:
            name = param.names[0]
            return f"{call.head} got multiple values for argument '{name}'"
    return f"{call.head}: invalid keyword arguments"


def _described(call: Call) -> str:
    names = [""] * call.count + [f"{name}=" for name in call.keywords]
    pairs = zip(names, call.args, strict=True)
    return "(" + ", ".join(name + a.type for name, a in pairs) + ")"


def _parts(signature: str) -> list[str]:
    """The parts of "(Tensor input, *, Number alpha = 1)"."""
    parts, depth = [""], 0
    for c in signature[1:-1]:
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append("")
        elif c != " " or parts[-1]:
            parts[-1] += c
    return parts if parts[-1] else parts[:-1]


def _type_and_name(part: str) -> tuple[str, str]:
    kind, _, name = part.partition(" = ")[0].rpartition(" ")
    return kind, name


def _same_type(kind: str, got: str) -> bool:
    return got in ("int", "float") if kind in ("Number", "float") else got == kind


def _mismatch(call: Call, signature: str) -> str:
    """PyTorch's second line under an overload with as many parts as arguments."""
    parts = [_type_and_name(part) for part in _parts(signature)]
    if len(parts) != len(call.args):
        return ""
    text = "      didn't match because some of the "
    names = [name for _, name in parts[call.count :]]
    wrong = [name for name in call.keywords if name not in names]
    if wrong:
        return f"{text}keywords were incorrect: {', '.join(wrong)}\n"
    shown = []
    for i, (kind, name) in enumerate(parts):
        at = i
        if i >= call.count and name in call.keywords:
            at = call.count + call.keywords.index(name)
        got = call.args[at].type
        mark = "" if _same_type(kind, got) else "!"
        label = f"{name}=" if i >= call.count else ""
        shown.append(f"{label}{mark}{got}{mark}")
    return f"{text}arguments have invalid types: ({', '.join(shown)})\n"
