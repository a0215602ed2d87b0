"""Prints the Python bindings of the operators.

In shards: for every function its parameter tables and, per overload, the few lines that
convert the arguments and call the operator; then the method tables. `registry.cpp`
lists the shards and finds functions by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator, cpp_default, shard_of
from .python_docs import docstring, method_docstring
from .python_signature import (
    PyFunction,
    PyParam,
    PySignature,
    all_names,
    python_functions,
)
from .schema import Argument
from .writer import Output

PYTHON_SHARDS = 16


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes `python/functions_N.cpp` and `python/registry.cpp`."""
    functions = python_functions(list(operators))
    shards: list[list[PyFunction]] = [[] for _ in range(PYTHON_SHARDS)]
    for function in functions:
        shards[shard_of(function.record.name, PYTHON_SHARDS)].append(function)
    for i, shard in enumerate(shards):
        out.write(f"python/functions_{i}.cpp", _shard(i, shard))
    out.write("python/registry.cpp", _registry(functions))


# One overload -----------------------------------------------------------------


def c_text(text: str) -> str:
    """A text as C++ writes it."""
    for old, new in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(old, new)
    return f'"{text}"'


def _param(param: PyParam) -> str:
    flags = [
        name
        for name, on in (
            ("Param::kHasDefault", param.has_default),
            ("Param::kKeywordOnly", param.keyword_only),
            ("Param::kNullable", param.nullable),
            ("Param::kVariadic", param.variadic),
            ("Param::kNumber", param.number),
            ("Param::kFunctionOnly", param.name == "out" and not param.argument),
        )
        if on
    ]
    aliases = "nullptr"
    if param.aliases:
        aliases = '"' + "".join(f"{a}\\0" for a in param.aliases) + '"'
    return (
        f'{{"{param.name}", {aliases}, ParamType::{param.type}, '
        f"{' | '.join(flags) or '0'}, {param.size}}}"
    )


