"""CUDA text of the formulas of index maps, reductions and scans.

The text is over aten/native/cuda/formula.cuh: `g_` has a member for each argument and
result, under its name. One text for each kind of what is computed: what elements are
converted to as they are read does not depend on their dtype then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .errors import CodegenError
from .expr_ast import Expr
from .expr_ast import names as names_in
from .expr_cpp import expand_powers
from .expr_types import check, widest
from .fold_formula import (
    COUNT,
    INDEX,
    ONLY,
    PARTS,
    FoldFormula,
    formulas_of,
    part_names,
    step_of,
)
from .formula_cpp import FormulaPrinter
from .map_formula import AXIS, POSITION, RESULT, formula_of
from .model import Operator
from .record_types import Folded, Map
from .schema import Argument

TYPES = {"bool": "bool", "int": "Long", "float": "double", "complex": "complex<double>"}
KINDS = ("int", "float", "complex")
_WHOLE = {"int": "int", "SymInt": "int", "bool": "bool", "float": "float"}
# Tensors that hold places, whatever the dtype of what is moved.
_PLACES = ("index", "indices")
_FIELDS = {"bool": "truth", "int": "integer", "float": "real", "complex": "whole"}


def has_formula(op: Operator) -> bool:
    """Whether the device computes the operator from its formula."""
    body = op.overload.body
    formula = isinstance(body, Map | Folded) and body.cpu is not None
    return op.form == "functional" and formula


def row(op: Operator) -> str:
    """A row of the table: name, how a scan goes (2 for a map), a text for each kind."""
    step = 2
    if isinstance(op.overload.body, Folded):
        tree = step_of(op.overload)
        step = 0 if tree is None else tree.value
    found = [text_of(op, kind) for kind in KINDS]
    texts = ", ".join("nullptr" if t is None else f'R"~~({t})~~"' for t in found)
    return f'{{"{op.schema.name}", {step}, {{{texts}}}}},'


def text_of(op: Operator, kind: str) -> str | None:
    """The text for a kind of value; None where the formula has no meaning for it."""
    folds = isinstance(op.overload.body, Folded)
    try:
        return _fold_text(op, kind) if folds else _map_text(op, kind)
    except CodegenError:
        return None


def _map_text(op: Operator, kind: str) -> str:
    tree = expand_powers(formula_of(op.overload), kind)
    env = _env(op, kind, [tree])
    printer = _printer(kind, env | {AXIS: "int", POSITION: "int", RESULT: kind})
    value = printer.to(tree, printer.kind(tree))
    return f"""
template <class G>
__device__ inline auto value_of(const G& g_, const Place& e) {{
  const auto& {RESULT} = g_.{RESULT};
{_lines(_named(op, env))}
  return {value};
}}
"""


def _fold_text(op: Operator, kind: str) -> str:
    formula, *others = formulas_of(op.overload)
    if others:
        raise CodegenError(f"{op.schema.name}: a choice of formulas")
    env = _env(op, kind, [])
    kinds = _state_kinds(formula, env)
    state = dict(zip(formula.accumulators, kinds, strict=True))
    parts = dict(zip(part_names(state), kinds * 2, strict=True))
    tensors = [a.name for a in op.schema.tensor_args]
    numbers = list(_named(op, env, skip=tensors))
    outs = result_names(op)
    one = _printed(formula.map, kind, env | {INDEX: "int"}, kinds)
    both = _printed(formula.combine, kind, parts, kinds)
    none = _printed(formula.init, kind, {}, kinds)
    values = _printed(formula.finish, kind, env | state | {COUNT: "int"}, None)
    whole = [part + ("_" if [*state] == [ONLY] else "") for part in PARTS]
    elements = [f"const auto {t} = g_.{t}.flat(at_);" for t in tensors]
    split = [f"const auto {p} = {p}_.{ONLY};" for p in PARTS]
    kept = [f"const auto {n} = s_.{n};" for n in state]
    stores = [
        f"g_.{name}.write(at_, {value});"
        for name, value in zip(outs, values, strict=True)
    ]
    empty = f"State{{{', '.join(none)}}}" if none else "State{}"
    return f"""
