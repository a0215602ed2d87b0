"""Prints the nodes and wrappers that record differentiable calls.

For each operator with a derivative a Node class and, for each of its forms, the
function `autograd::wrappers::IDENT` that stands in the Autograd slot of its dispatcher
entry. `python -m tools.codegen.emit_autograd aten/ops` lists derivatives that cannot be
built because they name something that does not exist.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from .autograd_plan import Member, Plan, camel_name, plan_of, result_names
from .emit_nodes import asks, fused_descriptor, node_class, parts_of
from .formula_calls import formula_headers, used_bases, used_headers
from .model import (
    Operator,
    has_symbols,
    has_wrapper,
    load_operators,
    means_name,
    shard_of,
    symbolic_type,
)
from .record_types import View
from .writer import Output

AUTOGRAD_SHARDS = 12


def emit(operators: Iterable[Operator], out: Output) -> None:
    """One file per shard, with the nodes and wrappers of the shard's records."""
    shards: list[list[Operator]] = [[] for _ in range(AUTOGRAD_SHARDS)]
    for op in operators:
        if has_wrapper(op):
            shards[shard_of(op.record.name, AUTOGRAD_SHARDS)].append(op)
    names: list[str] = []
    for i, ops in enumerate(shards):
        out.write(f"autograd/autograd_{i}.cpp", _shard(i, ops, names))
    out.write("autograd/node_names.cpp", _node_names(names))
    out.write("autograd/symbolic_wrappers.cpp", _all_symbolic_wrappers())


# What PyTorch calls facts of a tensor that a node keeps.
_FACT_NAMES = {"_sizes": "_sym_sizes", "_numel": "_sym_numel", "_dtype": "_scalar_type"}


def _shown_name(member: Member, arguments: set[str]) -> str:
    """What programs call a member: `grad_fn._saved_NAME`.

    An argument keeps its name where that ends as a fact's does (`split_sizes`).
    """
    if member.name in arguments:
        return member.name
    for fact, shown in _FACT_NAMES.items():
        if member.kind == "value" and member.name.endswith(fact):
            return member.name.removesuffix(fact) + shown
    return member.name


def _node_names(names: list[str]) -> str:
    """The table of csrc/autograd/node_names.cpp."""
    lines = ["namespace taeda::autograd {", "extern const char kNodeNames[];"]
    lines += ["const char kNodeNames[] =", *(f'    "{n}"' for n in sorted(names))]
    return "\n".join([*lines, '    "";', "}  // namespace taeda::autograd", ""])


def _shard(index: int, ops: list[Operator], names: list[str]) -> str:
    plans: dict[str, Plan | None] = {}
    for op in ops:
        key = op.overload.schema.name
        if key not in plans:
            plans[key] = plan_of(_functional(op))
    bases = {op.record.name for op in ops} | {"clone"}
    headers: set[str] = {"record.h", "refusals.h"}
    tables: list[str] = []
    nodes: list[str] = []
    for plan in filter(None, plans.values()):
        for gradient in parts_of(plan):
            if not gradient.missing:
                bases |= used_bases(plan.op, gradient.text)
                headers |= used_headers(gradient.text)
            if gradient.fused is not None:
                tables += fused_descriptor(gradient)
        nodes += node_class(plan)
        arguments = {a.name for a in plan.op.functional.arguments}
        shown = [_shown_name(m, arguments) for m in plan.members]
        shown = [plan.class_name, *shown]
        names.append("".join(f"{name}\\0" for name in shown) + "\\0")
    lines = [f"#include <taeda/csrc/autograd/{name}>" for name in sorted(headers)]
    lines += [f"#include <taeda/csrc/autograd/{name}>" for name in formula_headers()]
    if any(_has_numbers(plan) for plan in plans.values()):
        lines.append("#include <taeda/aten/native/formula_support.h>")
    lines += [f"#include <taeda/gen/ops/{base}.h>" for base in sorted(bases)]
    symbolic = {op.bases[name] for op in ops[:1] for name in op.symbolic} & bases
    lines += [f"#include <taeda/gen/sym/{base}.h>" for base in sorted(symbolic)]
    lines.append("#include <taeda/csrc/autograd/symbolic_wrapper.h>")
    lines += ["", "namespace taeda {", *dict.fromkeys(tables), "namespace native {"]
    lines += [
        f"{op.result} {means_name(op)}({op.types()});" for op in ops if means_name(op)
    ]
    lines += ["}  // namespace native"]
    lines += ["namespace autograd {", "namespace {", *nodes, "}  // namespace"]
    lines += ["namespace wrappers {"]
    lines += [f"{op.result} {op.ident}({op.types()});" for op in ops]
    for op in ops:
        lines += _wrapper(op, plans[op.overload.schema.name])
    lines += ["}  // namespace wrappers"]
    lines += _symbolic_wrappers(index, ops, plans)
    lines += ["}  // namespace autograd"]
    return "\n".join([*lines, "}  // namespace taeda", ""])


