"""Prints the type stubs of the native module, for editors and type checkers.

`_C/__init__.pyi` has the Tensor base class with the methods of the records; each
namespace of functions has a stub of its own. What no record describes is in
`stubs/_native.pyi` and `stubs/_functions.pyi`. `emit_package_stubs.py` prints those of
the Python packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .model import Operator
from .python_signature import (
    PyFunction,
    PyParam,
    PySignature,
    all_names,
    python_functions,
)
from .writer import Output

STUBS = Path(__file__).parent / "stubs"
# Aliases, because names such as `float` or `dtype` are hidden by functions and methods.
_HEAD = """from collections.abc import Sequence
from typing import NamedTuple, overload

from taeda._C import _return_types
from taeda._C._native import (
    DeviceLike, Generator, Number, _bool, _dtype, _float, _int, _layout,
    _memory_format,
)
from taeda._tensor import Tensor

"""
# Annotations by parameter type.
_TYPES: dict[str, str] = {
    "Tensor": "Tensor",
    "Scalar": "Number | Tensor",
    "Int": "_int",
    "Float": "_float",
    "Bool": "_bool",
    "Text": "str",
    "Dtype": "_dtype",
    "Layout": "_layout",
    "Device": "DeviceLike",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
    "IntList": "Sequence[_int]",
    "FloatList": "Sequence[_float]",
    "BoolList": "Sequence[_bool]",
    "ScalarList": "Sequence[Number]",
    "TensorList": "Sequence[Tensor]",
    "OptionalTensorList": "Sequence[Tensor | None]",
}
_RETURNS: dict[str, str] = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "ScalarType": "_dtype",
}
# Parameters, and the result.
_Form = tuple[tuple[str, ...], str]
_KEYWORDS = frozenset(("from", "lambda", "in", "is", "not", "and", "or"))


# What a wider annotation accepts beside itself.
_WIDER = {"Number": {"_int", "_float", "_bool"}, "_float": {"_int"}}
# Members that `stubs/_native.pyi` or the Python class describes better.
_BY_HAND = frozenset("item norm nonzero split unique unique_consecutive".split())


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes `python/taeda/_C/*.pyi`."""
    functions = python_functions(list(operators))
    spaces: dict[str, list[PyFunction]] = {}
    for function in functions:
        if function.is_function:
            space = function.record.python.module or "VariableFunctions"
            spaces.setdefault(space, []).append(function)
    for space, listed in sorted(spaces.items()):
        out.write(f"python/taeda/_C/_{space}.pyi", _functions_stub(listed))
    out.write("python/taeda/_C/_return_types.pyi", _structures(functions))
    native = (STUBS / "_native.pyi").read_text(encoding="utf-8")
    out.write("python/taeda/_C/_native.pyi", native)
    out.write("python/taeda/_C/__init__.pyi", _module_stub(functions))


def _fields(signature: PySignature) -> tuple[str, ...]:
    """The names of several results, where all of them have one."""
    names = [r.name for r in signature.operator.schema.returns]
    return tuple(map(str, names)) if len(names) > 1 and all(names) else ()


def _structures(functions: list[PyFunction]) -> str:
    """The named tuples that functions return; one function may return several."""
    lines = ["from typing import NamedTuple", "", "from taeda._tensor import Tensor"]
    seen = set()
    for function in functions:
        for signature in function.signatures:
            name = structure_name(function, signature)
            if name and name not in seen:
                seen.add(name)
                lines += ["", f"class {name}(NamedTuple):"]
                kinds = [r.type for r in signature.operator.schema.returns]
                for field, kind in zip(_fields(signature), kinds, strict=True):
                    text = _RETURNS[kind.base]
                    text = f"tuple[{text}, ...]" if kind.is_list else text
                    # `index` and `count` are methods of tuples.
                    note = "  # type: ignore[assignment]"
                    odd = field in ("index", "count")
                    lines.append(f"    {field}: {text}{note if odd else ''}")
    return "\n".join([*lines, ""])


def structure_name(function: PyFunction, signature: PySignature) -> str:
    """The class of a function's named results; empty where they have no names."""
    fields = _fields(signature)
    if not fields:
        return ""
    first = next(_fields(s) for s in function.signatures if _fields(s))
    name = function.name
    return name if fields == first else "_".join((name, *fields))


def _annotation(param: PyParam) -> str:
    text = _TYPES[param.type]
    if param.size and param.type in ("IntList", "FloatList"):
        text = ("_int | " if param.type == "IntList" else "_float | ") + text
    if param.number:
        text += " | Number"
    if param.nullable or (param.has_default and param.default == "None"):
        text += " | None"
    return text


def _parameter(param: PyParam) -> str:
    name = f"{param.name}_" if param.name in _KEYWORDS else param.name
    tail = " = ..." if param.has_default else ""
    return f"{name}: {_annotation(param)}{tail}"


def _result(function: PyFunction, signature: PySignature) -> str:
    structure = structure_name(function, signature)
    if structure:
        return f"_return_types.{structure}"
    kinds = []
    for r in signature.operator.schema.returns:
        text = _RETURNS[r.type.base]
        kinds.append(f"tuple[{text}, ...]" if r.type.is_list else text)
    if not kinds:
        return "Sequence[Tensor]" if signature.gives_list else "None"
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _accepted(annotation: str) -> set[str]:
    """The members of a union, with what each of them accepts beside itself."""
    members = set(annotation.split(" | "))
    return members.union(*(_WIDER.get(member, set()) for member in members))


