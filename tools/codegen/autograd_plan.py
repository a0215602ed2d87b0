"""What the autograd node of an overload saves and computes, before it is printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .choices import conditions
from .errors import CodegenError
from .expr import Expr, compose, names
from .formula_calls import missing_function, over_symbols
from .model import Operator, cpp_type, owned_type
from .pointwise import (
    SHARE,
    PointwiseBackward,
    PointwiseKernel,
    backward_of,
    op_kernels,
)
from .record_types import Overload, Pointwise, Record
from .schema import Argument

# PyTorch counts `sum` before `sum.dim_IntList`, but `max.dim` before `max`.
_NAMED_FIRST = {"max", "min", "clamp"}
# What a formula may ask of a tensor without the tensor being saved.
_FACTS = {
    "sizes": ("Dims<SymInt>", "kept_sizes({0})"),
    "strides": ("DimVector", "{0}.strides()"),
    "dtype": ("ScalarType", "{0}.dtype()"),
    "scalar_type": ("ScalarType", "{0}.dtype()"),
    "device": ("Device", "{0}.device()"),
    "layout": ("Layout", "{0}.layout()"),
    "dim": ("int64_t", "{0}.dim()"),
    "numel": ("int64_t", "{0}.numel()"),
    "is_complex": ("bool", "{0}.is_complex()"),
    "defined": ("bool", "is_given({0})"),
}
_LIST_FACTS = {
    "sizes_of": ("std::vector<Dims<SymInt>>", "sizes_of({0})"),
    "dtypes_of": ("std::vector<ScalarType>", "dtypes_of({0})"),
    "count_of": ("size_t", "{0}.size()"),
    "TensorGeometry": ("TensorGeometry", "TensorGeometry({0})"),
}


# Of a loss over symbols: the count of the elements that its mean is over.
SHARE_COUNT = f"{SHARE}_count"


@dataclass(frozen=True)
class Member:
    """A field of the node: `NAME_`, seen by formulas as `NAME`."""

    name: str
    kind: str  # tensor | list | optional_list | result | value
    type: str
    save: str  # expression that is stored, in terms of the call's arguments
    needed_by: frozenset[str] = frozenset()


@dataclass
class Gradient:
    """One formula, for one argument or several."""

    arguments: tuple[str, ...]
    text: str = ""
    missing: str = ""  # why it cannot be computed
    fused: PointwiseKernel | None = None
    fused_call: str = ""
    guard: str = ""
    operands: tuple[str, ...] = ()  # tensors of the fused kernel
    # The formula may lack axes of the argument: a reduced loss's gradient has none.
    spread: bool = False
    # One for each choice of parameters, with its condition over the node's members
    # and the statements that read those.
    chosen: list[Chosen] = field(default_factory=list)

    @property
    def parts(self) -> list[Gradient]:
        """The gradients that hold formulas."""
        return [c.gradient for c in self.chosen] or [self]


@dataclass
class Chosen:
    """A gradient that holds under a condition."""

    condition: str
    reads: list[str]
    gradient: Gradient


@dataclass
class Plan:
    """All that the printer needs for one overload."""

    op: Operator
    edges: list[Argument]
    gradients: list[Gradient]
    members: list[Member] = field(default_factory=list)
    number: int = 0

    @property
    def class_name(self) -> str:
        return f"Backward_{self.op.ident}"

    @property
    def node_name(self) -> str:
        """A C++ expression for the name that grad_fn shows."""
        given = self.op.overload.node
        if given is None:
            return f'"{camel_name(self.op.record.name)}Backward{self.number}"'
        return f'"{given}"' if given.isidentifier() else str(given)

    @property
    def list_edges(self) -> list[str]:
        return [a.name for a in self.edges if a.type.is_list]

    def edge(self, name: str) -> tuple[str, str | None]:
        """The first edge of an argument, and for lists the one after the last."""
        fixed, lists = 0, []
        for a in self.edges:
            if a.name == name:
                start = " + ".join([*(f"{n}_count_" for n in lists), str(fixed)])
                end = f"{start} + {name}_count_" if a.type.is_list else None
                return start, end
            if a.type.is_list:
                lists.append(a.name)
            else:
                fixed += 1
        raise KeyError(name)


def camel_name(base: str) -> str:
    """`log_softmax` as nodes are named: LogSoftmax; `max_pool2d`: MaxPool2D."""
    return "".join(word.title() for word in base.strip("_").split("_"))


def result_names(op: Operator) -> list[str]:
    """Names of an operator's results in formulas."""
    returns = op.functional.returns
    if len(returns) == 1:
        return ["result"]
    return [r.name or f"result{i}" for i, r in enumerate(returns)]


