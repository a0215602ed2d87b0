"""What the emitters print from: operators in all their forms, with their C++ types.

A record has overloads; an overload has forms (functional, in-place, `out=`); each form
is one operator of the dispatcher. Every emitter asks this module for names and types,
so that they agree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from .record_types import (
    Composite,
    Foreach,
    Kernel,
    Overload,
    Pointwise,
    Record,
    View,
)
from .records import load_records
from .schema import Argument, Schema, Type

# (plain, optional) C++ parameter types of schema types that are no lists.
_PLAIN: dict[str, tuple[str, str]] = {
    "Tensor": ("const Tensor&", "const OptionalTensor&"),
    "Scalar": ("const Scalar&", "const std::optional<Scalar>&"),
    "int": ("int64_t", "std::optional<int64_t>"),
    "SymInt": ("int64_t", "std::optional<int64_t>"),
    "float": ("double", "std::optional<double>"),
    "bool": ("bool", "std::optional<bool>"),
    "str": ("std::string_view", "std::optional<std::string_view>"),
    "ScalarType": ("ScalarType", "std::optional<ScalarType>"),
    "Layout": ("Layout", "std::optional<Layout>"),
    "Device": ("Device", "std::optional<Device>"),
    "MemoryFormat": ("MemoryFormat", "std::optional<MemoryFormat>"),
    "Generator": ("const Generator&", "const std::optional<Generator>&"),
}
# Element types of lists; Tensor lists have names of their own.
_ELEMENT: dict[str, str] = {
    "int": "int64_t",
    "SymInt": "int64_t",
    "float": "double",
    "bool": "bool",
    "Scalar": "Scalar",
}


def cpp_type(kind: Type) -> str:
    """The C++ parameter type of a schema type."""
    if kind.is_list:
        optional_list = kind.is_optional
        inner = kind.element if optional_list else kind
        if inner.element.is_optional:
            return "ArrayRef<OptionalTensor>"
        if kind.base == "Tensor":
            text = "TensorList"
        else:
            text = f"ArrayRef<{_ELEMENT[kind.base]}>"
        return f"std::optional<{text}>" if optional_list else text
    plain, optional = _PLAIN[kind.base]
    return optional if kind.is_optional else plain


def shape_type(kind: Type) -> str:
    """The parameter type of a schema type in shape rules (Note [Shape rules])."""
    text = cpp_type(kind)
    if kind.base == "Tensor":
        return "SpecList<I>" if kind.is_list else "const Spec<I>&"
    return text.replace("int64_t", "I") if kind.base == "SymInt" else text


def rule_type(kind: Type) -> str:
    """The same in the rules of views (Note [View rules])."""
    return "ViewGeometry<I>" if kind.base == "Tensor" else shape_type(kind)


def rule_result(schema: Schema) -> str:
    """What a view's rule gives: where each view lies."""
    several = schema.returns[0].type.is_list
    return "ViewGeometries<I>" if several else "ViewGeometry<I>"


def shape_rule(op: Operator) -> str:
    """The shape rule of an overload, behind which its dtypes are checked."""
    body = op.overload.body
    if not body.takes.refused_kinds:
        return body.shape
    return f"{base_ident(op)}__shape"


def base_ident(op: Operator) -> str:
    """The name in C++ that all forms of an overload share."""
    parts = [op.functional.base, op.functional.overload]
    return "_".join(part for part in parts if part)


def symbolic_rule(op: Operator) -> tuple[str, str] | None:
    """The rule of an overload over SymInt: its name and its C++ type."""
    body, schema = op.overload.body, op.functional
    if isinstance(body, Kernel) and body.shape is not None:
        name, result = shape_rule(op), "void"
        types = [shape_type(a.type) for a in schema.arguments]
    elif isinstance(body, View) and body.rule is not None:
        name, result = body.rule, rule_result(schema)
        types = [rule_type(a.type) for a in schema.arguments]
    else:
        return None
    text = f"{result}({', '.join(types)})"
    return name, re.sub(r"\bI\b", "SymInt", text)


