"""Prints the type stubs of the native module, for editors and type checkers.

`_C/__init__.pyi` has the Tensor base class with the methods of the records; each
namespace of functions has a stub of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator
from .python_signature import (
    PyFunction,
    PyParam,
    PySignature,
    all_names,
    python_functions,
)
from .writer import Output

_HEAD = """from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

"""
_IMPORTS = """from taeda import Generator, Size, Tensor
from taeda import device, dtype, layout, memory_format

Number = bool | int | float | complex
"""
# Annotations by parameter type.
_TYPES: dict[str, str] = {
    "Tensor": "Tensor",
    "Scalar": "Number | Tensor",
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "Text": "str",
    "Dtype": "dtype",
    "Layout": "layout",
    "Device": "device | str | int",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
    "IntList": "Sequence[int]",
    "FloatList": "Sequence[float]",
    "BoolList": "Sequence[bool]",
    "ScalarList": "Sequence[Number]",
    "TensorList": "Sequence[Tensor]",
    "OptionalTensorList": "Sequence[Tensor | None]",
}
_RETURNS: dict[str, str] = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "ScalarType": "dtype",
}
_KEYWORDS = frozenset(("from", "lambda", "in", "is", "not", "and", "or"))


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
    out.write("python/taeda/_C/__init__.pyi", _module_stub(functions))


def _annotation(param: PyParam) -> str:
    text = _TYPES[param.type]
    if param.size and param.type in ("IntList", "FloatList"):
        text = ("int | " if param.type == "IntList" else "float | ") + text
    if param.number:
        text += " | Number"
    if param.nullable or (param.has_default and param.default == "None"):
        text += " | None"
    return text


def _parameter(param: PyParam) -> str:
    name = f"{param.name}_" if param.name in _KEYWORDS else param.name
    tail = " = ..." if param.has_default else ""
    return f"{name}: {_annotation(param)}{tail}"


def _result(signature: PySignature) -> str:
    kinds = []
    for r in signature.operator.schema.returns:
        text = _RETURNS[r.type.base]
        kinds.append(f"tuple[{text}, ...]" if r.type.is_list else text)
    if not kinds:
        return "None"
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


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


def _definitions(function: PyFunction, name: str, method: bool) -> list[str]:
    shown = [
        s
        for s in function.signatures
        if not s.deprecated and (not method or s.self_index >= 0)
    ]
    lines = {
        f"def {name}({', '.join(_parameters(s, method))}) -> {_result(s)}: ...": None
        for s in shown
    }
    # The form in which sizes are separate arguments.
    for s in shown:
        variadic = [i for i, p in enumerate(s.params) if p.variadic]
        if variadic and (method or s.self_index < 0):
            parts = _parameters(s, method)
            at = next(k for k, t in enumerate(parts) if t.startswith(_first(s)))
            rest = [t for t in parts[at + 1 :] if t != "*"]
            sizes = f"*{s.params[variadic[0]].name}: int"
            text = ", ".join([*parts[:at], sizes, *rest])
            lines[f"def {name}({text}) -> {_result(s)}: ..."] = None
    if len(lines) == 1:
        return list(lines)
    return [text for line in lines for text in ("@overload", line)]


def _first(signature: PySignature) -> str:
    return next(p.name for p in signature.params if p.variadic) + ":"


def _functions_stub(functions: list[PyFunction]) -> str:
    lines = [_HEAD + _IMPORTS]
    for function in functions:
        for name in all_names(function):
            lines += _definitions(function, name, method=False)
    return "\n".join([*lines, ""])


def _module_stub(functions: list[PyFunction]) -> str:
    lines = [_HEAD + _IMPORTS, _TENSOR_ATTRIBUTES]
    for function in functions:
        if not function.is_method:
            continue
        for name in all_names(function):
            for line in _definitions(function, name, method=True):
                lines.append(f"    {line}")
    lines += ["", "def __getattr__(name: str) -> Any: ..."]
    return "\n".join([*lines, ""])


_TENSOR_ATTRIBUTES = """
class TensorBase:
    shape: Size
    dtype: dtype
    device: device
    layout: layout
    ndim: int
    itemsize: int
    nbytes: int
    requires_grad: bool
    grad: Tensor | None
    data: Tensor
    is_leaf: bool
    T: Tensor
    mT: Tensor
    H: Tensor
    mH: Tensor
    real: Tensor
    imag: Tensor
    def size(self, dim: int | None = ...) -> Any: ...
    def stride(self, dim: int | None = ...) -> Any: ...
    def dim(self) -> int: ...
    def numel(self) -> int: ...
    def item(self) -> Number: ...
    def tolist(self) -> Any: ...
    def numpy(self, *, force: bool = ...) -> Any: ...
    def to(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ..."""