def _has_numbers(plan: Plan | None) -> bool:
    members = plan.members if plan else ()
    return any(m.kind == "value" and m.type == "Scalar" for m in members)


def _functional(op: Operator) -> Operator:
    schema = op.overload.schema
    return Operator(
        op.record, op.overload, schema, "functional", schema, op.bases, op.symbolic
    )


# Wrappers -------------------------------------------------------------------


def _wrapper(op: Operator, plan: Plan | None) -> list[str]:
    lines = [f"{op.result} {op.ident}({op.parameters()}) {{"]
    if op.form == "out":
        body = _out_body(op)
    elif op.schema.mutable_args:
        body = _inplace_body(op, plan)
    else:
        body = _functional_body(op, plan)
    return [*lines, *("  " + line for line in body), "}"]


def _symbolic_wrappers(
    index: int, ops: list[Operator], plans: dict[str, Plan | None]
) -> list[str]:
    """The wrappers again over symbols, and the table by which they are found."""
    found = [
        op
        for op in ops
        if op.form == "functional"
        and not op.schema.mutable_args
        and has_symbols(op.schema)
        and plans[op.overload.schema.name] is not None
    ]
    lines = ["namespace {", "namespace symbolic_wrappers {"]
    for op in found:
        parameters = ", ".join(
            f"{symbolic_type(a.type)} {a.name}" for a in op.arguments
        )
        # Seldom run: small before quick.
        lines.append(f"[[gnu::cold]] {op.result} {op.ident}({parameters}) {{")
        body = _functional_body(op, plans[op.overload.schema.name], "sym")
        lines += [*("  " + line for line in body), "}"]
    lines += ["}  // namespace symbolic_wrappers", "}  // namespace"]
    lines.append(f"void add_symbolic_wrappers_{index}(SymbolicWrappers& table);")
    lines.append(f"void add_symbolic_wrappers_{index}(SymbolicWrappers& table) {{")
    lines += [
        f"  table.add(ops::entries::{op.ident}, symbolic_wrappers::{op.ident});"
        for op in found
    ]
    return [*lines, "  (void)table;", "}"]


def _all_symbolic_wrappers() -> str:
    names = [f"add_symbolic_wrappers_{i}" for i in range(AUTOGRAD_SHARDS)]
    lines = ["namespace taeda::autograd {", "class SymbolicWrappers;"]
    lines += [f"void {name}(SymbolicWrappers& table);" for name in names]
    lines.append("void add_symbolic_wrappers(SymbolicWrappers& table);")
    lines.append("void add_symbolic_wrappers(SymbolicWrappers& table) {")
    lines += [f"  {name}(table);" for name in names]
    return "\n".join([*lines, "}", "}  // namespace taeda::autograd", ""])


def _call(op: Operator, space: str = "ops") -> str:
    return f"{space}::{op.cpp_name}({op.names()})"


def _tensor_names(op: Operator) -> str:
    return ", ".join(a.name for a in op.schema.arguments if a.type.is_tensor_like)


def _out_body(op: Operator) -> list[str]:
    return [
        f'check_out("{op.record.name}", {_tensor_names(op)});',
        "BelowAutograd below;",
        f"{_call(op)};",
    ]


def _record(op: Operator, plan: Plan | None) -> list[str]:
    if plan is None:
        if _never_differentiable(op) and op.form == "functional":
            return ["IntrusivePtr<Node> node;"]
        if _never_differentiable(op):
            name = camel_name(op.record.name)
            return [f'auto node = record_zero("{name}Backward0", {_tensor_names(op)});']
        return [
            f'auto node = record_missing("{op.functional.name}", {_tensor_names(op)});'
        ]
    given = ", ".join(a.name for a in plan.edges)
    return [*_refusals(op, plan), f"auto node = record<{plan.class_name}>({given});"]


def _refusals(op: Operator, plan: Plan) -> list[str]:
    """Checks that tensors without a derivative do not ask for one."""
    backward = op.overload.backward
    known = {a.name for a in plan.edges}
    for names, formula in (backward.formulas if backward else {}).items():
        known |= set(names) if formula.strip() == "non_differentiable" else set()
    return [
        f'refuse_gradient("{op.record.name}", "{a.name}", {a.name});'
        for a in op.functional.tensor_args
        if a.name not in known
    ]


def _never_differentiable(op: Operator) -> bool:
    backward = op.overload.backward
    if backward is not None and not backward.differentiable:
        return True
    dtypes = getattr(op.overload.body, "dtypes", None)
    return dtypes is not None and dtypes.promote == "bool_out"


def _save(op: Operator, plan: Plan | None) -> list[str]:
    """Statements that store what backward needs and the call may overwrite."""
    if plan is None:
        return []
    lines = [f"node->{name}_count_ = {name}.size();" for name in plan.list_edges]
    for m in plan.members:
        if m.kind != "result":
            lines += _guarded(plan, m, _store(op, m))
    return ["if (node) {", *("  " + line for line in lines), "}"] if lines else []