def symbolic_type(kind: Type) -> str:
    """The parameter type of a schema type where integers may be symbols."""
    text = cpp_type(kind)
    if kind.base != "SymInt":
        return text
    text = text.replace("int64_t", "SymInt")
    return text if kind.is_list else f"const {text}&"


def has_symbols(schema: Schema) -> bool:
    """Whether an argument is an integer, or a list of them, that may be a symbol."""
    return any(a.type.base == "SymInt" for a in schema.arguments)


def owned_type(kind: Type) -> str:
    """The type that keeps such an argument alive (autograd nodes, stacks)."""
    text = cpp_type(kind)
    if kind.base == "SymInt":
        text = text.replace("int64_t", "SymInt")
    for borrowed, owned in (
        ("ArrayRef<OptionalTensor>", "std::vector<OptionalTensor>"),
        ("TensorList", "std::vector<Tensor>"),
        ("ArrayRef<bool>", "SmallVector<bool, 4>"),
        ("ArrayRef<int64_t>", "DimVector"),
        ("ArrayRef<SymInt>", "Dims<SymInt>"),
        ("ArrayRef<double>", "std::vector<double>"),
        ("ArrayRef<Scalar>", "std::vector<Scalar>"),
        ("std::string_view", "std::string"),
    ):
        text = text.replace(borrowed, owned)
    return text.removeprefix("const ").removesuffix("&")


def cpp_return(schema: Schema) -> str:
    """The C++ result type; writing forms return nothing."""
    if schema.mutable_args:
        return "void"
    kinds = [_return_type(r.type) for r in schema.returns]
    if not kinds:
        return "void"
    return kinds[0] if len(kinds) == 1 else f"std::tuple<{', '.join(kinds)}>"


def _return_type(kind: Type) -> str:
    if kind.is_list:
        return "std::vector<Tensor>" if kind.base == "Tensor" else "DimVector"
    return {
        "Tensor": "Tensor",
        "Scalar": "Scalar",
        "bool": "bool",
        "int": "int64_t",
        "SymInt": "int64_t",
        "float": "double",
        "ScalarType": "ScalarType",
    }[kind.base]


@dataclass(frozen=True)
class Operator:
    """One form of one overload: an entry of the dispatcher."""

    record: Record
    overload: Overload
    schema: Schema
    form: str  # functional | inplace | out
    functional: Schema  # the schema that a derived form comes from
    # C++ names in namespace ops to the base name that declares them.
    bases: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    # Those of them that have a function over symbols in namespace sym.
    symbolic: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def ident(self) -> str:
        """Unique C++ identifier: `add_Tensor`, `add__Tensor`, `add_out`."""
        parts = [self.schema.base, self.schema.overload]
        return "_".join(part for part in parts if part)

    @property
    def cpp_name(self) -> str:
        """The name in namespace ops: `add`, `add_`, `add_out`."""
        if self.form == "out":
            return f"{self.schema.base}_out"
        return self.schema.base

    def known_base(self, cpp_name: str) -> str | None:
        """The base name whose header declares `ops::cpp_name`."""
        return self.bases.get(cpp_name)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.schema.arguments

    @property
    def result(self) -> str:
        return cpp_return(self.schema)

    def parameters(self, defaults: int = 0) -> str:
        """`const Tensor& self, const Scalar& alpha = 1`: so many trailing defaults."""
        trailing = defaults
        count = len(self.arguments)
        parts = []
        for i, a in enumerate(self.arguments):
            text = f"{cpp_type(a.type)} {a.name}"
            if i >= count - trailing:
                text += f" = {cpp_default(a)}"
            parts.append(text)
        return ", ".join(parts)

    def trailing_defaults(self) -> int:
        """How many arguments at the end have one."""
        count = 0
        for a in reversed(self.arguments):
            if not a.has_default:
                break
            count += 1
        return count

    def types(self) -> str:
        return ", ".join(cpp_type(a.type) for a in self.arguments)

    def names(self) -> str:
        return ", ".join(a.name for a in self.arguments)

    @property
    def signature(self) -> str:
        """The C++ function type, which boxing adapters are shared by."""
        return f"{self.result}({self.types()})"


