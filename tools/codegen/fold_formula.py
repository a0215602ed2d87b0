"""Formulas of reductions and scans beside a kernel or a composite: the field `fold`.

What they may say is in docs/design/records.md, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .choices import When, check_choices
from .errors import CodegenError
from .expr_ast import Access, Expr, Literal, walk
from .expr_parse import parse
from .expr_types import check, widest
from .record_formulas import Accumulation
from .record_types import Folded, FoldedOfOthers, Overload, PointwiseOfOthers
from .schema import Argument
from .yaml_fields import Text

# The only accumulator, and what the parts that meet in `combine` are called.
ONLY, PARTS = "acc", ("a", "b")
# Where an element lies along the folded axes, and how many elements there are.
INDEX, COUNT = "index", "count"
# Kinds of the arguments that an expression can compute with.
_KINDS = {
    **dict.fromkeys(("Tensor", "Scalar", "float"), "float"),
    **dict.fromkeys(("int", "SymInt"), "int"),
    "bool": "bool",
}
# Roles of the expressions, in the order of their sections.
ROLES = ("init", "map", "combine", "finish")


@dataclass(frozen=True)
class FoldFormula:
    """The trees of one choice: by accumulator, and `finish` by result."""

    when: When
    accumulators: tuple[str, ...]
    kinds: tuple[str, ...]
    init: tuple[Expr, ...]  # empty where no element is an error
    map: tuple[Expr, ...]
    combine: tuple[Expr, ...]
    finish: tuple[Expr, ...]

    def sections(self) -> dict[tuple[str, str, int], Expr]:
        """The trees by (role, kind, accumulator or result)."""
        return {
            (role, "float", i): tree
            for role in ROLES
            for i, tree in enumerate(getattr(self, role))
        }


def part_names(accumulators: Iterable[str]) -> list[str]:
    """Both parts' names of accumulators: `a`, `b`, or `a.mean`, `b.mean`."""
    names = list(accumulators)
    if names == [ONLY]:
        return list(PARTS)
    return [f"{part}.{name}" for part in PARTS for name in names]


def number_names(overload: Overload) -> list[str]:
    """Names in the trees that are neither arguments nor known to the language."""
    body = overload.body
    assert isinstance(body, Folded | FoldedOfOthers)
    names = [*body.fold[0][1].combine]
    return [] if names == [ONLY] else [*names, *part_names(names)]


def formulas_of(overload: Overload) -> list[FoldFormula]:
    """The trees of each choice; CodegenError with its place where one is wrong."""
    body = overload.body
    assert isinstance(body, Folded | FoldedOfOthers)
    check_choices([when for when, _ in body.fold], overload.schema)
    if len({tuple(fold.combine) for _, fold in body.fold}) > 1:
        raise CodegenError(
            f"{overload.schema.name}: fold: all choices have the same accumulators",
            overload.location,
        )
    return [_formula(overload, when, fold) for when, fold in body.fold]


def step_of(overload: Overload) -> Expr | None:
    """Of a scan, from one element to the next: 1, or -1 from the last one on."""
    if overload.family != "scan":
        return None
    return Literal(-1 if getattr(overload.body, "reverse", False) else 1)


def _formula(overload: Overload, when: When, fold: Accumulation) -> FoldFormula:
    names = tuple(fold.combine)
    place = next(iter(fold.combine.values())).location
    what = f"{overload.schema.name}: fold"
    usable = _usable(overload, when)
    for name in names:
        taken = name in {*usable, INDEX, COUNT, *PARTS}
        if taken or not name.isidentifier():
            raise CodegenError(f"{what}: no accumulator can be named {name!r}", place)
    texts = fold.map or ({ONLY: Text("self", place)} if names == (ONLY,) else {})
    for part in (texts, fold.init) if fold.init else (texts,):
        if tuple(part) != names:
            given, wanted = ", ".join(part), ", ".join(names)
            raise CodegenError(f"{what}: {given or 'none'} given for {wanted}", place)
    results = len(overload.schema.returns)
    finish = (
        fold.finish
        or overload.body.finish
        or tuple(Text(name, place) for name in names)
    )
    if len(finish) != results:
        raise CodegenError(f"{what}: {len(finish)} values for {results} results", place)
    element = usable | {INDEX: "int"}
    elements = [_checked(text, element) for text in texts.values()]
    combined, kinds = _combined(fold, names, [kind for _, kind in elements])
    state = usable | dict(zip(names, kinds, strict=True)) | {COUNT: "int"}
    for tensor in overload.schema.tensor_args:
        state.pop(tensor.name, None)
    return FoldFormula(
        when,
        names,
        kinds,
        tuple(_checked(text, {})[0] for text in fold.init.values()),
        tuple(tree for tree, _ in elements),
        combined,
        tuple(_checked(text, state)[0] for text in finish),
    )


def _usable(overload: Overload, when: When) -> dict[str, str]:
    """The arguments that have a value in expressions, with their kinds."""
    absent = {c.argument for c in when if c.value == "absent"}
    return {
        name: kind for name, kind in kinds_of(overload).items() if name not in absent
    }


def kinds_of(overload: Overload) -> dict[str, str]:
    """The arguments that are numbers, or tensors of such, with their kinds."""
    return {
        a.name: _KINDS[a.type.base] for a in overload.schema.arguments if _is_number(a)
    }


def _is_number(argument: Argument) -> bool:
    return argument.type.base in _KINDS and not argument.type.is_list


def _combined(
    fold: Accumulation, names: tuple[str, ...], kinds: list[str]
) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
    """How parts meet; an accumulator is as wide as its widest value."""
    while True:
        env = dict(zip(part_names(names), [*kinds, *kinds], strict=True))
        found = [_checked(text, env) for text in fold.combine.values()]
        wider = [widest(a, b) for a, (_, b) in zip(kinds, found, strict=True)]
        if wider == kinds:
            return tuple(tree for tree, _ in found), tuple(kinds)
        kinds = wider


def expression_of(overload: Overload) -> Expr:
    """Of a composite: the expression of an element over those of its operands."""
    assert isinstance(overload.body, PointwiseOfOthers)
    return _checked(overload.body.expr, kinds_of(overload))[0]


def _checked(text: Text, env: dict[str, str]) -> tuple[Expr, str]:
    """The tree and its kind; `x is None` is known in it, and nothing else of maps."""
    tree = parse(text, env, places=True)
    try:
        for node in walk(tree):
            looks = isinstance(node, Access) and node.op != "missing"
            node.require(not looks, "fold: only index maps look at their place")
        return tree, check(tree, env)
    except CodegenError as error:
        raise error.at(text.location, str(text)) from None


def variants(
    overload: Overload,
) -> Iterator[tuple[str, dict[tuple[str, str, int], Expr]]]:
    """The sections of each choice, and where a scan goes."""
    step = step_of(overload)
    extra = {} if step is None else {("step", "int", 0): step}
    for formula in formulas_of(overload):
        yield ", ".join(map(str, formula.when)), formula.sections() | extra