def _covers(wide: _Form, narrow: _Form) -> bool:
    """Whether each call of one form is a call of the other."""
    if len(wide[0]) != len(narrow[0]):
        return False
    for a, b in zip(wide[0], narrow[0], strict=True):
        name, _, kind = a.partition(": ")
        other, _, narrower = b.partition(": ")
        default, given = kind.endswith(" = ..."), narrower.endswith(" = ...")
        kinds = _accepted(kind.removesuffix(" = ..."))
        if name != other or default != given:
            return False
        if not _accepted(narrower.removesuffix(" = ...")) <= kinds:
            return False
    return True


def _same_kind(a: str, b: str) -> bool:
    """Whether two parameters have one name and take the same."""
    name, _, kind = a.partition(": ")
    other, _, its = b.partition(": ")
    kinds, others = (set(k.removesuffix(" = ...").split(" | ")) for k in (kind, its))
    return name == other and kinds == others and a.endswith("...") == b.endswith("...")


def _with_default(form: _Form, other: _Form) -> _Form | None:
    """`other` with a default for the keyword that it must have and `form` has not.

    A call without it is one of `form`, so that both together are one form.
    """
    short, long = (list(f[0]) for f in (form, other))
    if "*" in long and "*" not in short:
        short.append("*")
    if len(long) != len(short) + 1 or other[1] != form[1]:
        return None
    pairs = enumerate(zip(short, long, strict=False))
    at = next((i for i, (a, b) in pairs if not _same_kind(a, b)), len(short))
    extra = long[at]
    if "*" not in long[:at] or ": " not in extra or extra.endswith("..."):
        return None
    if not all(map(_same_kind, short[at:], long[at + 1 :])):
        return None
    long[at] = f"{extra} = ..."
    return tuple(long), other[1]


def _merged(forms: list[_Form]) -> list[_Form]:
    """Pairs of forms that differ by one keyword as one."""
    out = list(forms)
    for form in forms:
        for other in forms:
            both = _with_default(form, other)
            if both is not None and form in out and other in out:
                out[out.index(form)] = both
                out.remove(other)
    return out


def _distinct(forms: list[_Form]) -> list[_Form]:
    """Without forms that an earlier one hides, or that another makes superfluous."""
    kept: list[_Form] = []
    for i, form in enumerate(forms):
        hidden = any(_covers(other, form) for other in kept)
        later = forms[i + 1 :]
        if hidden or any(_covers(o, form) and o[1] == form[1] for o in later):
            continue
        kept.append(form)
    return kept


def _parameters(signature: PySignature, method: bool) -> list[str]:
    parts = ["self"] if method else []
    starred = False
    for i, p in enumerate(signature.params):
        if method and (i == signature.self_index or p.name == "out"):
            continue
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(_parameter(p))
    return parts


def _forms(function: PyFunction, method: bool) -> list[_Form]:
    """Parameters and result of every way to call a function."""
    shown = [
        s
        for s in function.signatures
        if not s.deprecated and (not method or s.self_index >= 0)
    ]
    forms = [(tuple(_parameters(s, method)), _result(function, s)) for s in shown]
    # The form in which sizes are separate arguments.
    for s in shown:
        variadic = [p for p in s.params if p.variadic]
        if variadic and (method or s.self_index < 0):
            parts = _parameters(s, method)
            at = next(k for k, t in enumerate(parts) if t.startswith(_first(s)))
            rest = [t for t in parts[at + 1 :] if t != "*"]
            sizes = f"*{variadic[0].name}: _int"
            forms.append(((*parts[:at], sizes, *rest), _result(function, s)))
    if not method:
        # Orders of arguments from before keyword-only ones: by position alone.
        for s in (s for s in function.signatures if s.deprecated):
            parts = [_renamed(p, "input", "self") for p in _parameters(s, False)]
            forms.append((tuple(parts), _result(function, s)))
    return _merged(_distinct(list(dict.fromkeys(forms))))


def _renamed(parameter: str, name: str, other: str) -> str:
    return (
        parameter.replace(f"{name}: ", f"{other}: ")
        if parameter.startswith(f"{name}: ")
        else parameter
    )


def _definitions(function: PyFunction, name: str, method: bool) -> list[str]:
    forms = _forms(function, method)
    lines = [f"def {name}({', '.join(params)}) -> {out}: ..." for params, out in forms]
    if len(lines) == 1:
        return lines
    return [text for line in lines for text in ("@overload", line)]


def _first(signature: PySignature) -> str:
    return next(p.name for p in signature.params if p.variadic) + ":"


def _functions_stub(functions: list[PyFunction]) -> str:
    lines = [_HEAD]
    for function in functions:
        for name in all_names(function):
            lines += _definitions(function, name, method=False)
    return "\n".join([*lines, ""])


def _module_stub(functions: list[PyFunction]) -> str:
    lines = [_HEAD, "from typing import Any", "from taeda._C._native import *"]
    lines += ["from taeda._C._native import TensorMembers", _CLASS]
    for function in functions:
        if not function.is_method:
            continue
        for name in all_names(function):
            if name in _BY_HAND:
                continue
            for line in _definitions(function, name, method=True):
                lines.append(f"    {line}")
    functions_by_hand = (STUBS / "_functions.pyi").read_text(encoding="utf-8")
    lines += ["", functions_by_hand, "def __getattr__(name: str) -> Any: ..."]
    return "\n".join([*lines, ""])


_CLASS = """
class TensorBase(TensorMembers):"""
