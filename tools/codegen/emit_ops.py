"""Prints the operator functions, their dispatcher entries and their derived forms.

Per base name a header `include/ops/BASE.h` (declarations) and, where kernels are
written by hand, `include/native/BASE.h`; in shards the entries, the public functions
and the backend functions that derive in-place and `out=` forms.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from .choices import When, conditions
from .emit_foreach import foreach_body
from .emit_info import info_tables, kernel_rule, rule_of
from .emit_planned import (
    dtype_checked_rule,
    functional_arguments,
    on_meta,
    output_names,
    planned_derived,
    planned_functional,
    planned_writing,
    repeats_of,
)
from .model import (
    Operator,
    cpp_return,
    cpp_type,
    element_of,
    has_wrapper,
    is_factory_like,
    means_name,
    numbers_name,
    rule_result,
    rule_type,
    shape_type,
    shard_of,
)
from .pointwise import PointwiseKernel, op_kernels
from .record_types import (
    Autocast,
    Composite,
    Foreach,
    Kernel,
    Pointwise,
    Reduction,
    View,
)
from .reduction import descriptor as reduce_descriptor
from .reduction import reduction_call, reduction_kernels
from .writer import Output

OPS_SHARDS = 12
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes all files of this emitter."""
    by_base: dict[str, list[Operator]] = defaultdict(list)
    for op in operators:
        by_base[op.record.name].append(op)
    shards: list[list[Operator]] = [[] for _ in range(OPS_SHARDS)]
    for base, ops in sorted(by_base.items()):
        out.write(f"include/ops/{base}.h", _ops_header(ops))
        natives = native_declarations(ops)
        if natives:
            out.write(f"include/native/{base}.h", _native_header(natives))
        shards[shard_of(base, OPS_SHARDS)] += ops
    for i, ops in enumerate(shards):
        out.write(f"ops/ops_{i}.cpp", _shard(i, ops))
    out.write("ops/register.cpp", _register())


# Declarations ---------------------------------------------------------------


def _ops_header(ops: list[Operator]) -> str:
    lines = ["#pragma once", "#include <taeda/aten/core/op_types.h>", ""]
    lines += ["namespace taeda::ops {", "namespace entries {"]
    # The library's own: every exported object costs each program's start a search.
    lines += [f"extern OperatorEntry {op.ident};" for op in ops]
    lines += ["}  // namespace entries"]
    taken: set[tuple[str, ...]] = set()
    for op in ops:
        parameters = op.parameters(defaults=_usable_defaults(op, taken))
        lines.append(f"TAEDA_API {op.result} {op.cpp_name}({parameters});")
    return "\n".join([*lines, "}  // namespace taeda::ops", ""])


def _usable_defaults(op: Operator, taken: set[tuple[str, ...]]) -> int:
    """How many trailing defaults leave no call that an earlier overload takes too."""
    types = tuple(cpp_type(a.type) for a in op.arguments)
    usable = 0
    while usable < op.trailing_defaults() and (
        (op.cpp_name, *types[: len(types) - usable - 1]) not in taken
    ):
        usable += 1
    for count in range(len(types) - usable, len(types) + 1):
        taken.add((op.cpp_name, *types[:count]))
    return usable


def default_count(op: Operator, overloads: Iterable[Operator]) -> int:
    """How many trailing defaults C++ can have without two overloads for one call.

    `all(self)` and `all.dims(self, dim=None)` are told apart in Python by order.
    """
    count = op.trailing_defaults()
    types = [cpp_type(a.type) for a in op.arguments]
    for other in overloads:
        if other is op or other.cpp_name != op.cpp_name:
            continue
        theirs = [cpp_type(a.type) for a in other.arguments]
        # The overload that needs fewer arguments keeps its defaults.
        if len(theirs) > len(types):
            continue
        least = len(theirs) - other.trailing_defaults()
        for arity in range(least, len(theirs) + 1):
            clash = len(types) - count <= arity < len(types)
            if clash and types[:arity] == theirs[:arity]:
                count = len(types) - arity - 1
    return count