def cpp_default(argument: Argument) -> str:
    """A default value as C++ text."""
    value, kind = argument.default, argument.type
    if value is None:
        return "std::nullopt"
    if kind.base == "MemoryFormat":
        return f"static_cast<MemoryFormat>({value})"
    if kind.base == "ScalarType":
        return f"static_cast<ScalarType>({value})"
    if kind.base == "Layout":
        return f"static_cast<Layout>({value})"
    if isinstance(value, bool):
        text = "true" if value else "false"
        return f"Scalar({text})" if kind.base == "Scalar" else text
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, tuple):
        inner = ", ".join(repr(v).lower() for v in value)
        return f"{cpp_type(kind)}({{{inner}}})" if value else f"{cpp_type(kind)}()"
    if kind.is_list:  # int[2] stride=1 stands for [1, 1]
        size = kind.list_size or 1
        return f"{cpp_type(kind)}({{{', '.join([str(value)] * size)}}})"
    if kind.base == "Scalar":
        return f"Scalar({value!r})"
    return repr(value)


def shard_of(name: str, shards: int) -> int:
    """Stable shard of a base name, so that a new record rebuilds few files."""
    return int.from_bytes(hashlib.sha1(name.encode()).digest()[:4], "big") % shards


def load_operators(records: Path) -> list[Operator]:
    """All operators of a folder of records, in the order of their base names."""
    return operators_of(load_records(records))


def operators_of(records: Iterable[Record]) -> list[Operator]:
    """Every form of every overload of the records and of their alias names."""
    bases: dict[str, str] = {}
    symbolic: set[str] = set()
    found: list[Operator] = []
    for record in records:
        for overload in record.overloads:
            for form, schema in overload.schemas.items():
                op = Operator(
                    record, overload, schema, form, overload.schema, bases, symbolic
                )
                bases[op.cpp_name] = record.name
                functional = form == "functional" and not schema.mutable_args
                if functional and has_symbols(schema):
                    symbolic.add(op.cpp_name)
                found.append(op)
    return found


def has_wrapper(op: Operator) -> bool:
    """Whether the operator has a function of its own at the autograd key."""
    composite = isinstance(op.overload.body, Composite | Foreach)
    if composite and op.overload.backward is None:
        return False
    backward = op.overload.backward
    if backward is not None and not backward.differentiable:
        # What is written in place still loses its history.
        return op.form == "inplace" and isinstance(op.overload.body, Pointwise)
    return any(a.type.is_tensor_like for a in op.functional.arguments)


def element_of(op: Operator) -> Operator | None:
    """The operator that one of lists calls for each entry; None for all others."""
    body = op.overload.body
    if not isinstance(body, Foreach):
        return None
    schema = body.element.schemas[op.form]
    return replace(op, overload=body.element, schema=schema, functional=schema)


def means_name(op: Operator) -> str | None:
    """The function in taeda::native that defines a kernel; None where none does."""
    body = op.overload.body
    if op.form != "functional" or not isinstance(body, Kernel) or body.means is None:
        return None
    return f"{op.ident}__means"


def numbers_name(op: Operator) -> str | None:
    """The function that works out the numbers of a formula; None without any."""
    if op.form != "functional" or not getattr(op.overload.body, "numbers", None):
        return None
    return f"{op.ident}__numbers"


def is_factory_like(schema: Schema) -> bool:
    """Makes a tensor on the device that its `device` argument names."""
    return any(a.name == "device" and a.type.is_optional for a in schema.arguments)
