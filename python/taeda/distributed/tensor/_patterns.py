"""Operators as patterns of axes, read from their records.

A strategy says for one dimension of a mesh how each tensor of a call is placed, and how
each result then is. Those of an operator follow from its record: an axis that may be
cut gives one, a sum over an axis leaves partial sums, and an operator that is linear in
some tensors takes partial sums of them. `_rules.py` has the operators whose record says
that nothing can be told.
"""

from __future__ import annotations

import math

from ._axes import Axes
from ._formulas import joined_by, linear_sets, reads_no_values
from .placement_types import Partial, Replicate

REPLICATE = Replicate()


class Operands:
    """The tensors of a call, in the order of its arguments.

    Args:
        func: the overload.
        values: name -> value of each argument, distributed tensors among them.
        is_ours: whether a value is a distributed tensor.
        results: tensors on meta of the results' shapes; None where they are not known.
    """

    def __init__(self, func, values: dict, is_ours, results) -> None:
        self.func, self.values, self.results = func, values, results
        self.tensors: list = []
        self.names: list[str] = []
        self.entries: list[int] = []  # places in the lists that tensors come from
        for name, value in values.items():
            items = value if isinstance(value, (list, tuple)) else (value,)
            for entry, item in enumerate(items):
                if is_ours(item):
                    self.tensors.append(item)
                    self.names.append(name)
                    self.entries.append(entry)
        self.specs = [t._spec for t in self.tensors]

    @property
    def shapes(self) -> list:
        """The whole tensors' shapes."""
        return [spec.shape for spec in self.specs]

    def placed(self, mesh_dim: int) -> list:
        """How the tensors are placed along a dimension of the mesh."""
        return [spec.placements[mesh_dim] for spec in self.specs]


class Strategy:
    """Placements along one dimension of a mesh: of the tensors, and of the results.

    `extra` is a cost in microseconds besides that of placing the tensors.
    """

    __slots__ = ("extra", "inputs", "outputs")

    def __init__(self, inputs: list, outputs: list, extra: float = 0.0) -> None:
        self.inputs, self.outputs, self.extra = inputs, outputs, extra