def native_declarations(ops: Iterable[Operator]) -> list[str]:
    """`Tensor name(args)` of every hand-written function that the operators name."""
    found: dict[str, None] = {}
    for op in ops:
        if op.form != "functional" and op.schema != op.overload.schema:
            continue
        for name, kind in native_functions(op):
            found[f"{_native_signature(op, name, kind)};"] = None
    return list(found)


def native_functions(op: Operator) -> list[tuple[str, str]]:
    """(function, kind) pairs; kind is plain, check, shape, rule or impl."""
    body = op.overload.body
    if isinstance(body, View):
        rule = [(body.rule, "rule")] if body.rule else []
        return [(body.geometry, "plain"), *rule]
    if isinstance(body, Composite):
        return [(body.call, "plain")] if _is_name(body.call) else []
    if isinstance(body, Pointwise | Reduction):
        return [(body.check, "check")] if body.check else []
    if not isinstance(body, Kernel):
        return []
    named = [
        (body.shape, "shape"),
        (body.cpu or body.any, "plain" if body.shape is None else "impl"),
        (body.means, "plain"),
    ]
    return [(name, kind) for name, kind in named if name and _is_name(name)]


def _is_name(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text.strip()) is not None


def _native_signature(op: Operator, name: str, kind: str) -> str:
    schema = op.overload.schema
    params = [f"{cpp_type(a.type)} {a.name}" for a in schema.arguments]
    if kind == "check":
        return f"void {name}({', '.join(params)})"
    if kind == "shape":
        params = [f"{shape_type(a.type)} {a.name}" for a in schema.arguments]
        params.append("Plan<I>& plan")
        return f"template <class I> void {name}({', '.join(params)})"
    if kind == "rule":
        params = [f"{rule_type(a.type)} {a.name}" for a in schema.arguments]
        return f"template <class I> {rule_result(schema)} {name}({', '.join(params)})"
    if kind == "impl":
        # What is written into is among the arguments already.
        returns = () if schema.mutable_args else schema.returns
        outs = [
            f"{'TensorList' if r.type.is_list else 'const Tensor&'} {n}"
            for r, n in zip(returns, output_names(schema), strict=False)
        ]
        return f"void {name}({', '.join(params + outs)})"
    return f"{cpp_return(schema)} {name}({', '.join(params)})"


def _native_header(declarations: list[str]) -> str:
    lines = ["#pragma once", "#include <taeda/aten/core/op_types.h>"]
    lines += ["#include <taeda/aten/iter/output.h>"]
    if any("ViewGeometr" in text for text in declarations):
        lines += ["#include <taeda/aten/iter/view_geometry.h>"]
    lines += ["", "namespace taeda::native {"]
    lines += declarations
    return "\n".join([*lines, "}  // namespace taeda::native", ""])


# Definitions ----------------------------------------------------------------


def _shard(index: int, ops: list[Operator]) -> str:
    bases = sorted({op.record.name for op in ops})
    lines = [f"#include <taeda/gen/ops/{base}.h>" for base in bases]
    lines += [
        f"#include <taeda/gen/native/{base}.h>"
        for base in bases
        if native_declarations([op for op in ops if op.record.name == base])
    ]
    lines += [
        "#include <taeda/aten/core/boxing.h>",
        "#include <taeda/aten/core/op_info.h>",
        "#include <taeda/aten/iter/copy.h>",
        "#include <taeda/aten/iter/output.h>",
        "#include <taeda/aten/iter/derived.h>",
        "#include <taeda/aten/iter/exact_out.h>",
        "#include <taeda/aten/iter/factory_keys.h>",
        "#include <taeda/aten/iter/foreach.h>",
        "#include <taeda/aten/iter/pointwise_forms.h>",
        "#include <taeda/aten/iter/reduce.h>",
        "#include <taeda/aten/iter/symbolic.h>",
        "#include <taeda/aten/native/formula_support.h>",
        "#include <taeda/gen/ops/clone.h>" if index >= 0 else "",
        "#include <taeda/gen/ops/copy_.h>" if index >= 0 else "",
    ]
    lines += sorted(_composite_includes(ops))
    lines += ["", "namespace taeda {"]
    tables = [t for op in ops for t in _tables(op)]
    lines += list(dict.fromkeys(tables))
    wrapped = [op for op in ops if has_wrapper(op)]
    lines += ["namespace autograd::wrappers {"]
    lines += [f"{op.result} {op.ident}({op.types()});" for op in wrapped]
    lines += ["}", "namespace native {", "namespace {"]
    lines += [line for op in ops for line in dtype_checked_rule(op)]
    for op in ops:
        lines += _backend(op)
    lines += ["}", *(line for op in ops for line in _means(op))]
    lines += [line for op in ops for line in _numbers(op)]
    lines += ["}  // namespace native", "namespace ops {"]
    lines += [line for op in ops for line in info_tables(op)]
    for op in ops:
        lines += _public(op)
    lines += ["}  // namespace ops", f"extern OperatorEntry* const kEntries{index}[];"]
    pointers = ", ".join([f"&ops::entries::{op.ident}" for op in ops] + ["nullptr"])
    lines += [f"OperatorEntry* const kEntries{index}[] = {{{pointers}}};"]
    return "\n".join([*lines, "}  // namespace taeda", ""])


