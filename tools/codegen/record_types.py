"""What an operator record may say: one dataclass per family, fields made with `entry`.

To add a key to a family, add one line here; the loader and its messages follow.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from .axes import Axes, parse_axes
from .choices import When, choices_of
from .errors import Location
from .record_dtypes import Dtypes, Taken, dtypes_by_choice
from .record_formulas import (
    Accumulations,
    Fold,
    Formula,
    accumulations,
    folds,
    formula,
    texts,
)
from .schema import Schema
from .yaml_fields import (
    Node,
    Text,
    boolean,
    entry,
    list_of,
    map_of,
    named,
    number,
    one_of,
    struct,
    text,
)

DIM_RULES = ("none", "optional", "required", "single", "list")
PYTHON_MODULES = ("", "nn", "linalg", "special", "fft", "sparse", "nested", "none")
# Numbers of PyTorch's `torch.Tag`, which OpTag in aten/core/op_info.h repeats.
TAGS = {
    "data_dependent_output": 2,
    "dynamic_output_shape": 3,
    "inplace_view": 7,
    "nondeterministic_seeded": 13,
    "view_copy": 19,
}
# Those that follow from family and form.
FAMILY_TAGS = {"pointwise": 16, "reduction": 18}
FORM_TAGS = {"inplace": 6, "out": 14}
FORMS = ("inplace", "out")
# What autocast does to a call; the order is that of Autocast in aten/core/op_info.h.
AUTOCAST = {
    "keep": "Keep",
    "lower": "Lower",
    "float32": "Float32",
    "float32_result": "Float32Result",
    "promote": "Promote",
    "refuse": "Refuse",
}


# What an in-place form does to a tensor of which elements share an address (expanded
# ones), with the enumerator of aten/iter/repeats.h.
REPEATS = {"refused": "Refused", "warned": "Warned", "taken": "Taken"}


def _axes(node: Node) -> Axes:
    return parse_axes(text(node))


@dataclass(frozen=True)
class Pointwise:
    """One scalar expression; results have the broadcast shape of the inputs.

    `expr`, `dtypes` and the formulas of `backward` may differ by parameters
    (choices.py). A formula that calls `ops::` is C++ text, as in other families.
    `numbers` are names in the expressions with the C++ text that computes each, once
    per call. `reduction` names the argument that says how the values are reduced:
    0 not, 1 mean, 2 sum. Without `casts_out` an out= tensor has the results' dtype.
    `repeats` lets the in-place form write where elements lie at one address. With
    `row_major` the result is that, whatever order the operands have in memory.
    """

    expr: Formula = entry(formula)
    numbers: dict[str, Text] = entry(map_of(text), {})
    reduction: Text | None = entry(text, None)
    dtypes: Dtypes = entry(dtypes_by_choice, Dtypes())
    casts_out: bool = entry(boolean, True)
    repeats: str = entry(one_of(*REPEATS), "refused")
    row_major: bool = entry(boolean, False)
    # A function in taeda::native that refuses arguments before anything is computed.
    check: Text | None = entry(text, None)
    ulp: dict[str, float] = entry(named(number, "default"), {})


@dataclass(frozen=True)
class Reduction:
    """Named accumulators (`acc` if only one) with init, map, combine and finish.

    Where these differ by parameters (choices.py), `fold` holds them.
    """

    fold: tuple[tuple[When, Fold], ...] = entry(folds, ())
    init: dict[str, Text] = entry(named(text, "acc"), {})
    combine: dict[str, Text] = entry(named(text, "acc"), {})
    map: dict[str, Text] = entry(named(text, "acc"), {})
    finish: Text | None = entry(text, None)
    dims: str = entry(one_of(*DIM_RULES), "optional")
    empty: Text | None = entry(text, None)
    check: Text | None = entry(text, None)
    dtypes: Dtypes = entry(struct(Dtypes, "dtypes"), Dtypes())
    ulp: dict[str, float] = entry(named(number, "default"), {})

    @property
    def folds(self) -> tuple[tuple[When, Fold], ...]:
        """Each choice's fold, or the only one."""
        own = Fold(self.init, self.combine, self.map, self.finish, self.empty)
        return self.fold or (((), own),)


def _casts_out(node: Node) -> bool | str:
    return (
        boolean(node) if node.tag == "bool" else one_of("within_kind", "safely")(node)
    )


