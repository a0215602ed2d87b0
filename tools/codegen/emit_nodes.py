"""Prints the Node classes of autograd: what they save and how they give gradients."""

from __future__ import annotations

from .autograd_plan import SHARE_COUNT, Gradient, Member, Plan
from .emit_info import fused_rule
from .emit_ops import isa_tables


def parts_of(plan: Plan) -> list[Gradient]:
    """All gradients that hold formulas."""
    return [part for gradient in plan.gradients for part in gradient.parts]


def fused_descriptor(gradient: Gradient) -> list[str]:
    """The kernel of a gradient that is one pointwise formula."""
    kernel = gradient.fused
    assert kernel is not None
    return [
        *isa_tables("ChunkTable", kernel.name),
        f"static constexpr PointwiseOp op_{kernel.name} = {{"
        f'"{kernel.name.removeprefix("k_")}", {len(kernel.operands)}, '
        f"{len(kernel.scalars)}, {fused_rule(kernel)}, "
        f"TAEDA_LEVELS({kernel.name})}};",
    ]


def node_class(plan: Plan) -> list[str]:
    """The class of an overload's node, and its `apply`."""
    lines = [f"struct {plan.class_name} final : Node {{"]
    lines.append("  std::string name() const override {")
    if "rank" in plan.node_name:
        lines.append("    const size_t rank = output_rank();")
    lines += [f"    return {plan.node_name};", "  }"]
    lines.append("  Tensors apply(Tensors&& grads) override;")
    tensors = [m for m in plan.members if m.kind != "value"]
    if tensors:
        lines.append("  void release_variables() override {")
        lines.append("    auto guard = lock();")
        for m in tensors:
            is_list = m.kind in ("list", "optional_list")
            free = f"release_list({m.name}_)" if is_list else f"{m.name}_.release()"
            lines.append(f"    {free};")
        lines.append("  }")
    lines += _listing(plan)
    lines += [f"  {m.type} {m.name}_{_initial(m)};" for m in plan.members]
    lines += [f"  size_t {name}_count_ = 0;" for name in plan.list_edges]
    return [*lines, "};", *_apply(plan)]


def _listing(plan: Plan) -> list[str]:
    """What others need to run the node on other values: Note [Fields of nodes]."""
    names = [f"{m.name}_" for m in plan.members]
    names += [f"{name}_count_" for name in plan.list_edges]
    add = f"fields.add({', '.join(names)}); " if names else "(void)fields; "
    return [
        "  [[gnu::cold]] bool list_fields(NodeFields& fields) override {",
        f"    {add}return true;",
        "  }",
        "  [[gnu::cold]] IntrusivePtr<Node> blank() const override {",
        f"    return make_intrusive<{plan.class_name}>();",
        "  }",
    ]


def _initial(member: Member) -> str:
    return "{}" if member.kind == "value" else ""


def _apply(plan: Plan) -> list[str]:
    lines = [f"Tensors {plan.class_name}::apply(Tensors&& grads) {{"]
    lines.append("  Tensors grad_inputs(next_edges().size());")
    lines.append("  if (!any_defined(grads)) return grad_inputs;")
    if any(_uses_grad(g) for g in parts_of(plan)):
        grad = "const Tensor& grad = grads[0]"
        if any(m.name == SHARE_COUNT for m in plan.members):
            grad = f"const Tensor grad = native::share_of(grads[0], {SHARE_COUNT}_)"
        lines.append(f"  [[maybe_unused]] {grad};")
    lines += _unpack(plan)
    for gradient in plan.gradients:
        lines += ["  " + line for line in _gradient(plan, gradient)]
    return [*lines, "  return grad_inputs;", "}"]


def _uses_grad(gradient: Gradient) -> bool:
    return "grad" in gradient.text


def _unpack(plan: Plan) -> list[str]:
    lines = []
    for m in plan.members:
        head = f"  [[maybe_unused]] const auto {m.name} = "
        if m.kind == "list":
            lines.append(f"{head}unpack_list({m.name}_, *this);")
        elif m.kind == "optional_list":
            lines.append(f"{head}unpack_optional_list({m.name}_, *this);")
        elif m.kind in ("tensor", "result"):
            lines.append(f"{head}{m.name}_.unpack(*this);")
    if lines:
        lines = ["  auto guard = lock();", *lines, "  guard.unlock();"]
    for m in plan.members:
        if m.kind == "value":
            lines.append(f"  [[maybe_unused]] const auto& {m.name} = {m.name}_;")
    return lines