def _composite_includes(ops: list[Operator]) -> set[str]:
    found: set[str] = set()
    for op in ops:
        body = op.overload.body
        text = ""
        if isinstance(body, Composite):
            text = body.call
        elif isinstance(body, Kernel):
            text = f"{body.means or ''} {body.any or ''}"
        called = re.findall(r"ops::(\w+)\(", text)
        element = element_of(op)
        if element is not None:
            called.append(element.cpp_name)
        for name in called:
            base = op.known_base(name)
            if base is not None:
                found.add(f"#include <taeda/gen/ops/{base}.h>")
    return found


def _tables(op: Operator) -> list[str]:
    body = op.overload.body
    if isinstance(body, Pointwise):
        kernels = op_kernels(op)
        tables = [t for k in kernels for t in isa_tables("ChunkTable", k.name)]
        return [*tables, *(_descriptor(op, kernel) for kernel in kernels)]
    if isinstance(body, Reduction):
        reductions = reduction_kernels(op.record, op.overload)
        tables = [t for r in reductions for t in isa_tables("ReduceTable", r.name)]
        return [*tables, *(reduce_descriptor(op, r, rule_of(op)) for r in reductions)]
    return []


def isa_tables(kind: str, name: str) -> list[str]:
    """Declarations of a kernel table's copies."""
    return [
        f"namespace isa_{level} {{ extern const {kind} {name}; }}"
        for level in ("default", "avx2", "avx512")
    ]


def _descriptor(op: Operator, kernel: PointwiseKernel) -> str:
    return (
        f"static constexpr PointwiseOp {kernel.descriptor} = {{"
        f'"{op.record.name}", {len(kernel.operands)}, {len(kernel.scalars)}, '
        f"{kernel_rule(op, kernel)}, TAEDA_LEVELS({kernel.name})}};"
    )


def _backend(op: Operator) -> list[str]:
    """The function that stands in the backend slots."""
    head = f"{op.result} {op.ident}__backend({op.parameters()}) {{"
    checks = [f"derived::check_writable({a.name});" for a in _written(op)]
    body = checks + _pinning(op) + _backend_body(op)
    return [head, *("  " + line for line in body), "}"]


def _pinning(op: Operator) -> list[str]:
    """Page-locked memory: a copy in it of what the function makes without."""
    if op.form != "functional" or not op.schema.makes_memory:
        return []
    like_self = any(a.name == "self" for a in op.schema.tensor_args)
    otherwise = "self.device()" if like_self else "default_device()"
    device = f"device ? *device : {otherwise}"
    plain = op.names().replace("pin_memory", "std::nullopt")
    return [
        "if (TAEDA_UNLIKELY(pin_memory.value_or(false)) &&",
        f'    derived::pins("{op.record.name}", {device})) {{',
        f"  return {op.result}(derived::pinned({op.ident}__backend({plain})));",
        "}",
    ]


