"""C++ functions printed from the formulas of index maps, reductions and scans.

A function takes arrays of `Argument` (aten/expr/formula.h): one for each argument of
the schema, one for each result. Its text depends on the kinds of the tensors' elements
and not on sizes or numbers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .expr_ast import Access, Expr, Logic, Name
from .expr_cpp import CppPrinter, expand_powers
from .fold_formula import COUNT, INDEX, ONLY, PARTS, FoldFormula, part_names
from .map_formula import AXIS, POSITION, RESULT
from .schema import Argument

HEADER = """#include <taeda/aten/expr/formula.h>
#include <taeda/aten/math/math.h>

#include <algorithm>

using namespace taeda;
using namespace taeda::formula;
"""
# Elements of tensors, numbers and lists by kind.
TYPES = {"bool": "bool", "int": "int64_t", "float": "double"}
_KINDS = {"int": "int", "SymInt": "int", "bool": "bool"}
# Elements that become one state before it meets the others.
_BLOCK = 4


@dataclass(frozen=True)
class FormulaPrinter(CppPrinter):
    """As of scalar expressions, with what maps look at; `and`, `or` may stop early."""

    types: Mapping[str, str] = field(default_factory=lambda: TYPES)

    def ctype(self, kind: str, expr: Expr) -> str:
        return self.types[kind] if kind in self.types else super().ctype(kind, expr)

    def emit(self, expr: Expr) -> str:
        if isinstance(expr, Access):
            return self.access(expr)
        if isinstance(expr, Logic):
            op = "&&" if expr.op == "and" else "||"
            return f"({self.to(expr.left, 'bool')} {op} {self.to(expr.right, 'bool')})"
        if isinstance(expr, Name) and expr.name == POSITION:
            return "e.position()"
        return super().emit(expr)

    def access(self, expr: Access) -> str:
        first, *rest = expr.args
        if expr.op == "at":
            return f"e.at({self.to(first, 'int')})"
        assert isinstance(first, Name)
        name = first.name
        if expr.op == "missing":
            return f"missing_{name}"
        if expr.op == "len":
            return f"{name}.size"
        if expr.op in ("read", "inside"):
            index = self.to(rest[0], "int")
            whole = self.types["int"]
            function = f"[&]({whole} {AXIS}) -> {whole} {{ return {index}; }}"
            return f"{name}.{expr.op}({function})"
        numbers = [self.to(part, "int") for part in rest]
        if expr.op == "entry":
            return f"{name}[{numbers[0]}]"
        if expr.op == "names":
            return f"e.named({name}, {numbers[0]})"
        if expr.op == "along":
            return f"e.along({name}, {rest[0]}, {numbers[1]})"
        return f"{name}.{expr.op}({', '.join(numbers)})"


def map_function(
    name: str,
    tree: Expr,
    arguments: Sequence[Argument],
    kinds: Mapping[str, str],
    result: str,
) -> str:
    """The function of an index map; `kinds` has those of the tensors' elements."""
    env = _env(arguments, kinds) | {AXIS: "int", POSITION: "int", RESULT: result}
    value = _printed([tree], env, result, [result])[0]
    return f"""
extern "C" void {name}(const Argument* args, const Argument* results) {{
{_lines(_unpacked(arguments, env))}
  const Tensor<{TYPES[result]}> {RESULT}(results[0]);
  const int64_t all_ = {RESULT}.numel();
  for (Place e({RESULT}); e.position() < all_; e.next()) {{
    {RESULT}.flat(e.position()) = {value};
  }}
}}
"""


def fold_function(
    name: str,
    formula: FoldFormula,
    arguments: Sequence[Argument],
    kinds: Mapping[str, str],
    results: Sequence[str],
    step: int = 0,
) -> str:
    """The function of a reduction, or of a scan with this step.

    Its tensors are rows of the elements that are folded, and so are a scan's results.
    """
    env = _env(arguments, kinds)
    state = dict(zip(formula.accumulators, formula.kinds, strict=True))
    parts = dict(zip(part_names(state), formula.kinds * 2, strict=True))
    one = _printed(formula.map, env | {INDEX: "int"}, "float", formula.kinds)
    both = _printed(formula.combine, parts, "float", formula.kinds)
    none = _printed(formula.init, {}, "float", formula.kinds)
    finished = env | state | {COUNT: "int"}
    values = _printed(formula.finish, finished, "float", results)
    rows = next(iter(kinds))
    return f"""
extern "C" void {name}(const Argument* args, const Argument* results) {{
  struct State {{ {" ".join(f"{TYPES[k]} {n};" for n, k in state.items())} }};
{_lines(_unpacked(arguments, env, skip=kinds))}
{_lines(_tensors(arguments, kinds))}
{_lines(_outputs(results))}
  const int64_t rows_ = rows_{rows}.size(0), {COUNT} = rows_{rows}.size(1);
  auto one = [&](int64_t row_, int64_t {INDEX}) {{
{_lines(_elements(kinds))}
    return State{{{", ".join(one)}}};
  }};
  auto both = [](const State& {_whole(0, state)}, const State& {_whole(1, state)}) {{
{_lines(_parts(state))}
    return State{{{", ".join(both)}}};
  }};
  auto finish = [&](const State& s_, int64_t at_) {{
{_lines(f"[[maybe_unused]] const auto {n} = s_.{n};" for n in state)}
{_lines(f"out_{i}.flat(at_) = {v};" for i, v in enumerate(values))}
  }};
  for (int64_t row_ = 0; row_ < rows_; ++row_) {{
{_scan(step) if step else _reduction(none)}
  }}
}}
"""


