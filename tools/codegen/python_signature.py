"""Python signatures: what a caller of an operator may write, derived from its schema.

A functional overload and its `out=` form share one Python signature; factory functions
get `requires_grad`; deprecated orders of arguments become signatures of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .model import Operator
from .python_overloads import DEPRECATED, INPLACE_FUNCTIONS, overload_order
from .record_types import Foreach, Record
from .schema import Argument, Type, format_default, parse_schema, parse_type
from .schema_types import TENSOR_OPTIONS

# Other keywords that PyTorch takes for these names (NumPy's).
_KEYWORD_ALIASES: dict[str, tuple[str, ...]] = {
    "dim": ("axis",),
    "keepdim": ("keepdims",),
    "input": ("x", "a", "x1"),
    "other": ("x2",),
}
# Overloads that PyTorch's messages do not name, because its Tensor parameters take
# Python numbers there.
_HIDDEN = frozenset(
    f"{base}.Scalar"
    for base in (
        *("add", "sub", "mul", "div", "logical_and", "logical_or"),
        *("add_", "sub_", "mul_", "div_", "true_divide", "true_divide_"),
        *("multiply", "subtract", "divide", "floor_divide", "floor_divide_"),
    )
)
_PARAM_TYPES: dict[str, str] = {
    "Tensor": "Tensor",
    "Scalar": "Scalar",
    "int": "Int",
    "SymInt": "Int",
    "float": "Float",
    "bool": "Bool",
    "str": "Text",
    "ScalarType": "Dtype",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}
_LIST_TYPES: dict[str, str] = {
    "int": "IntList",
    "SymInt": "IntList",
    "float": "FloatList",
    "bool": "BoolList",
    "Scalar": "ScalarList",
    "Tensor": "TensorList",
}
_SHOWN_TYPES: dict[str, str] = {
    "Scalar": "Number",
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "Text": "str",
    "Dtype": "taeda.dtype",
    "Layout": "taeda.layout",
    "Device": "taeda.device",
    "MemoryFormat": "taeda.memory_format",
    "Generator": "taeda.Generator",
    "IntList": "tuple of ints",
    "FloatList": "tuple of floats",
    "BoolList": "tuple of bools",
    "ScalarList": "tuple of Scalars",
    "TensorList": "tuple of Tensors",
    "OptionalTensorList": "tuple of Tensors",
}


@dataclass(frozen=True)
class PyParam:
    """One parameter; `argument` is the schema's, None for those added for Python."""

    name: str
    type: str  # an enumerator of ParamType
    has_default: bool = False
    default: str = "None"  # as shown
    keyword_only: bool = False
    nullable: bool = False
    size: int = 0
    variadic: bool = False
    number: bool = False  # a Tensor parameter that takes Python numbers as well
    aliases: tuple[str, ...] = ()
    argument: Argument | None = None

    @property
    def shown(self) -> str:
        """`Number alpha = 1`."""
        kind = _SHOWN_TYPES.get(self.type, self.type)
        tail = f" = {self.default}" if self.has_default else ""
        return f"{kind} {self.name}{tail}"

    @property
    def plain(self) -> str:
        """`alpha=1`."""
        return f"{self.name}={self.default}" if self.has_default else self.name


@dataclass(frozen=True)
class PySignature:
    """Parameters in the order of the slots, and the operators they call."""

    operator: Operator
    out: Operator | None
    params: tuple[PyParam, ...]
    self_index: int  # of the method's object, -1 for functions only
    deprecated: bool = False
    hidden: bool = False

    @property
    def gives_list(self) -> bool:
        """In place over lists: they return the list, of which the schema is silent."""
        op = self.operator
        return isinstance(op.overload.body, Foreach) and bool(op.schema.mutable_args)

    def shown(self, method: bool) -> str:
        """`(Tensor input, *, Number alpha = 1)`."""
        return self._text(method, lambda p: p.shown)

    def plain(self, method: bool) -> str:
        """`(input, *, alpha=1)`."""
        return self._text(method, lambda p: p.plain)

    def _text(self, method: bool, show) -> str:
        parts: list[str] = []
        starred = False
        for i, p in enumerate(self.params):
            if method and (i == self.self_index or p.name == "out"):
                continue
            if p.keyword_only and not starred:
                parts.append("*")
                starred = True
            parts.append(show(p))
        return f"({', '.join(parts)})"