@dataclass(frozen=True)
class Composite:
    """In terms of other operators, which record their own derivatives.

    `call` is C++ text (`return ops::mul(self, self);`) or the name of a function in
    taeda::native that takes the arguments. With `casts_out` an out= tensor may have any
    dtype that the result can be cast to; `within_kind` wants a complex one for complex
    results and a floating point one for others; `safely` is true with the phrase that
    linear algebra has for what is refused.
    """

    call: Text = entry(text)
    casts_out: bool | str = entry(_casts_out, True)
    dtypes: Dtypes = entry(struct(Dtypes, "dtypes"), Dtypes())


@dataclass(frozen=True)
class View:
    """Shares memory with `self`.

    `geometry` names the function in taeda::native that makes the view (`make_view`),
    `rule` the template over the integer type that tells where it lies (Note [View
    rules]). `copy` says whether there is a NAME_copy (view_copies.py).
    """

    geometry: Text = entry(text)
    rule: Text | None = entry(text, None)
    copy: bool = entry(boolean, True)


@dataclass(frozen=True)
class Kernel:
    """Hand-written functions in taeda::native.

    `shape(specs..., plan)` checks the arguments and plans the outputs without seeing
    memory (Note [Shape rules]), `cpu(args..., outputs...)` writes them. In place of
    `cpu`, `any` is made of other operators and serves every device; functional forms
    with a `shape` may have neither, where only a GPU's library computes them. Without
    `shape` they make their results themselves (sizes that depend on data, views), or
    write into their arguments; where these have a `shape`, it checks the arguments and
    plans what an out= tensor becomes. `updates` names the argument whose values the
    output begins with; its in-place form refuses other arguments that share memory with
    it, or works on a copy then if `overlaps`.
    `means` is its definition by other operators, written as in composites: what it is
    differentiated and mapped by where its record says nothing nearer.
    `repeats` lets the in-place form write where elements lie at one address.
    `takes` are the dtypes beyond which the kernel, meta and graphs refuse a call.
    An out= tensor has the planned dtype; with `casts_out` it may have any that the
    results can be cast to.
    """

    shape: Text | None = entry(text, None)
    cpu: Text | None = entry(text, None)
    any: Text | None = entry(text, None)
    updates: Text | None = entry(text, None)
    overlaps: bool = entry(boolean, False)
    repeats: str = entry(one_of(*REPEATS), "refused")
    axes: Axes | None = entry(_axes, None)
    means: Text | None = entry(text, None)
    takes: Taken = entry(struct(Taken, "takes"), Taken())
    casts_out: bool = entry(boolean, False)
    dtypes: Dtypes = entry(struct(Dtypes, "dtypes"), Dtypes())


@dataclass(frozen=True, kw_only=True)
class Map(Kernel):
    """A kernel whose result is also given element by element (index maps).

    `map` is the expression of one element, over its own index, sizes, arguments and
    elements of other tensors (docs/design/records.md, section 3).
    """

    map: Text = entry(text)


@dataclass(frozen=True, kw_only=True)
class MapOfOthers(Composite):
    """An index map that is made of other operators: `call` in place of a kernel."""

    map: Text = entry(text)


@dataclass(frozen=True, kw_only=True)
class PointwiseOfOthers(Composite):
    """A composite whose result is also given by a scalar expression, in which
    `x is None` asks for an argument.
    """

    expr: Text = entry(text)


@dataclass(frozen=True, kw_only=True)
class Folded(Kernel):
    """A kernel of which each result is also given by accumulators over elements.

    In the family `reduction` those along `dim`, or all; in the family `scan` all up to
    each place along `dim`, or from each place on where `reverse`.
    """

    fold: Accumulations = entry(accumulations)
    finish: tuple[Text, ...] = entry(texts, ())  # where `fold` has none
    reverse: bool = entry(boolean, False)


@dataclass(frozen=True, kw_only=True)
class FoldedOfOthers(Composite):
    """The same made of other operators: `call` in place of a kernel."""

    fold: Accumulations = entry(accumulations)
    finish: tuple[Text, ...] = entry(texts, ())  # where `fold` has none
    reverse: bool = entry(boolean, False)


@dataclass(frozen=True)
class Foreach:
    """A call of `element` for each entry of lists: derived, never written in a file.

    Argument i is what the calls take as argument i: of a list each call gets its entry,
    of a tensor where a number is wanted its element; all else goes to every call.
    Arguments of the element that are left out at the end have their defaults.
    """

    element: Overload