def plan_of(op: Operator) -> Plan | None:
    """The plan of a functional operator; None without a derivative."""
    if isinstance(op.overload.body, Pointwise):
        if op.overload.body.dtypes.promote == "bool_out":
            return None
        gradients, plan_members = _pointwise(op)
    else:
        backward = op.overload.backward
        if backward is None or not backward.formulas:
            return None
        gradients, plan_members = _formulas(op)
    wanted = {n for g in gradients for n in g.arguments}
    edges = [
        a for a in op.functional.arguments if a.type.is_tensor_like and a.name in wanted
    ]
    if not edges:
        return None
    return Plan(op, edges, gradients, plan_members, _number(op.record, op.overload))


def _number(record: Record, overload: Overload) -> int:
    """PyTorch numbers the derivatives of a base name; scalar variants share one."""
    seen: list[tuple] = []
    overloads = [o for o in record.overloads if o is overload or _counts(o)]
    if record.name not in _NAMED_FIRST:
        overloads.sort(key=lambda o: o.schema.overload != "")
    for other in overloads:
        key = _derivative_key(other)
        if key not in seen:
            seen.append(key)
        if other is overload:
            return seen.index(key)
    return 0


def _counts(overload: Overload) -> bool:
    """In-place schemas and those without a derivative have no number of their own."""
    in_place = overload.schema.name.endswith("_")
    has_formula = overload.backward is not None and bool(overload.backward.formulas)
    return not in_place and (isinstance(overload.body, Pointwise) or has_formula)


def _derivative_key(overload: Overload) -> tuple:
    if isinstance(overload.body, Pointwise):
        return overload.body.expr.key
    return (overload.schema.name,)


# Pointwise --------------------------------------------------------------------


def _pointwise(op: Operator) -> tuple[list[Gradient], list[Member]]:
    body = op.overload.body
    assert isinstance(body, Pointwise)
    tensors = {a.name for a in op.functional.arguments if a.type.is_tensor}
    backwards = [b for b in backward_of(op) if b.argument in tensors]
    by_text = {b.argument for b in backwards if b.cpp is not None}
    gradients, members = _formulas(op, by_text)
    needs: dict[str, set[str]] = {}
    for argument in dict.fromkeys(b.argument for b in backwards):
        own = [b for b in backwards if b.argument == argument]
        if argument in by_text:
            continue
        gradients.append(_by_choice(op, own, tensors))
        used = {n for b in own for n in names(b.real) | names(b.complex)}
        for name in used | {c.argument for b in own for c in b.when}:
            needs.setdefault(name, set()).add(argument)
    found = {m.name: m for m in members}
    for a in op.functional.arguments:
        if a.name in needs:
            _add(found, _argument_member(a, needs[a.name]), tuple(needs[a.name]))
    for name, text in (*body.numbers.items(), (SHARE, _share_text(op))):
        if name in needs:
            value = f"Scalar({text})"
            by = frozenset(needs[name])
            found[name] = Member(name, "value", "Scalar", value, by)
    if SHARE in needs:
        count = _share_text(op).replace("loss_share", "symbolic_count")
        by = frozenset(needs[SHARE])
        found[SHARE_COUNT] = Member(SHARE_COUNT, "value", "SymInt", count, by)
    if "result" in needs:
        _add(found, _result_member("result", needs["result"]), tuple(needs["result"]))
    return gradients, list(found.values())


def _share_text(op: Operator) -> str:
    reduction = getattr(op.overload.body, "reduction", None)
    operands = ", ".join(a.name for a in op.functional.tensor_args)
    return f"native::loss_share({reduction}, derived::tensors_of({operands}))"


def _by_choice(
    op: Operator, backwards: list[PointwiseBackward], tensors: set[str]
) -> Gradient:
    """The gradient by one argument, which may differ by parameters."""
    parts = [_pointwise_gradient(op, b, tensors) for b in backwards]
    if not backwards[0].when:
        return parts[0]
    whole = Gradient(parts[0].arguments)
    for backward, part in zip(backwards, parts, strict=True):
        test = conditions(backward.when, op.functional, saved=True)
        used = names(backward.real) | names(backward.complex)
        reads = [
            f"[[maybe_unused]] const Scalar {a.name} = *{a.name}_;"
            for a in op.functional.arguments
            if a.name in used and a.type.is_optional and not a.type.is_tensor
        ]
        whole.chosen.append(Chosen(test, reads, part))
    return whole


def _pointwise_gradient(
    op: Operator, backward: PointwiseBackward, tensors: set[str]
) -> Gradient:
    used = names(backward.real) | names(backward.complex)
    scalars = {n for n in used if n not in tensors and n not in ("grad", "result")}
    real, missing = _composed(op, backward.real, scalars)
    text = real
    kernel = backward.kernel
    others = [n for n in ("result", *tensors) if n in used]
    computed = {c for k in op_kernels(op) for c in k.compute}
    takes_complex = any(c in computed for c in ("c64", "c128"))
    if takes_complex and backward.complex != backward.real:
        wide, lacks = _composed(op, backward.complex, scalars)
        if lacks:
            wide = f'no_complex_derivative("{op.schema.name}", "{lacks}")'
        if wide != real:
            operands = ", ".join(["grad", *sorted(set(others) - {"grad"})])
            text = f"any_complex({operands}) ? {wide} : {real}"
    gradient = Gradient((backward.argument,), text, missing)
    gradient.spread = getattr(op.overload.body, "reduction", None) is not None
    if kernel is not None and kernel.exprs and kernel.compute:
        gradient.fused = kernel
        operands = ", ".join(kernel.operands)
        numbers = ", ".join(kernel.scalars)
        gradient.fused_call = (
            f"pointwise_summand({kernel.descriptor}, {{{operands}}}, {{{numbers}}}, "
            "{sizes})"
        )
        tested = [n for n in kernel.operands if n in tensors or n == "result"]
        gradient.operands = tuple(dict.fromkeys(["grad", *tested]))
        gradient.guard = f"can_fuse({', '.join(gradient.operands)})"
    return gradient