@dataclass
class PyFunction:
    """A name with its signatures, in the order in which they are tried."""

    name: str
    record: Record
    signatures: list[PySignature] = field(default_factory=list)
    is_function: bool = False
    is_method: bool = False


def param_type(kind: Type) -> str:
    """The enumerator of ParamType for a schema type."""
    if not kind.is_list:
        return _PARAM_TYPES[kind.base]
    inner = kind.element if kind.is_optional else kind
    if inner.element.is_optional:
        return "OptionalTensorList"
    return _LIST_TYPES[kind.base]


def _shown_default(argument: Argument) -> str:
    value = argument.default
    base = argument.type.base
    if base == "MemoryFormat" and isinstance(value, int):
        names = ("contiguous_format", "preserve_format", "channels_last")
        return f"taeda.{names[value]}"
    if argument.name == "pin_memory" and value is None:
        return "False"
    if isinstance(value, tuple):
        return f"({', '.join(format_default(v) for v in value)})"
    if isinstance(value, float):
        return repr(value)
    return format_default(value)


def _for_python(argument: Argument) -> Argument:
    """The argument with the default of a call from Python.

    PyTorch's parser of such calls reads the constant that its schemas have for a mean
    as 0: a loss that is called without `reduction` gives one value for each element
    (`torch.kl_div(x, y)`), while the overload (`torch.ops.aten.kl_div`) gives the mean.
    """
    if argument.name == "reduction" and argument.default == 1:
        return replace(argument, default=0)
    return argument


def _param(argument: Argument, record: Record) -> PyParam:
    argument = _for_python(argument)
    name = argument.name
    if name == "self" and argument.type.is_tensor:
        name = "input"
    aliases = _KEYWORD_ALIASES.get(name, ())
    aliases += tuple(k for k, v in record.python.arg_aliases.items() if v == name)
    # An empty list by default is what None means, too.
    none_default = argument.has_default and argument.default in (None, ())
    return PyParam(
        name=name,
        type=param_type(argument.type),
        has_default=argument.has_default,
        default=_shown_default(argument),
        keyword_only=argument.kwarg_only,
        nullable=argument.type.is_optional or none_default,
        size=argument.type.list_size or 0,
        aliases=aliases,
        argument=argument,
    )


def _out_param(out: Operator) -> PyParam:
    outs = out.schema.out_args
    single = len(outs) == 1 and not outs[0].type.is_list
    kind = "Tensor" if single else "TensorList"
    return PyParam("out", kind, True, keyword_only=True, nullable=True, size=len(outs))


def signature_of(op: Operator, out: Operator | None) -> PySignature:
    """The Python signature of an overload with its `out=` form."""
    record = op.record
    params = [_param(a, record) for a in op.arguments]
    if out is not None:
        at = len(params)
        if op.schema.is_factory:
            at = [a.name for a in op.arguments].index("dtype")
        params.insert(at, _out_param(out))
    if op.schema.is_factory:
        grad = PyParam("requires_grad", "Bool", True, "False", keyword_only=True)
        params.append(grad)
    names = [p.argument.name if p.argument else p.name for p in params]
    self_index = -1
    if "method" in op.overload.variants and "self" in names:
        self_index = names.index("self")
    positional = [
        i for i, p in enumerate(params) if not p.keyword_only and i != self_index
    ]
    if len(positional) == 1 and params[positional[0]].type == "IntList":
        params[positional[0]] = replace(params[positional[0]], variadic=True)
    hidden = op.schema.name in _HIDDEN
    if hidden:
        params = [
            replace(p, keyword_only=p.keyword_only or p.has_default) for p in params
        ]
    return PySignature(op, out, tuple(params), self_index, hidden=hidden)


def _with_numbers(signature: PySignature) -> PySignature:
    """The last resort of `add(2, x)` and `add(x, 2, out=y)`."""
    params = [
        replace(p, number=p.type == "Tensor" and p.argument is not None)
        for p in signature.params
    ]
    return replace(signature, params=tuple(params), hidden=True)


def number_forms(given: list[PySignature]) -> list[PySignature]:
    """Signatures in which Tensor parameters take Python numbers."""
    operator = given[0].operator
    by_overloads = any(s.hidden for s in given) and operator.form == "functional"
    if not by_overloads and not operator.record.python.numbers:
        return []
    return [_with_numbers(s) for s in given if not s.hidden]