Body = Pointwise | Reduction | Composite | View | Kernel | Foreach
# The families that may stand in a file.
FAMILIES: dict[str, type] = {
    "pointwise": Pointwise,
    "reduction": Reduction,
    "scan": Folded,
    "composite": Composite,
    "view": View,
    "kernel": Kernel,
    "map": Map,
}
# Formulas beside a kernel, and those of composites.
_BESIDE: dict[str, tuple[type, type]] = {
    "pointwise": (Pointwise, PointwiseOfOthers),
    "reduction": (Folded, FoldedOfOthers),
    "scan": (Folded, FoldedOfOthers),
    "map": (Map, MapOfOthers),
}


def body_type(family: str, keys: Collection[str]) -> type:
    """The class of a family's body: by whether `call` or a kernel makes the results."""
    kernel, composite = _BESIDE.get(family, (None, None))
    if composite is not None and "call" in keys:
        return composite
    if kernel is not None and not {"cpu", "any"}.isdisjoint(keys):
        return kernel
    return FAMILIES[family]


@dataclass(frozen=True)
class Backward:
    """Derivatives by argument; a key `self, other` is one call for several of them.

    `differentiable` is False for `backward: none`. An argument without a formula gets
    the differentiated expression (pointwise); in other families, or where the formula
    is `none`, it may not require gradients. `non_differentiable` makes it a constant.
    """

    formulas: dict[tuple[str, ...], Text]
    differentiable: bool = True
    location: Location = field(default=Location(), compare=False)
    # Formulas that differ by parameters: of pointwise records only.
    by_choice: dict[str, tuple[tuple[When, Text], ...]] = field(default_factory=dict)


def _backward(node: Node) -> Backward:
    if node.tag == "str" and node.value == "none":
        return Backward({}, False, node.location)
    formulas: dict[tuple[str, ...], Text] = {}
    chosen: dict[str, tuple[tuple[When, Text], ...]] = {}
    for names, value in node.mapping("formulas by argument, or `none`").items():
        if value.tag == "map":
            chosen[names] = tuple(choices_of(value, text))
        else:
            formulas[tuple(name.strip() for name in names.split(","))] = text(value)
    return Backward(formulas, True, node.location, chosen)


@dataclass(frozen=True)
class Forms:
    """Derived forms to make: form name to full operator name, None for the usual.

    `row_major` says that an out= tensor that takes another shape is row-major, whatever
    the strides of the functional form's result.
    """

    names: dict[str, Text | None]
    out_args: tuple[str, ...] = ()
    row_major: bool = False


def _forms(node: Node) -> Forms:
    if node.tag == "seq":
        return Forms(dict.fromkeys(list_of(one_of(*FORMS))(node)))
    out_args: tuple[str, ...] = ()
    row_major = False
    names: dict[str, Text | None] = {}
    for key, value in node.mapping("a list or mapping of forms").items():
        if key == "out_args":
            out_args = list_of(text)(value)
        elif key == "row_major":
            row_major = boolean(value)
        elif key in FORMS:
            default = value.tag == "null" or value.value == "true"
            names[key] = None if default else text(value)
        else:
            raise value.fail(f"forms: unknown form {key!r} (inplace, out, out_args)")
    return Forms(names, out_args, row_major)


# The overloads that a `foreach` field may ask for, and what each usually calls its
# operand (see foreach.py).
OPERANDS = {
    "Scalar": "scalar",
    "ScalarList": "scalars",
    "List": "other",
    "Tensor": "other",
    "ScalarAndTensor": "other",
}


@dataclass(frozen=True)
class ForeachForms:
    """The `_foreach_` operators of a record.

    `overloads` has the name of the operand of each; without any, the record's overload
    without a name is made one of lists. `rename` is for other arguments; `names` are
    what the lists' operators are called in place of the record's name.
    """

    overloads: dict[str, str] = entry(lambda node: _operands(node), {})
    forms: tuple[str, ...] = entry(
        list_of(one_of("functional", "inplace")), ("functional", "inplace")
    )
    rename: dict[str, Text] = entry(map_of(text), {})
    names: tuple[Text, ...] = entry(list_of(text), ())