def _backend_body(op: Operator) -> list[str]:
    body = op.overload.body
    bump = [f"{a.name}.impl()->bump_version();" for a in _written(op)]
    if isinstance(body, Pointwise):
        return _check(op, body.check) + _pointwise_body(op) + bump
    if isinstance(body, Reduction):
        return _check(op, body.check) + _reduction_body(op) + bump
    if isinstance(body, Foreach):
        return foreach_body(op)
    if op.form == "functional":
        lines = _functional_body(op, body)
        if op.schema.mutable_args and not isinstance(body, Composite):
            lines += [line for line in bump if "[" not in line]
        return lines
    if isinstance(body, Kernel) and body.shape is not None:
        return planned_derived(op, body) + bump
    return _derived(op, isinstance(body, Composite)) + bump


def _means(op: Operator) -> list[str]:
    """The definition of a kernel by other operators, as a function of its type."""
    name = means_name(op)
    if name is None:
        return []
    text = op.overload.body.means.strip()
    if _is_name(text):
        text = f"return {text}({op.names()});"
    head = f"{op.result} {name}({op.parameters()})"
    return [f"{head};", f"{head} {{", *("  " + t for t in text.splitlines()), "}"]


def _numbers(op: Operator) -> list[str]:
    """The numbers of a formula in a tensor, as a function of the operator's type."""
    name = numbers_name(op)
    if name is None:
        return []
    head = f"{op.result} {name}([[maybe_unused]] {op.parameters()})"
    head = head.replace(", ", ", [[maybe_unused]] ")
    values = ", ".join(op.overload.body.numbers.values())
    return [f"{head};", f"{head} {{", f"  return numbers_tensor({{{values}}});", "}"]


def _check(op: Operator, function: str | None) -> list[str]:
    names = ", ".join(a.name for a in op.functional.arguments)
    return [f"native::{function}({names});"] if function else []


def _written(op: Operator):
    return [a for a in op.schema.mutable_args if not a.type.is_list]


def _pointwise_body(op: Operator) -> list[str]:
    kernels = op_kernels(op)
    return _chosen(op, [(k.when, _pointwise_call(op, k)) for k in kernels])


def _reduction_body(op: Operator) -> list[str]:
    kernels = reduction_kernels(op.record, op.overload)
    return _chosen(op, [(k.when, reduction_call(op, k)) for k in kernels])


def _chosen(op: Operator, calls: list[tuple[When, list[str]]]) -> list[str]:
    """The call of the choice that the arguments make."""
    if len(calls) == 1 and not calls[0][0]:
        return calls[0][1]
    lines = []
    word = "if"
    for when, call in calls:
        lines.append(f"{word} ({conditions(when, op.functional)}) {{")
        lines += [f"  {line}" for line in call]
        word = "} else if"
    names = dict.fromkeys(c.argument for when, _ in calls for c in when)
    return [
        *lines,
        "} else {",
        f'  refuse_choice("{op.record.name}", "{", ".join(names)}");',
        "}",
    ]


def _pointwise_call(op: Operator, kernel: PointwiseKernel) -> list[str]:
    body = op.overload.body
    assert isinstance(body, Pointwise)
    operands = _braced(_argument_text(op, name) for name in kernel.operands)
    scalars = _braced(
        f"Scalar({body.numbers[name]})"
        if name in body.numbers
        else _argument_text(op, name)
        for name in kernel.scalars
    )
    given = f"{kernel.descriptor}, {operands}, {scalars}"
    driver = "pointwise_row_major" if body.row_major else "pointwise"
    value = f"{driver}({given})"
    if op.form == "functional":
        if body.reduction is not None:
            value = f"reduced_loss({value}, {body.reduction})"
        return [f"return {value};"]
    if op.form == "inplace":
        if body.repeats == "refused":
            return [f"pointwise_inplace({given}, self);"]
        return [f"pointwise_inplace_in_turn({given}, self, {repeats_of(body)});"]
    out = op.schema.mutable_args[0].name
    writer = "pointwise_out" if body.casts_out else "pointwise_exact_out"
    plain = f"{writer}({given}, {out});"
    if body.reduction is None:
        return [plain]
    return [
        f"if ({body.reduction} == 0) {{",
        f"  {plain}",
        "} else {",
        f'  write_out("{op.record.name}", reduced_loss({value}, {body.reduction}), '
        f"{out});",
        "}",
    ]