def deprecated_of(record: Record, given: list[PySignature]) -> list[PySignature]:
    """Signatures for the record's deprecated orders of arguments."""
    found = []
    for text in _deprecated_schemas(record, given[0].operator.schema.base):
        schema = parse_schema(text if "->" in text else f"{text} -> Tensor")
        wanted = {a.name: str(a.type) for a in schema.arguments}
        for signature in given:
            if signature.operator.schema.base != schema.base:
                continue
            by_name = {p.argument.name: p for p in signature.params if p.argument}
            types = {n: _bare(str(p.argument.type)) for n, p in by_name.items()}
            if all(types.get(n) == _bare(t) for n, t in wanted.items()):
                found.append(_reordered(signature, schema.arguments, by_name))
                break
    return found


def _deprecated_schemas(record: Record, base: str) -> list[str]:
    orders = DEPRECATED.get(base.removesuffix("_"), ())
    return [*record.python.deprecated, *(f"{base}({order})" for order in orders)]


def _bare(text: str) -> str:
    return str(parse_type(text).with_alias(None))


def _reordered(
    signature: PySignature,
    order: tuple[Argument, ...],
    by_name: dict[str, PyParam],
) -> PySignature:
    params = [
        replace(by_name[a.name], keyword_only=a.kwarg_only, has_default=a.has_default)
        for a in order
    ]
    params += [p for p in signature.params if p.name == "out" and not p.argument]
    names = [a.name for a in order]
    self_index = names.index("self") if signature.self_index >= 0 else -1
    return replace(
        signature, params=tuple(params), self_index=self_index, deprecated=True
    )


def _inplace_function(op: Operator) -> bool:
    """`relu_(x)` is a function as well, as all are of lists; `add_` is no function."""
    of_list = op.schema.arguments[0].type.is_list
    return of_list or op.schema.base.removesuffix("_") in INPLACE_FUNCTIONS


def _is_written_out(op: Operator) -> bool:
    """An `out=` form that the record writes as an overload of its own."""
    return op.form == "functional" and op.schema.is_out


def _inputs_key(op: Operator) -> tuple[str, str]:
    outs = op.schema.out_args
    # A factory's options come from the out tensor.
    dropped = TENSOR_OPTIONS if op.schema.is_factory else ()
    rest = [str(a) for a in op.arguments if a not in outs and a.name not in dropped]
    return op.schema.base, ", ".join(rest)


def python_functions(operators: Iterable[Operator]) -> list[PyFunction]:
    """All Python functions of the operators, sorted by name."""
    listed = list(operators)
    outs = {id(op.overload): op for op in listed if op.form == "out"}
    written = {_inputs_key(op): op for op in listed if _is_written_out(op)}
    found: dict[str, PyFunction] = {}
    for op in listed:
        if op.form == "out" or _is_written_out(op):
            continue
        if op.record.python.module == "none":
            continue
        name = op.schema.base
        function = found.setdefault(name, PyFunction(name, op.record))
        out = None
        if op.form == "functional":
            out = outs.get(id(op.overload)) or written.get(_inputs_key(op))
        function.signatures.append(signature_of(op, out))
        if op.form == "inplace":
            function.is_function |= _inplace_function(op)
        else:
            function.is_function |= "function" in op.overload.variants
        function.is_method |= "method" in op.overload.variants
    for function in found.values():
        order = overload_order([s.operator.schema for s in function.signatures])
        given = [function.signatures[i] for i in order]
        function.signatures = list(given)
        function.signatures += deprecated_of(function.record, given)
        function.signatures += number_forms(given)
    shown = (f for f in found.values() if f.is_function or f.is_method)
    return sorted(shown, key=lambda f: f.name)


def by_record(functions: Iterable[PyFunction]) -> dict[str, list[PyFunction]]:
    """Functions grouped by the record they come from."""
    found: dict[str, list[PyFunction]] = defaultdict(list)
    for function in functions:
        found[function.record.name].append(function)
    return found


def all_names(function: PyFunction) -> list[str]:
    """The Python name and its aliases."""
    record, name = function.record, function.name
    tail = name[len(record.name) :] if name.startswith(record.name) else ""
    main = record.python.name
    names = [f"{main}{tail}" if main else name]
    names += [f"{a}{tail}" for a in (*record.python.aliases, *record.alias_names)]
    return list(dict.fromkeys(names))