def _store(op: Operator, m: Member) -> str:
    if m.kind in ("list", "optional_list"):
        return f"node->{m.name}_ = save_list({m.save});"
    if m.kind != "tensor":
        return f"node->{m.name}_ = {m.save};"
    source = m.save
    argument = op.functional.argument(m.name)
    if argument.type.is_optional:
        return f"if ({source}) node->{m.name}_.save(*{source});"
    if op.schema.mutable_args and m.name == op.schema.mutable_args[0].name:
        source = f"ops::clone({source})"  # the call overwrites it
    return f"node->{m.name}_.save({source});"


def _guarded(plan: Plan, m: Member, statement: str) -> list[str]:
    """Tensors are kept only for gradients that will be asked for."""
    if m.kind == "value" or len(plan.edges) == 1:
        return [statement]
    if m.needed_by >= {a.name for a in plan.edges}:
        return [statement]
    asked = [
        asks("node->should_compute(", plan, a.name)
        for a in plan.edges
        if a.name in m.needed_by
    ]
    for name in plan.list_edges:
        asked = [text.replace(f"{name}_count_", f"{name}.size()") for text in asked]
    return [f"if ({' || '.join(asked)}) {{ {statement} }}"]


def _save_results(op: Operator, plan: Plan | None, values: dict[str, str]) -> list[str]:
    if plan is None:
        return []
    lines = []
    for m in plan.members:
        if m.kind == "result":
            store = f"node->{m.name}_.save({values[m.name]}, /*is_output=*/true);"
            lines += _guarded(plan, m, store)
    return ["if (node) {", *("  " + line for line in lines), "}"] if lines else []


def _functional_body(op: Operator, plan: Plan | None, space: str = "ops") -> list[str]:
    defined = means_name(op)
    if plan is None and defined is not None:
        return [
            f"if (grad_enabled() && any_needs_grad({_tensor_names(op)})) {{",
            f"  return native::{defined}({op.names()});",
            "}",
            "BelowAutograd below;",
            f"return {_call(op)};",
        ]
    lines = _record(op, plan) + _save(op, plan)
    call = _call(op, space)
    lines.append(f"auto result = [&] {{ BelowAutograd below; return {call}; }}();")
    names = result_names(op)
    if len(names) == 1:
        values = {"result": "result"}
        if op.schema.returns[0].type.is_tensor_like:
            if op.result == "std::vector<Tensor>" and _is_view(op):
                lines.append("mark_multi_output_views(result);")
            lines.append("set_history_if(result, node);")
    else:
        values = {n: f"std::get<{i}>(result)" for i, n in enumerate(names)}
        lines += _histories(op, values)
    return [*lines, *_save_results(op, plan, values), "return result;"]


def _is_view(op: Operator) -> bool:
    return isinstance(op.overload.body, View) or op.schema.is_view


def _histories(op: Operator, values: dict[str, str]) -> list[str]:
    wanted = op.overload.differentiable_outputs
    lines = []
    for returned, (name, value) in zip(op.schema.returns, values.items(), strict=True):
        if not returned.type.is_tensor_like:
            lines.append("if (node) node->add_undefined_output();")
        elif wanted is not None and name not in wanted:
            lines.append("if (node) node->add_undefined_output();")
        else:
            lines.append(f"set_history_if({value}, node);")
    return lines


def _inplace_body(op: Operator, plan: Plan | None) -> list[str]:
    target = op.schema.mutable_args[0]
    if target.type.is_list:
        return _inplace_list_body(op)
    others = _tensor_names(op)
    lines = [f"check_inplace({target.name}, any_needs_grad({others}));"]
    lines += _record(op, plan) + _save(op, plan)
    lines.append(f"{{ BelowAutograd below; {_call(op)}; }}")
    lines.append(f"rebase_history({target.name}, node);")
    values = dict.fromkeys(result_names(op), target.name)
    return [*lines, *_save_results(op, plan, values)]


def _inplace_list_body(op: Operator) -> list[str]:
    """Fused list operators (optimizers') run outside of graphs."""
    return [
        f'check_out("{op.record.name}", {_tensor_names(op)});',
        "BelowAutograd below;",
        f"{_call(op)};",
    ]


def main(arguments: list[str]) -> int:
    """Lists derivatives that name something that does not exist; 1 if there are any."""
    status = 0
    for folder in arguments:
        for op in load_operators(Path(folder)):
            if op.form != "functional" or not has_wrapper(op):
                continue
            plan = plan_of(op)
            for gradient in parts_of(plan) if plan else ():
                if gradient.missing:
                    names = ", ".join(gradient.arguments)
                    print(f"{op.schema.name}: {names}: no {gradient.missing}")
                    status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