def _gradient(plan: Plan, gradient: Gradient) -> list[str]:
    asked = [asks("task_should_compute(*this, ", plan, n) for n in gradient.arguments]
    lines = [f"if ({' || '.join(asked)}) {{"]
    if gradient.chosen:
        word = "if"
        for chosen in gradient.chosen:
            lines.append(f"  {word} ({chosen.condition}) {{")
            lines += [f"    {line}" for line in chosen.reads]
            inner = _gradient_value(plan, chosen.gradient, asked)
            lines += [f"  {line}" for line in inner]
            word = "} else if"
        return [*lines, "  }", "}"]
    return [*lines, *_gradient_value(plan, gradient, asked), "}"]


def _gradient_value(plan: Plan, gradient: Gradient, asked: list[str]) -> list[str]:
    lines = []
    if gradient.missing and gradient.fused is None:
        lines.append("  " + _raise_missing(plan, gradient))
    elif len(gradient.arguments) > 1:
        lines += ["  " + line for line in _several(plan, gradient, asked)]
    else:
        start, end = plan.edge(gradient.arguments[0])
        if end is not None:
            lines.append(f"  put_list(grad_inputs, {start}, {gradient.text});")
        elif gradient.fused is not None:
            lines += ["  " + line for line in _fused(plan, gradient, start)]
        else:
            lines.append("  " + _put(gradient, start, gradient.text))
    return lines


def _put(gradient: Gradient, start: str, value: str) -> str:
    if gradient.spread:
        value = f"native::spread({value}, symbolic_sizes_of_edge(*this, {start}))"
    return f"grad_inputs[{start}] = {value};"


def _fused(plan: Plan, gradient: Gradient, start: str) -> list[str]:
    lines = [f"if ({gradient.guard}) {{"]
    sizes = f"sizes_of_edge(*this, {start})"
    call = gradient.fused_call.replace("{sizes}", sizes)
    lines.append("  " + _put(gradient, start, call))
    lines.append("} else {")
    if gradient.missing:
        lines.append("  " + _raise_missing(plan, gradient))
    else:
        lines.append("  " + _put(gradient, start, _rounded_once(gradient)))
    return [*lines, "}"]


def _rounded_once(gradient: Gradient) -> str:
    """The composition; 16-bit results are rounded where the kernel does: at its end."""
    if gradient.text.count("ops::") < 2:
        return gradient.text
    parameters = ", ".join(f"const Tensor& {name}" for name in gradient.operands)
    body = f"[&]({parameters}) -> Tensor {{ return {gradient.text}; }}"
    return f"rounded_once({body}, {', '.join(gradient.operands)})"


def _several(plan: Plan, gradient: Gradient, asked: list[str]) -> list[str]:
    lines = []
    count = len(gradient.arguments)
    if "grad_input_mask" in gradient.text:
        lines.append(
            f"const std::array<bool, {count}> grad_input_mask = {{{', '.join(asked)}}};"
        )
    lines.append(f"auto found = {gradient.text};")
    for i, (name, test) in enumerate(zip(gradient.arguments, asked, strict=True)):
        start, end = plan.edge(name)
        value = f"std::move(std::get<{i}>(found))"
        put = f"grad_inputs[{start}] = {value};"
        if end is not None:
            put = f"put_list(grad_inputs, {start}, {value});"
        lines.append(f"if ({test}) {put}")
    return lines


def _raise_missing(plan: Plan, gradient: Gradient) -> str:
    return f'missing_derivative("{plan.op.schema.name}", "{gradient.missing}");'


def asks(head: str, plan: Plan, name: str) -> str:
    """A call on the edges of an argument; `head` ends behind its first arguments."""
    start, end = plan.edge(name)
    return f"{head}{start}{'' if end is None else ', ' + end})"