def _argument_text(op: Operator, name: str) -> str:
    optional = op.functional.argument(name).type.is_optional
    return f"*{name}" if optional else name


def _braced(texts: Iterable[str]) -> str:
    return "{" + ", ".join(texts) + "}"


def _functional_body(op: Operator, body: object) -> list[str]:
    names = op.names()
    if isinstance(body, View):
        return [f"return native::{body.geometry}({names});"]
    if isinstance(body, Composite):
        if _is_name(body.call):
            return [f"return native::{body.call.strip()}({names});"]
        return body.call.strip().splitlines()
    assert isinstance(body, Kernel)
    if body.shape is not None:
        writes = bool(op.schema.mutable_args)
        return planned_writing(op, body) if writes else planned_functional(op, body)
    name = body.any or body.cpu
    if not _is_name(name):
        return name.strip().splitlines()
    returns = "" if op.result == "void" else "return "
    call = f"{returns}native::{name}({names});"
    if body.cpu is None or not op.schema.mutable_args:
        return [call]
    return [f"if (!{on_meta(op)}) {call}"]


def _derived(op: Operator, composite: bool) -> list[str]:
    """Computes the functional form, then writes into the caller's tensors."""
    base = op.functional.base
    arguments = functional_arguments(op)
    call = f"ops::{base}({', '.join(arguments)})"
    given = [a.name for a in op.schema.mutable_args]
    name = op.record.name
    if op.form == "inplace":
        if composite:
            # Nodes may save what is overwritten at the end.
            arguments[arguments.index("self")] = "before"
            return [
                "bool recorded = grad_enabled() && self.requires_grad();",
                "Tensor before = recorded ? ops::clone(self) : self;",
                f"Tensor result = ops::{base}({', '.join(arguments)});",
                f'derived::check_inplace("{name}", result, self);',
                "if (!result.is_same(self)) ops::copy_(self, result);",
            ]
        return [f'write_inplace("{name}", {call}, self);']
    if op.schema.mutable_args[0].type.is_list:
        return [f'derived::write_out_list("{name}", {call}, {given[0]});']
    laid = "contiguous({})" if op.overload.forms.row_major else "{}"
    body = op.overload.body
    casts = body.casts_out if isinstance(body, Composite) else True
    write = {
        True: "write_out",
        False: "derived::write_exact",
        "within_kind": "derived::write_within_kind",
        "safely": "derived::write_safely",
    }[casts]
    if len(given) == 1:
        return [f'{write}("{name}", {laid.format(call)}, {given[0]});']
    lines = [f"auto results = {call};"]
    for i, target in enumerate(given):
        result = laid.format(f"std::get<{i}>(results)")
        lines.append(f'{write}("{name}", {result}, {target});')
    return lines


def _public(op: Operator) -> list[str]:
    slots = _slots(op)
    lines = [f"OperatorEntry entries::{op.ident} = {{"]
    lines.append(f'    "{op.schema.base}", "{op.schema.overload}",')
    lines.append("    " + _quoted(str(op.schema)) + f", &info_{op.ident},")
    boxing = f"Boxing<{op.signature}>"
    lines.append(f"    reinterpret_cast<void*>(&{boxing}::to_boxed),")
    lines.append(f"    &{boxing}::from_stack, {{{', '.join(slots)}}}, {{}},")
    pointer = f"static_cast<{op.result} (*)({op.types()})>(&ops::{op.cpp_name})"
    lines.append(f"    {_present(op)}, reinterpret_cast<void*>({pointer}),")
    lines.append(f"    {_written_range(op)}}};")
    types = ", ".join(x for x in [op.result, op.types()] if x)
    names = "".join(f", {a.name}" for a in op.arguments)
    lines.append(f"{op.result} {op.cpp_name}({op.parameters()}) {{")
    lines.append(
        f"  return dispatch<{types}>(entries::{op.ident}, {_keys(op)}{names});"
    )
    return [*lines, "}"]


