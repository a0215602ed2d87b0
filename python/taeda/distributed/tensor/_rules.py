"""Operators whose records say less than sharding needs.

One table: `RULES` has for an overload's name either axes that may be cut further than
its record says, since an operand is added to a sum or is looked up, or a class that
makes the strategies. A test holds each entry to its record: the overload exists, and
its record says `opaque`, or needs whole what the rule cuts.
"""

from __future__ import annotations

from ._costs import scatter_cost
from ._patterns import REPLICATE, Operands, Pattern, Strategy, result_count
from .placement_types import Partial, Shard, _MaskPartial, _NormPartial


class _Added(Pattern):
    """A product with something added: `!` stands in the record since cutting the sum
    would add it once for each part."""

    def __init__(self, func, text: str, one: str, other: str) -> None:
        sums = [frozenset(["self", one]), frozenset(["self", other])]
        super().__init__(func, text, sums, added="self")


class _Moved(Pattern):
    """Results are the tensors' elements, moved: partial values stay what they are."""

    def __init__(self, func, text: str | None = None) -> None:
        super().__init__(func, text, [])
        self.linear = [frozenset(self.names[:1])]


class _Padded(_Moved):
    """Moved, and between them a number, which partial values must not repeat."""

    reads_numbers = True

    def _sums(self, call: Operands, mesh_dim: int) -> list[Strategy]:
        return super()._sums(call, mesh_dim) if not call.values["value"] else []


class _Norm(Pattern):
    """Norms: parts have norms of their own, whose powers add up."""

    reads_numbers = True

    def _left_over(self, call: Operands, label) -> str:
        return "norm"

    def _cut(self, call: Operands, label, placement, left, right, count: int):
        order = call.values["ord"]
        made = super()._cut(call, label, placement, left, right, count)
        if made is None or not made.outputs[0].is_partial():
            return made
        if order in (float("inf"), float("-inf")):
            kind: Partial = Partial("max" if order > 0 else "min")
        elif order == 0:
            kind = Partial("sum")
        else:
            kind = _NormPartial(_as_int(order))
        return Strategy(made.inputs, [kind])


def _as_int(order):
    return int(order) if float(order).is_integer() else order


class _Lookup(Pattern):
    """`embedding`: a table cut by rows gives zeros for rows of others."""

    looks_up = True

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        found = super().strategies(call, mesh_dim, count)
        table, indices = call.placed(mesh_dim)
        if table.is_shard(0):
            mask = _MaskPartial("sum", call.shapes[0], 0)
            # Indices that are cut would give parts of the result, which now have to
            # be made of partial sums.
            extra = scatter_cost(call.results[0], count) if indices.is_shard() else 0.0
            found.insert(0, Strategy([Shard(0), REPLICATE], [mask], extra))
        return found


class _Sorted(Pattern):
    """Sums that become rows: cutting them moves half of what reducing all does."""

    def _cuts(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        found = super()._cuts(call, mesh_dim, count)
        both = self._labels(call) if call.placed(mesh_dim)[0].is_partial() else None
        for label in both[0][0] if both else ():
            if label is not None:
                made = self._cut(call, label, Shard(0), *both, count)
                found += [made] if made is not None else []
        return found


class _Repeat(Pattern):
    """`repeat`: an axis that is there once stays cut."""

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        placement = call.placed(mesh_dim)[0]
        repeats, found = list(call.values["repeats"]), []
        if placement.is_partial():
            found.append(Strategy([placement], [placement]))
        elif placement.is_shard():
            at = placement.dim + len(repeats) - len(call.shapes[0])
            if repeats[at] == 1:
                found.append(Strategy([placement], [placement._on(at)]))
        return [*found, Strategy([REPLICATE], [REPLICATE])]


class _Index(Pattern):
    """`index`: axes that no index is for may be cut, and lie behind or in place."""

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        outputs = [REPLICATE] * result_count(call.results)
        whole = [REPLICATE] * len(call.tensors)
        placement = call.placed(mesh_dim)[0]
        found = []
        if placement.is_partial():
            found.append(Strategy([placement, *whole[1:]], [placement]))
        elif placement.is_shard():
            at = self._after(call, placement.dim)
            if at is not None:
                cut = Strategy([placement, *whole[1:]], [placement._on(at)])
                found.append(cut)
        return [*found, Strategy(whole, outputs)]

    def _after(self, call: Operands, dim: int) -> int | None:
        """Where the result has that axis; None where it is indexed."""
        given = call.values["indices"]
        used = [i for i, index in enumerate(given) if index is not None]
        if dim in used or any(str(t.dtype) == "torch.bool" for t in call.tensors[1:]):
            return None
        width = max((t.dim() for t in call.tensors[1:]), default=0)
        together = used == list(range(used[0], used[-1] + 1)) if used else True
        first = used[0] if together and used else 0
        before = sum(1 for i in range(dim) if i not in used)
        if not together:
            return width + before
        return before if dim < first else before + width


RULES = {
    "aten::addmm": (_Added, "n? m?, n k, k m -> n m", "mat1", "mat2"),
    "aten::addmv": (_Added, "n?, n k, k -> n", "mat", "vec"),
    "aten::baddbmm": (_Added, "b? n? m?, b n k, b k m -> b n m", "batch1", "batch2"),
    "aten::dot": (Pattern, "k, k -> ()", [frozenset(["self"]), frozenset(["tensor"])]),
    "aten::vdot": (Pattern, "k, k -> ()", [frozenset(["self"]), frozenset(["other"])]),
    "aten::cat": (_Moved,),
    "aten::stack": (_Moved,),
    "aten::roll": (_Moved,),
    "aten::constant_pad_nd": (_Padded,),
    "aten::linalg_vector_norm": (_Norm, "* @dim* -> *"),
    "aten::embedding": (_Lookup,),
    "aten::index.Tensor": (_Index,),
    "aten::repeat": (_Repeat,),
    "aten::sort": (_Sorted,),
    "aten::sort.stable": (_Sorted,),
    "aten::topk": (_Sorted,),
}


def rule_for(func):
    """The rule of an overload, or None where its record is enough."""
    entry = RULES.get(func.name())
    return None if entry is None else entry[0](func, *entry[1:])