def _reduction(none: Sequence[str]) -> str:
    """Parts of a few elements each, which then meet."""
    first, start = f"State{{{', '.join(none)}}}", "0"
    if not none:
        first, start = "one(row_, 0)", "1"
    return f"""    State all_ = {first};
    for (int64_t begin_ = {start}; begin_ < count; begin_ += {_BLOCK}) {{
      State part_ = one(row_, begin_);
      const int64_t end_ = std::min<int64_t>(begin_ + {_BLOCK}, count);
      for (int64_t i_ = begin_ + 1; i_ < end_; ++i_) part_ = both(part_, one(row_, i_));
      all_ = both(all_, part_);
    }}
    finish(all_, row_);"""


def _scan(step: int) -> str:
    first = "0" if step > 0 else "count - 1"
    return f"""    if (count == 0) continue;
    int64_t at_ = {first};
    State running_ = one(row_, at_);
    finish(running_, row_ * count + at_);
    for (int64_t i_ = 1; i_ < count; ++i_) {{
      at_ += {step};
      running_ = both(running_, one(row_, at_));
      finish(running_, row_ * count + at_);
    }}"""


def _printed(
    trees: Iterable[Expr], env: Mapping[str, str], compute: str, wants: Iterable[str]
) -> list[str]:
    """Each expression converted to the kind that is wanted."""
    printer = FormulaPrinter(compute, env, t=TYPES[compute])
    pairs = zip(trees, wants, strict=False)
    return [printer.to(expand_powers(tree, compute), want) for tree, want in pairs]


def _env(arguments: Iterable[Argument], kinds: Mapping[str, str]) -> dict[str, str]:
    found = {a.name: _KINDS.get(a.type.base, "float") for a in arguments}
    return found | dict(kinds)


def _unpacked(
    arguments: Sequence[Argument],
    env: Mapping[str, str],
    skip: Container[str] = (),
) -> Iterator[str]:
    """Definitions of the arguments under their names."""
    for i, a in enumerate(arguments):
        if a.name in skip:
            continue
        place, kind, unused = f"args[{i}]", env[a.name], "[[maybe_unused]] "
        if a.type.is_optional:
            yield f"{unused}const bool missing_{a.name} = {place}.missing;"
        if a.type.is_list:
            yield f"{unused}const List<{TYPES[kind]}> {a.name}({place});"
        elif a.type.base == "Tensor":
            yield f"{unused}const Tensor<{TYPES[kind]}> {a.name}({place});"
        else:
            field = "number" if kind == "float" else "integer"
            value = f"static_cast<{TYPES[kind]}>({place}.{field})"
            yield f"{unused}const {TYPES[kind]} {a.name} = {value};"


def _tensors(arguments: Sequence[Argument], kinds: Mapping[str, str]) -> Iterator[str]:
    for i, a in enumerate(arguments):
        if a.name in kinds:
            yield f"const Tensor<{TYPES[kinds[a.name]]}> rows_{a.name}(args[{i}]);"


def _outputs(results: Iterable[str]) -> Iterator[str]:
    for i, kind in enumerate(results):
        yield f"const Tensor<{TYPES[kind]}> out_{i}(results[{i}]);"


def _elements(kinds: Mapping[str, str]) -> Iterator[str]:
    for name in kinds:
        element = f"rows_{name}.flat(row_ * {COUNT} + {INDEX})"
        yield f"[[maybe_unused]] const auto {name} = {element};"


def _whole(part: int, state: Mapping[str, str]) -> str:
    """A part's name in C++: an only accumulator has the name of its part."""
    return PARTS[part] + ("_" if [*state] == [ONLY] else "")


def _parts(state: Mapping[str, str]) -> Iterator[str]:
    if [*state] == [ONLY]:
        yield from (f"const auto {part} = {part}_.{ONLY};" for part in PARTS)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