def _written_range(op: Operator) -> str:
    """Index of the first written argument that is a result, and how many there are."""
    count = len(op.schema.returns) if op.schema.mutable_args else 0
    if count == 0:
        return "0, 0"
    names = [a.name for a in op.arguments]
    return f"{names.index(op.schema.mutable_args[0].name)}, {count}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


BACKENDS = (
    "CPU",
    "CUDA",
    "Meta",
    "PrivateUse1",
    "SparseCPU",
    "SparseCUDA",
    "QuantizedCPU",
)
FEATURES = (
    *("Negative", "Conjugate", "ZeroTensor", "Symbolic"),
    *("Python", "Wrapped", "Functionalize", "Autograd"),
)


def _slots(op: Operator) -> list[str]:
    backends = backend_slots(op)
    cast = "reinterpret_cast<void*>(&{})"
    texts = []
    for key in (*BACKENDS, *FEATURES):
        if key in backends:
            texts.append(cast.format(f"native::{op.ident}__backend"))
        elif key == "Autograd" and has_wrapper(op):
            texts.append(cast.format(f"autograd::wrappers::{op.ident}"))
        else:
            texts.append("nullptr")
    while texts and texts[-1] == "nullptr":
        texts.pop()
    return texts


def backend_slots(op: Operator) -> tuple[str, ...]:
    """The backend keys that the backend function serves."""
    body = op.overload.body
    if isinstance(body, Composite | Foreach | View):
        return BACKENDS
    if isinstance(body, Pointwise | Reduction):
        # Planned for all devices; the launcher of each runs the loop.
        return ("CPU", "CUDA", "Meta")
    if isinstance(body, Kernel):
        # What reads elements to know its sizes needs memory, unless it is told.
        if {"data_dependent_output", "dynamic_output_shape"} & {*op.overload.tags}:
            told = any(a.name == "output_size" for a in op.schema.arguments)
            if told and body.any:
                return ("CPU", "Meta")
            # Made for all devices, of what reads elements wherever they are.
            return tuple(k for k in BACKENDS if k != "Meta") if body.any else ("CPU",)
        if body.any:
            return BACKENDS
        if body.shape is None and not op.schema.mutable_args:
            return ("CPU",)
        if body.cpu is None:
            return ("Meta",)
    return ("CPU", "Meta")


def _present(op: Operator) -> str:
    keys = "kBackendKeys | kLevelKeys"
    if has_wrapper(op):
        keys += " | DispatchKeySet(DispatchKey::Autograd)"
    if _answers_autocast(op):
        keys += " | DispatchKeySet(DispatchKey::Autocast)"
    return f"({keys}).bits()"


def _answers_autocast(op: Operator) -> bool:
    """See Note [Autocast] in csrc/autograd/autocast.h."""
    body = op.overload.body
    if op.overload.autocast != Autocast():
        return True
    return isinstance(body, Kernel) or (isinstance(body, Composite) and has_wrapper(op))


def _keys(op: Operator) -> str:
    tensors = [a for a in op.arguments if a.type.is_tensor_like]
    if tensors:
        return " | ".join(f"keys_of({a.name})" for a in tensors)
    if is_factory_like(op.schema):
        names = {a.name for a in op.arguments}
        if "layout" in names:
            return "keys_of_factory(layout, device)"
        return "keys_of_device(device)"
    return "DispatchKeySet(DispatchKey::CPU)"


def _register() -> str:
    lines = ["#include <taeda/aten/core/dispatcher.h>", "", "namespace taeda {"]
    for i in range(OPS_SHARDS):
        lines.append(f"extern OperatorEntry* const kEntries{i}[];")
    lines.append("void register_generated(Dispatcher& dispatcher);")
    lines.append("void register_generated(Dispatcher& dispatcher) {")
    names = ", ".join(f"kEntries{i}" for i in range(OPS_SHARDS))
    lines.append(f"  for (OperatorEntry* const* list : {{{names}}}) {{")
    lines += ["    size_t n = 0;", "    while (list[n] != nullptr) ++n;"]
    lines += ["    dispatcher.add(list, n);", "  }", "}", "}  // namespace taeda", ""]
    return "\n".join(lines)