# C++ types of the parameters that are one value.
_VALUES: dict[str, str] = {
    "Scalar": "Scalar",
    "Int": "int64_t",
    "Float": "double",
    "Bool": "bool",
    "Text": "std::string_view",
    "Dtype": "ScalarType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}
# Accessors of Args by parameter type.
_ACCESSORS: dict[str, tuple[str, str, str, str]] = {
    # type: (C++ type, accessor, C++ optional type, optional accessor)
    **{
        kind: (cpp, f"get<{cpp}>", "auto", f"maybe<{cpp}>")
        for kind, cpp in _VALUES.items()
    },
    "IntList": ("DimVector", "ints", "OptionalInts", "optional_ints"),
    "FloatList": ("auto", "floats", "OptionalFloats", "optional_floats"),
    "BoolList": ("auto", "flags", "auto", "flags"),
    "ScalarList": ("auto", "scalars", "auto", "scalars"),
    "TensorList": ("TensorVector", "tensors", "TensorVector", "tensors"),
    "OptionalTensorList": ("auto", "optional_tensors", "auto", "optional_tensors"),
}


def _default(argument: Argument, kind: str) -> str:
    """The accessor's last argument for a default that is not None."""
    if not argument.has_default or argument.default is None:
        return ""
    text = cpp_default(argument)
    if kind == "IntList":
        value = argument.default
        items = value if isinstance(value, tuple) else (value,)
        if not isinstance(value, tuple):
            items = items * (argument.type.list_size or 1)
        return f", {{{', '.join(map(str, items))}}}"
    if kind in ("FloatList", "BoolList", "ScalarList", "TensorList"):
        return ""
    return f", {text}"


def _local(param: PyParam, slot: int) -> str:
    """The statement that converts one argument."""
    argument = param.argument
    assert argument is not None
    name = argument.name
    if param.type == "Tensor":
        if argument.type.is_optional:
            return f"OptionalTensor {name} = a.optional_tensor({slot});"
        if param.number:
            return f"Tensor {name} = a.tensor_or_number({slot});"
        return f"const Tensor& {name} = a.tensor({slot});"
    kind, get, optional_kind, optional_get = _ACCESSORS[param.type]
    if argument.type.is_optional:
        if argument.default is not None:
            fallback = cpp_default(argument)
            return (
                f"{optional_kind} {name} = a[{slot}] ? a.{optional_get}({slot}) "
                f": decltype(a.{optional_get}({slot}))({fallback});"
            )
        return f"{optional_kind} {name} = a.{optional_get}({slot});"
    return f"{kind} {name} = a.{get}({slot}{_default(argument, param.type)});"


def _missing(signature: PySignature) -> list[str]:
    """Locals for arguments that a deprecated order leaves out."""
    present = {p.argument.name for p in signature.params if p.argument}
    lines = []
    for a in signature.operator.arguments:
        if a.name not in present:
            lines.append(f"const auto {a.name} = {cpp_default(a)};")
    return lines


def _operator_of(signature: PySignature) -> str:
    """The operator and its argument for each parameter, as text after a NUL.

    Read where a call has symbols among its integers; in the signature's own text, for
    a pointer would have to be relocated at each import.
    """
    schema = signature.operator.schema
    names = [p.argument.name if p.argument else "" for p in signature.params]
    parts = [schema.base, schema.overload, *names]
    return ' "' + "".join(f"\\0{part}" for part in parts) + '"'


def _slot(signature: PySignature, name: str) -> int:
    for i, p in enumerate(signature.params):
        if p.name == name and p.argument is None:
            return i
    raise KeyError(name)


def _struct(signature: PySignature, name: str) -> str | None:
    """The name of the structure for several named results."""
    returns = signature.operator.schema.returns
    if len(returns) < 2 or not all(r.name for r in returns):
        return None
    fields = "_".join(str(r.name) for r in returns)
    return f"struct_{name}_{fields}"


def _callee(op: Operator) -> str:
    """The operator's function; defaults can make a call by name ambiguous."""
    if len(op.record.overloads) == 1:
        return f"ops::{op.cpp_name}"
    return f"static_cast<{op.result} (*)({op.types()})>(ops::{op.cpp_name})"


def _out_options(signature: PySignature, out: int) -> list[str]:
    """What a factory's caller says besides `out` has to fit it."""
    if not signature.operator.schema.is_factory:
        return []
    dtype, device = (
        next(
            i
            for i, p in enumerate(signature.params)
            if p.argument is not None and p.argument.name == name
        )
        for name in ("dtype", "device")
    )
    return [
        f"  check_out_options(a.tensor({out}), a.given({dtype}) ? dtype : "
        f"decltype(dtype)(), a.given({device}) ? device : decltype(device)());"
    ]


def _out_branch(signature: PySignature, name: str) -> list[str]:
    out = signature.out
    assert out is not None
    slot = _slot(signature, "out")
    given = {a.name for a in out.schema.out_args}
    args = []
    position = 0
    single = signature.params[slot].type == "Tensor"
    for a in out.arguments:
        if a.name not in given:
            args.append(a.name)
            continue
        if single:
            args.append(f"a.tensor({slot})")
        elif a.type.is_list:
            args.append(f"a.tensors({slot})")
        else:
            args.append(f"a.out({slot}, {position})")
            position += 1
    result = f"a.object({slot})"
    struct = _struct(signature, name)
    if struct:
        result = f"wrap_struct({struct}, {result})"
    if not out.schema.returns:
        result = "none()"
    return [
        f"if (a.given({slot})) {{",
        *_out_options(signature, slot),
        "  GilRelease gil(a.large());",
        f"  {_callee(out)}({', '.join(args)});",
        "  gil.acquire();",
        f"  return {result};",
        "}",
    ]


def _call(signature: PySignature, name: str) -> list[str]:
    """The statements of an overload's function."""
    op = signature.operator
    lines = [
        _local(p, i) for i, p in enumerate(signature.params) if p.argument is not None
    ]
    lines += _missing(signature)
    if signature.out is not None:
        lines += _out_branch(signature, name)
    call = f"{_callee(op)}({op.names()})"
    lines.append("GilRelease gil(a.large());")
    if op.result == "void":
        lines += [f"{call};", "gil.acquire();"]
        return [*lines, _mutated_result(signature)]
    lines += [f"auto result = {call};", "gil.acquire();"]
    struct = _struct(signature, name)
    if op.schema.is_factory:
        slot = _slot(signature, "requires_grad")
        lines.append(f"return finish_factory(std::move(result), a.flag({slot}));")
    elif struct:
        lines.append(f"return wrap_struct({struct}, wrap(std::move(result)));")
    else:
        lines.append("return wrap(std::move(result));")
    return lines


def _mutated_result(signature: PySignature) -> str:
    """Writing forms return the object that they were given."""
    returns = signature.operator.schema.returns
    written = [
        i
        for i, p in enumerate(signature.params)
        if p.argument is not None and p.argument.is_mutable
    ]
    if written and (len(returns) == 1 or signature.gives_list):
        return f"return a.object({written[0]});"
    return "return none();"


# One file ---------------------------------------------------------------------


def _function(function: PyFunction, structs: dict[str, list[str]]) -> list[str]:
    name = function.name
    lines: list[str] = []
    rows: list[str] = []
    for i, signature in enumerate(function.signatures):
        ident = f"{name}_{i}"
        struct = _struct(signature, name)
        if struct and struct not in structs:
            fields = [str(r.name) for r in signature.operator.schema.returns]
            structs[struct] = fields
            shown = "".join(f"{f}\\0" for f in fields)
            lines.append(f'StructType {struct} = {{"{name}", "{shown}", nullptr}};')
        lines.append(f"PyObject* call_{ident}(const Args& a) {{")
        lines += ["  " + line for line in _call(signature, name)]
        lines.append("}")
        if signature.params:
            params = ",\n    ".join(_param(p) for p in signature.params)
            lines.append(f"constexpr Param params_{ident}[] = {{\n    {params}}};")
        table = f"params_{ident}" if signature.params else "nullptr"
        flags = [
            flag
            for flag, on in (
                ("Overload::kDeprecated", signature.deprecated),
                ("Overload::kHidden", signature.hidden),
            )
            if on
        ]
        rows.append(
            f"{{{table}, {len(signature.params)}, {signature.self_index}, "
            f"{' | '.join(flags) or '0'}, call_{ident}, "
            f"{c_text(signature.shown(method=False))}{_operator_of(signature)}, "
            f"{c_text(signature.shown(method=True))}}}"
        )
    joined = ",\n    ".join(rows)
    lines.append(f"constexpr Overload overloads_{name}[] = {{\n    {joined}}};")
    module = function.record.python.module
    lines.append(
        f'constexpr Function function_{name} = {{"{name}", "{module}", '
        f"overloads_{name}, {len(rows)}}};"
    )
    return lines


def _tables(
    index: int, functions: list[PyFunction], structs: dict[str, list[str]]
) -> list[str]:
    definitions, modules, methods = [], [], []
    for f in functions:
        for name in all_names(f):
            if f.is_function:
                doc = c_text(docstring(f, name))
                definitions.append(
                    f'TAEDA_PY_FUNCTION("{name}", function_{f.name}, {doc}),'
                )
                modules.append(f'"{f.record.python.module}",')
            if f.is_method:
                doc = c_text(method_docstring(f, name))
                methods.append(f'TAEDA_PY_METHOD("{name}", function_{f.name}, {doc}),')
    end = "{nullptr, nullptr, 0, nullptr}};"
    pointers = ", ".join([f"&function_{f.name}" for f in functions] + ["nullptr"])
    struct_list = ", ".join([f"&{name}" for name in structs] + ["nullptr"])
    return [
        "PyMethodDef definitions[] = {",
        *definitions,
        end,
        "constexpr const char* modules[] = {",
        *modules,
        "nullptr};",
        "PyMethodDef methods[] = {",
        *methods,
        end,
        f"constexpr const Function* functions[] = {{{pointers}}};",
        f"StructType* const structs[] = {{{struct_list}}};",
        "}  // namespace",
        f"extern const FunctionShard function_shard_{index};",
        f"const FunctionShard function_shard_{index} = "
        "{functions, definitions, modules, methods, structs};",
    ]


def _shard(index: int, functions: list[PyFunction]) -> str:
    bases = sorted({f.record.name for f in functions})
    lines = ["#include <taeda/csrc/python/generated.h>"]
    lines += [f"#include <taeda/gen/ops/{base}.h>" for base in bases]
    lines += ["", "namespace taeda::python {", "namespace {"]
    structs: dict[str, list[str]] = {}
    for function in functions:
        lines += _function(function, structs)
    lines += _tables(index, functions, structs)
    return "\n".join([*lines, "}  // namespace taeda::python", ""])


def _registry(functions: list[PyFunction]) -> str:
    lines = ["#include <taeda/csrc/python/arg_parser.h>", ""]
    lines += ["namespace taeda::python {"]
    names = [f"function_shard_{i}" for i in range(PYTHON_SHARDS)]
    lines += [f"extern const FunctionShard {name};" for name in names]
    pointers = ", ".join(f"&{name}" for name in names)
    lines.append("const FunctionShard* const function_shards[] = {")
    lines += [f"    {pointers}, nullptr}};", "}  // namespace taeda::python", ""]
    return "\n".join(lines)