template <class G>
struct Fold {{
  struct State {{ {" ".join(f"{TYPES[k]} {n};" for n, k in state.items())} }};
  static constexpr bool kStarts = {"true" if none else "false"};
  static __device__ inline State none() {{ return {empty}; }}
  static __device__ inline State one(const G& g_, Long at_, Long {INDEX}) {{
{_lines(numbers + elements)}
    return State{{{", ".join(one)}}};
  }}
  static __device__ inline State both(
      const State& {whole[0]}, const State& {whole[1]}) {{
{_lines(split if [*state] == [ONLY] else [])}
    return State{{{", ".join(both)}}};
  }}
  static __device__ inline void finish(
      const G& g_, const State& s_, Long at_, Long {COUNT}) {{
{_lines(numbers + kept + stores)}
  }}
}};
"""


def result_names(op: Operator) -> list[str]:
    """Names of the results among the members of `g_`."""
    returns = op.schema.returns
    if len(returns) == 1:
        return [RESULT]
    return [r.name or f"out{i}" for i, r in enumerate(returns)]


def _printer(kind: str, env: Mapping[str, str]) -> FormulaPrinter:
    return FormulaPrinter(
        kind, env, t=TYPES[kind], real="double", integer="Long", types=TYPES
    )


def _printed(
    trees: Iterable[Expr],
    kind: str,
    env: Mapping[str, str],
    wants: Iterable[str] | None,
) -> list[str]:
    """Each expression converted to the kind that is wanted, or of its own."""
    printer = _printer(kind, env)
    trees = [expand_powers(tree, kind) for tree in trees]
    kinds = map(printer.kind, trees) if wants is None else wants
    # An empty `init` has no values, whatever the accumulators.
    return [printer.to(*pair) for pair in zip(trees, kinds, strict=False)]


def _env(op: Operator, kind: str, trees: Iterable[Expr]) -> dict[str, str]:
    """Kinds of the arguments. Numbers have that of the result, unless they meet
    arguments that are floating whatever it is (the base of logspace)."""
    used = {name for tree in trees for name in names_in(tree)}
    arguments = op.schema.arguments
    floats = any(a.type.base == "float" and a.name in used for a in arguments)
    env = {}
    for a in arguments:
        own = kind
        if a.type.base == "Tensor":
            own = "int" if a.name in _PLACES else kind
        elif a.type.base == "Scalar":
            own = widest("float", kind) if floats else kind
        env[a.name] = _WHOLE.get(a.type.base, own)
    return env


def _named(
    op: Operator, env: Mapping[str, str], skip: Iterable[str] = ()
) -> Iterator[str]:
    """The arguments under their names."""
    written = [a.name for a in op.schema.out_args]
    for a in op.schema.arguments:
        if a.name in (*skip, *written) or not _is_usable(a):
            continue
        if a.type.is_optional:
            yield f"const bool missing_{a.name} = g_.{a.name}.missing;"
        if a.type.is_list or a.type.base == "Tensor":
            yield f"const auto& {a.name} = g_.{a.name};"
        else:
            value = f"g_.{a.name}.{_FIELDS[env[a.name]]}()"
            yield f"const {TYPES[env[a.name]]} {a.name} = {value};"


def _is_usable(a: Argument) -> bool:
    return a.type.base in ("Tensor", "Scalar", *_WHOLE)


def _state_kinds(formula: FoldFormula, env: Mapping[str, str]) -> tuple[str, ...]:
    """Accumulators are as wide as the widest value that they take."""
    kinds = [check(tree, env | {INDEX: "int"}) for tree in formula.map]
    while True:
        parts = dict(zip(part_names(formula.accumulators), [*kinds] * 2, strict=True))
        found = [check(tree, parts) for tree in formula.combine]
        wider = [widest(a, b) for a, b in zip(kinds, found, strict=True)]
        if wider == kinds:
            return tuple(kinds)
        kinds = wider


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