class Pattern:
    """What the record of an overload says about cuts and sums.

    Args:
        func: the overload.
        text: axes that stand for those of the record.
        linear: sets of arguments that may be partial sums together.
        added: an argument that is added to a sum over an axis.
    """

    # Whether the strategies depend on the call's real numbers.
    reads_numbers = False

    def __init__(
        self, func, text: str | None = None, linear=None, added: str = ""
    ) -> None:
        record = func.record
        is_tensor = [a for a in record.arguments if a.type.startswith("Tensor")]
        names = [a.name for a in is_tensor]
        self.record, self.names, self.added = record, names, added
        self.joined = joined_by(record) if record.family == "reduction" else None
        text = text or record.axes or _text_of_family(record, is_tensor, self.joined)
        self.axes = None
        if text is not None and not text.startswith("opaque"):
            self.axes = Axes(text)
            if len(self.axes.inputs) < len(names):
                # Tensors of `out=` lie as the results.
                self.axes.inputs += self.axes.outputs
        # A mean's gradient is divided by the number of elements that the call has.
        self.divides_by_size = (
            record.family == "pointwise"
            and record.axes is None
            and any(a.name == "reduction" for a in record.arguments)
        )
        lists = [o for o in self.axes.inputs if o.is_list] if self.axes else []
        self.goes_by_entries = len(lists) > 1 and not self.axes.outputs
        self.is_accumulating = self.joined is not None and record.axes is None
        self.reads_nothing = reads_no_values(record, names)
        if linear is not None:
            self.linear = linear
        elif record.family in ("pointwise", "map"):
            self.linear = linear_sets(record, names)
        else:
            self.linear = self._sums_of_products()

    def _sums_of_products(self) -> list[frozenset[str]]:
        """An axis that is summed over without being whole: products are added up."""
        if self.axes is None or self.record.family != "kernel":
            return []
        if any(a.type.startswith("Tensor?") for a in self.record.arguments):
            return []
        right = {t.name for o in self.axes.outputs for t in o.terms}
        found = []
        for name, operand in zip(self.names, self.axes.inputs, strict=False):
            keys = {t.name for t in operand.terms if t.kind == "name" and not t.whole}
            if keys - right and len(self.axes.inputs) == 2:
                found.append(frozenset([name]))
        return found if len(found) == 2 else []

    def _by_entries(self, call: Operands, mesh_dim: int) -> Strategy:
        """Lists that go together element by element: all are placed as the first."""
        placed, first = call.placed(mesh_dim), {}
        for name, entry, shape, placement in zip(
            call.names, call.entries, call.shapes, placed, strict=True
        ):
            if name == self.names[0]:
                first[entry] = (tuple(shape), placement)
        inputs = []
        for entry, shape in zip(call.entries, call.shapes, strict=True):
            wanted, placement = first.get(entry, ((), REPLICATE))
            inputs.append(placement if tuple(shape) == wanted else REPLICATE)
        return Strategy(inputs, [])

    # -- strategies -----------------------------------------------------------

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        """Those that keep a cut or partial value of some tensor, and the replica's."""
        if self.goes_by_entries:
            return [self._by_entries(call, mesh_dim)]
        found = self._cuts(call, mesh_dim, count) + self._sums(call, mesh_dim)
        outputs = [REPLICATE] * result_count(call.results)
        return [*found, Strategy([REPLICATE] * len(call.tensors), outputs)]

    def _labels(self, call: Operands) -> tuple[list, list] | None:
        """Labels of the axes of all tensors and results."""
        values = call.values
        pattern_of = dict(zip(self.names, self.axes.inputs, strict=False))
        try:
            left = [
                [None] * len(shape)
                if pattern_of[name].unread
                else self._labels_of(pattern_of[name], len(shape), values)
                for name, shape in zip(call.names, call.shapes, strict=True)
            ]
            right = self._result_labels(call)
        except (ValueError, KeyError):
            return None
        return left, right

    def _labels_of(self, operand, rank: int, values: dict) -> list:
        """Where `keepdim` is true, reduced axes are there with size one."""
        if values.get("keepdim") and not operand.names_dims():
            operands = (*self.axes.inputs, *self.axes.outputs)
            dims = [t for o in operands for t in o.terms if t.kind == "at"]
            if dims:
                return _kept_labels([*operand.terms, dims[0]], rank, values)
        return operand.labels(rank, values)

    def _result_labels(self, call: Operands) -> list:
        values, found = call.values, []
        outputs = self.axes.outputs
        metas = list(flat_results(call.results))
        if len(outputs) != len(metas):
            # A list of results has one pattern for all of them.
            outputs = [outputs[0]] * len(metas)
        for operand, meta in zip(outputs, metas, strict=True):
            if meta is None:
                found.append([])
                continue
            found.append(self._labels_of(operand, meta.dim(), values))
        return found

    def _cuts(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        if self.axes is None:
            return []
        both = self._labels(call)
        if both is None:
            return []
        left, right = both
        found, seen = self._alike(call, mesh_dim), set()
        for labels, spec in zip(left, call.specs, strict=True):
            placement = spec.placements[mesh_dim]
            if not placement.is_shard():
                continue
            label = labels[placement.dim]
            if label is None or (label, type(placement)) in seen:
                continue
            seen.add((label, type(placement)))
            made = self._cut(call, label, placement, left, right, count)
            if made is not None:
                found.append(made)
        return found

    def _alike(self, call: Operands, mesh_dim: int) -> list[Strategy]:
        """A new tensor of the shape of one that is not read is cut like it."""
        placement, outputs = call.placed(mesh_dim)[0], self.axes.outputs
        if not (self.axes.inputs[0].unread and placement.is_shard() and outputs):
            return []
        if len(call.tensors) != 1 or len(outputs) != 1 or not outputs[0].sizes:
            return []
        if list(call.values[outputs[0].sizes]) != list(call.shapes[0]):
            return []
        return [Strategy([placement], [placement])]

    def _cut(self, call: Operands, label, placement, left, right, count: int):
        """The strategy in which the axis of that label is cut; None if it cannot be."""
        size, inputs = None, []
        sizes = [
            shape[labels.index(label)]
            for labels, shape in zip(left, call.shapes, strict=True)
            if label in labels
        ]
        repeats = label[0] == "..." and max(sizes) > 1
        for labels, shape in zip(left, call.shapes, strict=True):
            at = labels.index(label) if label in labels else None
            if at is None or (shape[at] == 1 and repeats):
                inputs.append(REPLICATE)
                continue
            if size is not None and shape[at] != size:
                return None
            size = shape[at]
            inputs.append(placement._on(at))
        outputs = []
        for labels, meta in zip(right, flat_results(call.results), strict=True):
            if label in labels and self._reduces(call) is None:
                outputs.append(placement._on(labels.index(label)))
                continue
            if label[0] == "*" and any(n and n[0] == "*" for n in labels):
                return None  # the groups are not of the same axes
            kind = self._left_over(call, label)
            if kind is None or (kind != "sum" and not _fills(size, kind, call, count)):
                return None
            outputs.append(Partial(kind) if meta is not None else REPLICATE)
        if self.added and any(p.is_partial() for p in outputs):
            # What is added to the sum is divided among the ranks as well.
            inputs = [
                Partial("sum") if name == self.added else given
                for name, given in zip(call.names, inputs, strict=True)
            ]
        return Strategy(inputs, outputs)

    def _reduces(self, call: Operands) -> str | None:
        """How all axes are reduced where an argument asks for it."""
        for operand in self.axes.outputs:
            if operand.reduction:
                return {1: "avg", 2: "sum"}.get(call.values[operand.reduction])
        return None

    def _left_over(self, call: Operands, label) -> str | None:
        """What the results of parts are joined by, where results lack the axis."""
        if self.is_accumulating:
            return self.joined
        if self._reduces(call) is not None:
            return self._reduces(call)
        return "sum"

    def _sums(self, call: Operands, mesh_dim: int) -> list[Strategy]:
        placed = call.placed(mesh_dim)
        kinds = dict.fromkeys(p for p in placed if type(p) is Partial)
        outputs = result_count(call.results)
        found = []
        for kind in kinds:
            if self.reads_nothing:
                found.append(Strategy(placed, [REPLICATE] * outputs))
                continue
            if self.is_accumulating:
                if kind.reduce_op == self.joined:
                    found.append(Strategy([kind] * len(placed), [kind] * outputs))
                continue
            if kind.reduce_op not in ("sum", "avg"):
                continue
            for names in self.linear:
                if not names <= set(call.names):
                    continue  # a number is added, which partial values must not repeat
                pairs = zip(call.names, placed, strict=True)
                if all(n not in names or p != kind for n, p in pairs):
                    continue
                inputs = [kind if n in names else REPLICATE for n in call.names]
                found.append(Strategy(inputs, [kind] * outputs))
        return found


def _fills(size: int, kind: str, call: Operands, count: int) -> bool:
    """Whether each rank has as many elements as the others, for a mean, or any.

    Other dimensions of the mesh may cut the same axis, so all that cut are counted.
    """
    spec = call.specs[0]
    cutting = [
        spec.mesh.size(at)
        for at in range(spec.mesh.ndim)
        if any(s.placements[at].is_shard() for s in call.specs)
    ]
    ranks = max(math.prod(cutting), count)
    if kind == "avg":
        return size % ranks == 0
    return -(-size // ranks) * (ranks - 1) < size


def _kept_labels(terms, rank: int, values: dict) -> list:
    from ._axes import Operand

    shown = Operand("()")
    shown.terms = list(terms)
    labels = shown.labels(rank, values)
    return [None if isinstance(n, tuple) and n[0] == "@" else n for n in labels]


def _text_of_family(record, tensors, joined) -> str | None:
    """The axes of operators whose family says them."""
    count = len(record.results)
    if record.family == "pointwise":
        left = ", ".join("[...]" if a.type.endswith("[]") else "..." for a in tensors)
        return f"{left} -> {', '.join(['...'] * count)}"
    if record.family == "reduction":
        dims = [a.name for a in record.arguments if a.name in ("dim", "dims")]
        whole = "" if joined else "!"
        name = dims[0] if dims else "all"
        return f"* @{name}*{whole} -> {', '.join(['*'] * count)}"
    return None


def flat_results(results):
    """The results one by one, lists taken apart."""
    for item in results:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


def result_count(results) -> int:
    """How many tensors the results are."""
    return sum(1 for _ in flat_results(results))