def _operands(node: Node) -> dict[str, str]:
    word = one_of(*OPERANDS)
    if node.tag == "seq":
        return {name: OPERANDS[name] for name in list_of(word)(node)}
    return {
        word(replace(child, value=name)): text(child)
        for name, child in node.mapping("a list of overloads, or operands").items()
    }


def _foreach(node: Node) -> ForeachForms:
    """`true`, a list of overloads, or a mapping of the fields above."""
    if node.tag == "map":
        return struct(ForeachForms, "foreach")(node)
    if node.tag == "seq":
        return ForeachForms(_operands(node))
    if not boolean(node):
        raise node.fail("foreach: leave the field out where there are no such forms")
    return ForeachForms()


@dataclass(frozen=True)
class Python:
    """Where the Python function goes and how it may be called besides its schema.

    With `module: none` there is no function nor method, as where an overload says
    `variants: []`: `taeda.ops.aten` and C++ have it alone.
    """

    module: str = entry(one_of(*PYTHON_MODULES), "")
    name: Text | None = entry(text, None)
    aliases: tuple[Text, ...] = entry(list_of(text), ())
    arg_aliases: dict[str, Text] = entry(map_of(text), {})
    deprecated: tuple[Text, ...] = entry(list_of(text), ())
    variadic: Text | None = entry(text, None)
    private: bool = entry(boolean, False)
    # Whether numbers may stand for its tensors.
    numbers: bool = entry(boolean, False)


@dataclass(frozen=True)
class Doc:
    """One line, then free text (the formula first)."""

    summary: str
    details: str


def _doc(node: Node) -> Doc:
    value = text(node).strip()
    if not value:
        raise node.fail("doc: empty")
    summary, _, details = value.partition("\n")
    return Doc(summary.strip(), details.strip())


@dataclass(frozen=True)
class Autocast:
    """What autocast does to calls: one word for all devices, or one for each."""

    cpu: str = entry(one_of(*AUTOCAST), "keep")
    cuda: str = entry(one_of(*AUTOCAST), "keep")


def _autocast(node: Node) -> Autocast:
    if node.tag == "str":
        policy = one_of(*AUTOCAST)(node)
        return Autocast(policy, policy)
    return struct(Autocast, "autocast")(node)


@dataclass(frozen=True)
class Shared:
    """Keys that an overload may set for itself and otherwise takes from its record."""

    family: str = entry(one_of(*FAMILIES))
    backward: Backward | None = entry(_backward, None)
    # Tensor arguments in each of which the operator is linear while all others stay:
    # its tangent along one of them is the operator itself.
    linear: tuple[Text, ...] = entry(list_of(text), ())
    variants: tuple[str, ...] = entry(
        list_of(one_of("function", "method")), ("function", "method")
    )
    forms: Forms = entry(_forms, Forms({}))
    tags: tuple[str, ...] = entry(list_of(one_of(*TAGS)), ())
    # Of the functional form; the others are never cast.
    autocast: Autocast = entry(_autocast, Autocast())
    differentiable_outputs: tuple[Text, ...] | None = entry(list_of(text), None)
    # The name of its autograd node where PyTorch's differs from Name + "Backward" +
    # number; or a C++ expression for it over `rank` (dims of the first output) and
    # should_compute(i) (whether edge i is there).
    node: Text | None = entry(text, None)


@dataclass(frozen=True)
class Overload(Shared):
    """One schema with its derived forms (`inplace`, `out`) and its family's fields."""

    schema: Schema = field(kw_only=True)
    derived: dict[str, Schema] = field(kw_only=True)
    body: Body = field(kw_only=True)
    location: Location = field(kw_only=True, compare=False)

    @property
    def schemas(self) -> dict[str, Schema]:
        """All forms by name, `functional` being the schema as written."""
        return {"functional": self.schema, **self.derived}


@dataclass(frozen=True)
class Record:
    """All that is said about one base name."""

    name: Text = entry(text)
    doc: Doc = entry(_doc)
    args: dict[str, Text] = entry(map_of(text), {})
    returns: Text | None = entry(text, None)
    raises: Text | None = entry(text, None)
    example: Text | None = entry(text, None)
    python: Python = entry(struct(Python, "python"), Python())
    foreach: ForeachForms | None = entry(_foreach, None)
    alias_names: tuple[Text, ...] = entry(list_of(text), ())
    overloads: tuple[Overload, ...] = field(default=(), kw_only=True)
    location: Location = field(default=Location(), kw_only=True, compare=False)