def _composed(op: Operator, expr: Expr, scalars: set[str]) -> tuple[str, str]:
    """The composition of operators, and what it lacks."""
    try:
        # Of real tensors the conjugate is the tensor: no call at all.
        text = compose(expr, scalars, differentiable=True)
        text = text.replace("ops::conj(", "conj_of(")
    except CodegenError as error:
        return "", str(error.message)
    return text, missing_function(op, text)


# Formulas in C++ ----------------------------------------------------------------


def _formulas(
    op: Operator, wanted: set[str] | None = None
) -> tuple[list[Gradient], list[Member]]:
    """The gradients by formulas of the record; by `wanted` arguments if given."""
    backward = op.overload.backward
    if backward is None:
        return [], []
    members: dict[str, Member] = {}
    gradients = []
    tensors = {a.name for a in op.functional.arguments if a.type.is_tensor_like}
    for names_, formula in backward.formulas.items():
        # A record's formulas serve overloads that take a number here, too.
        arguments = tuple(name for name in names_ if name in tensors)
        if wanted is not None:
            arguments = tuple(name for name in arguments if name in wanted)
        if not arguments:
            continue
        text = " ".join(formula.split())
        if text in ("none", "non_differentiable"):
            continue
        text = _save_facts(op, over_symbols(op, text), arguments, members)
        _save_names(op, text, arguments, members)
        gradients.append(Gradient(arguments, text, missing_function(op, text)))
    return gradients, list(members.values())


def _save_facts(
    op: Operator, text: str, wanted: tuple[str, ...], members: dict[str, Member]
) -> str:
    """Replaces `self.sizes()` and the like by members that keep just that."""
    for a in op.functional.arguments:
        if not a.type.is_tensor_like:
            continue
        for fact, (kind, value) in _FACTS.items():
            pattern = rf"\b{a.name}\.{fact}\(\)"
            if not a.type.is_list and re.search(pattern, text):
                name = f"{a.name}_{fact}"
                text = re.sub(pattern, name, text)
                source = a.name
                if a.type.is_optional and fact != "defined":
                    source = f"(*{a.name})"
                    value = f"{a.name} ? {kind}({value}) : {kind}()"
                _add(members, Member(name, "value", kind, value.format(source)), wanted)
        for function, (kind, value) in _LIST_FACTS.items():
            pattern = rf"\b{function}\({a.name}\)"
            if re.search(pattern, text):
                name = f"{a.name}_{function}"
                text = re.sub(pattern, name, text)
                _add(members, Member(name, "value", kind, value.format(a.name)), wanted)
    return text


def _save_names(
    op: Operator, text: str, wanted: tuple[str, ...], members: dict[str, Member]
) -> None:
    used = set(re.findall(r"(?<![\w.:])([A-Za-z_]\w*)", text))
    for a in op.functional.arguments:
        # `grad` is the incoming gradient, whatever an argument is called.
        if a.name in used and a.name != "grad":
            _add(members, _argument_member(a, set(wanted)), wanted)
    for name in result_names(op):
        if name in used:
            _add(members, _result_member(name, set(wanted)), wanted)


def _add(members: dict[str, Member], member: Member, wanted: tuple[str, ...]) -> None:
    needed = frozenset(wanted)
    if member.name in members:
        needed |= members[member.name].needed_by
    members[member.name] = Member(
        member.name, member.kind, member.type, member.save, needed
    )


def _argument_member(a: Argument, needed: set[str]) -> Member:
    by = frozenset(needed)
    if a.type.is_tensor_like:
        if a.type.is_list:
            optional = cpp_type(a.type) == "ArrayRef<OptionalTensor>"
            kind = "optional_list" if optional else "list"
            return Member(a.name, kind, "SavedList", a.name, by)
        return Member(a.name, "tensor", "SavedVariable", a.name, by)
    stored = owned_type(a.type)
    save = a.name
    if a.type.base == "SymInt":
        save = f"kept_symbols({a.name})"
    if stored.startswith("std::vector"):
        save = f"{a.name}.vec()"
    return Member(a.name, "value", stored, save, by)


def _result_member(name: str, needed: set[str]) -> Member:
    return Member(name, "result", "SavedVariable", name, frozenset(needed))
