"""Distributed tensors: what ranks compute is what one process computes."""

from __future__ import annotations

import itertools

import pytest
import taeda
from dtensor_programs import CALLS
from ranks import run


# On one dimension operands lie in 4 ways; on two in 16, of which 7 are taken.
@pytest.mark.parametrize(("world", "shape", "ways"), [(3, (), 4), (4, (2, 2), 7)])
def test_operators(tmp_path, world, shape, ways):
    results = run(tmp_path, "dtensor_programs.operators", world, shape, limit=120)
    for got in results:
        assert got["failed"] == []
        assert got["count"] == len(CALLS) * ways


@pytest.mark.parametrize(("world", "shape"), [(3, ()), (4, (2, 2))])
def test_redistributions(tmp_path, world, shape):
    for got in run(tmp_path, "dtensor_programs.redistributions", world, shape):
        assert got["failed"] == []
        assert got["count"] == (13 if not shape else 441)


def test_random_numbers_are_those_of_one_process(tmp_path):
    for got in run(tmp_path, "dtensor_programs.randoms", 2):
        assert got and all(got.values()), got


def test_writes_reach_the_tensor(tmp_path):
    for got in run(tmp_path, "dtensor_programs.writes", 2):
        assert got.pop("shape") == "RuntimeError"
        assert len(got) == 6
        assert all(value is True for value in got.values()), got


def test_tensor_parallel_training_is_that_of_one_process(tmp_path):
    for got in run(tmp_path, "dtensor_programs.training", 2):
        assert got["losses"] == [True] * 3
        assert all(got["weights"])
        assert got["placed"]["up.weight"] == "S(0)"
        assert got["placed"]["down.weight"] == "S(1)"
        assert got["placed"]["down.bias"] == "R"


def test_pieces(tmp_path):
    results = run(tmp_path, "dtensor_programs.pieces", 2)
    assert [r.pop("part") for r in results] == [[3, 4], [2, 4]]
    for got in results:
        assert got == {
            "file": True,
            "copy": True,
            "counts": 2,
            "local_map": True,
            "implicit": True,
            "mixed": "RuntimeError",
            "mismatch": "ValueError",
            "no_placements": "RuntimeError",
            "to_partial": "RuntimeError",
            "count": "ValueError",
            "again": "ValueError",
            "of_ours": "RuntimeError",
            "kinds": "ValueError",
            "registered": ("S(1)", True),
        }


def _overloads():
    for name, overload, _ in taeda._C._op_schemas():
        if "::" not in name:
            yield getattr(getattr(taeda.ops.aten, name), overload or "default")


def test_every_record_is_read():
    from taeda.distributed.tensor._axes import Axes

    count = 0
    for func in _overloads():
        record = func.record
        if record.axes is None or record.axes.startswith("opaque"):
            continue
        axes = Axes(record.axes)
        tensors = [a for a in record.arguments if a.type.startswith("Tensor")]
        if record.form == "out" or len(axes.inputs) < len(tensors):
            axes.inputs += axes.outputs
        assert len(axes.inputs) == len(tensors), record.name
        for operand, argument in zip(axes.inputs, tensors, strict=True):
            is_list = argument.type.rstrip("?").endswith("[]")
            assert operand.is_list == is_list, record.name
        count += 1
    assert count > 400


def test_rules_are_for_operators_whose_record_says_less():
    from taeda.distributed.tensor._axes import Axes
    from taeda.distributed.tensor._formulas import linear_sets
    from taeda.distributed.tensor._rules import RULES, _Moved

    functions = {func.name(): func for func in _overloads()}
    for name, entry in RULES.items():
        assert name in functions, name
        record = functions[name].record
        tensors = [a.name for a in record.arguments if a.type.startswith("Tensor")]
        text = entry[1] if len(entry) > 1 else None
        if issubclass(entry[0], _Moved):
            # The rule is of partial values, which no formula of the record tells of.
            assert not linear_sets(record, tensors), name
        elif text is None:
            assert record.axes.startswith("opaque") or "!" in record.axes, name
        elif record.axes is not None and not record.axes.startswith("opaque"):
            cut = {t.name for o in Axes(text).inputs for t in o.terms if not t.whole}
            whole = {
                t.name for o in Axes(record.axes).inputs for t in o.terms if t.whole
            }
            assert cut & whole, name


def test_formulas_tell_where_sums_go_through():
    from taeda.distributed.tensor._formulas import (
        joined_by,
        linear_sets,
        reads_no_values,
    )

    aten = taeda.ops.aten
    expected = {
        aten.add.Tensor: [{"self", "other"}],
        aten.mul.Tensor: [{"self"}, {"other"}],
        aten.div.Tensor: [{"self"}],
        aten.neg.default: [{"self"}],
        aten.addcmul.default: [{"self", "tensor1"}, {"self", "tensor2"}],
        aten.relu.default: [],
        aten.exp.default: [],
        aten.where.self: [],
        aten.flip.default: [{"self"}],
        aten.clone.default: [{"self"}],
        aten.ones_like.default: [],
    }
    for func, sets in expected.items():
        record = func.record
        tensors = [a.name for a in record.arguments if a.type.startswith("Tensor")]
        assert [set(s) for s in linear_sets(record, tensors)] == sets, func
    for name, unread in {"ones_like": True, "clone": False, "fill_": False}.items():
        overload = getattr(aten, name)
        func = getattr(overload, overload.overloads()[0])
        assert reads_no_values(func.record, ["self"]) is unread, name
    joined = {
        aten.sum.default: "sum",
        aten.mean.dim: "avg",
        aten.amax.default: "max",
        aten.min.default: "min",
        aten.prod.default: "product",
        aten.any.default: "sum",
        aten.all.dim: "product",
    }
    for func, kind in joined.items():
        assert joined_by(func.record) == kind, func


def test_a_way_leads_from_all_placements_to_all():
    from taeda.distributed.tensor import Partial, Replicate, Shard, _StridedShard
    from taeda.distributed.tensor._redistribute import plan

    kinds = [
        Shard(0),
        Shard(1),
        Replicate(),
        Partial(),
        _StridedShard(0, split_factor=2),
    ]
    ways = list(itertools.product(kinds, repeat=3))
    longest = 0
    for source, target in itertools.product(ways, repeat=2):
        pairs = zip(source, target, strict=True)
        if any(b.is_partial() and not a.is_partial() for a, b in pairs):
            continue
        longest = max(longest, len(plan(source, target)))
    assert longest <= 7
    # Cutting needs no communication, and comes before gathering.
    steps = plan((Shard(0), Replicate()), (Replicate(), Shard(1)))
    assert [s[0] for s in steps] == [1, 0]
    assert plan((Partial(),), (Shard(0),)) == [(0, Partial(), Shard(0))]


def test_parts_of_strided_cuts():
    from taeda.distributed.tensor import Shard, _StridedShard

    strided = _StridedShard(0, split_factor=2)
    assert [strided._ranges(8, 2, r) for r in range(2)] == [
        [(0, 2), (4, 6)],
        [(2, 4), (6, 8)],
    ]
    assert [Shard(0)._ranges(5, 4, r) for r in range(4)] == [
        [(0, 2)],
        [(2, 4)],
        [(4, 5)],
        [(5, 5)],
    ]
    assert repr(strided) == "_StridedShard(dim=0, sf=2)"


def test_sequences_over_ranks(tmp_path):
    for got in run(tmp_path, "dtensor_programs.sequences", 3):
        # 12 positions are cut in six chunks, 9 in three.
        assert len(got) == 8
        assert all(got.values()), got
