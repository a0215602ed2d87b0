"""Pipelines: tables of schedules, and ranks that run them."""

from __future__ import annotations

import pytest
import taeda
from ranks import run
from taeda.distributed.pipelining import (
    SplitPoint,
    _rules,
    _table,
    microbatch,
    pipeline,
)
from taeda.distributed.pipelining.microbatch import TensorChunkSpec

V_SHAPED = "ZBVZeroBubble", "DualPipeV"


def cases(name: str):
    """(ranks, stages on each, micro-batches) that a schedule takes."""
    per_rank = {"GPipe": (1,), "1F1B": (1,), **dict.fromkeys(V_SHAPED, (2,))}
    for ranks in (1, 2, 3, 4, 8):
        for several in per_rank.get(name, (1, 2, 3)):
            for batches in (1, 2, 3, 4, 7, 8, 16, 24):
                yield ranks, several, batches


def table_of(name: str, ranks: int, several: int, batches: int):
    place = _rules.v_shaped if name in V_SHAPED else _rules.looped
    rank_of = place(ranks, ranks * several)
    return _rules.MAKERS[name](ranks, rank_of, batches), rank_of


@pytest.mark.parametrize("name", sorted(_rules.MAKERS))
def test_tables_are_complete_and_end(name):
    checked = 0
    for ranks, several, batches in cases(name):
        try:
            table, rank_of = table_of(name, ranks, several, batches)
        except ValueError as error:
            assert "number of rounds" in str(error) or batches < ranks * several
            continue
        _table.check(table, ranks * several, batches, rank_of)
        texts = [["" if a is None else str(a) for a in row] for row in table.values()]
        again = [[_table.parse(text) for text in row] for row in texts]
        assert again == list(table.values())
        forward = _rules.forward_only(ranks, rank_of, batches)
        assert sum(a is not None for row in forward.values() for a in row) == (
            ranks * several * batches
        )
        checked += 1
    assert checked >= 20


def held(row: list) -> int:
    """The most micro-batches whose activations a rank has at once."""
    now = most = 0
    for action in row:
        for part in action.parts() if action else ():
            now += {"F": 1, "B": -1, "W": -1}.get(part.computation_type.value, 0)
            most = max(most, now)
    return most


# Ranks, stages on each, micro-batches; slots and micro-batches in memory at each rank.
# Slots of GPipe and 1F1B are 2 (n + p - 1); with split backwards 3 v n + p - 1.
@pytest.mark.parametrize(
    ("name", "shape", "slots", "memory"),
    [
        ("GPipe", (4, 1, 8), 22, [8, 8, 8, 8]),
        ("1F1B", (4, 1, 8), 22, [4, 3, 2, 1]),
        ("LoopedBFS", (4, 2, 8), 38, [16, 16, 16, 16]),
        ("Interleaved1F1B", (4, 2, 8), 38, [11, 9, 7, 5]),
        ("InterleavedZeroBubble", (4, 2, 8), 51, [8, 8, 8, 8]),
        ("ZBVZeroBubble", (4, 2, 8), 51, [9, 9, 9, 9]),
        ("DualPipeV", (4, 2, 8), 35, [9, 9, 9, 9]),
    ],
)
def test_lengths_of_tables(name, shape, slots, memory):
    table, _ = table_of(name, *shape)
    assert max(map(len, table.values())) <= slots + 1
    assert [held(row) for row in table.values()] == memory


def test_wrong_tables_are_refused():
    table, rank_of = table_of("1F1B", 2, 1, 2)
    row = [action for action in table[1] if action]
    for wrong, text in [
        (row[:-1], "stage 1 does"),
        ([*row, row[0]], "stage 1 does"),
        (row[::-1], "would not end"),
        ([*row[:-1], row[-1]._replace(stage_index=0)], "no stage"),
    ]:
        with pytest.raises(ValueError, match=text):
            _table.check({0: table[0], 1: wrong}, 2, 2, rank_of)
    with pytest.raises(RuntimeError, match="Invalid action"):
        _table.parse("0X1")


def test_all_schedules_agree_with_one_process(tmp_path):
    several = [(name, 2, 4, 8) for name in sorted(_rules.MAKERS) if name[0] not in "G1"]
    every = [("GPipe", 1, 4, 8), ("1F1B", 1, 8, 8), *several]
    every += [("Interleaved1F1B", 4, 2, 7), ("1F1B", 1, 3, 8), ("DualPipeV", 2, 6, 11)]
    for found in run(tmp_path, "pipeline_programs.schedule", 2, every):
        assert found == [(case[0], True) for case in every]


def test_four_ranks(tmp_path):
    every = [("1F1B", 1, 6, 8), ("ZBVZeroBubble", 2, 8, 8)]
    for found in run(tmp_path, "pipeline_programs.schedule", 4, every):
        assert found == [(case[0], True) for case in every]


def test_training_and_evaluation(tmp_path):
    for rank, found in enumerate(run(tmp_path, "pipeline_programs.steps", 2)):
        assert all(found) and len(found) == (11 if rank else 8)


def test_models_cut_by_their_graph(tmp_path):
    names = ["a", "b", "c"]
    for rank, found in enumerate(run(tmp_path, "pipeline_programs.traced", 3)):
        assert found[0] == [f"{names[rank]}.weight", f"{names[rank]}.bias"]
        assert found[1] == [True] * (3 if rank == 2 else 2)


def test_stages_that_are_data_parallel(tmp_path):
    name = "pipeline_programs.with_data_parallel"
    assert run(tmp_path, name, 4, "ddp") == [True] * 4


def test_functions_in_place_of_actions(tmp_path):
    path = str(tmp_path / "table")
    found = run(tmp_path, "pipeline_programs.custom", 2, path)
    assert found == [[True, True]] * 2


def test_refusals(tmp_path):
    for rank, found in enumerate(run(tmp_path, "pipeline_programs.troubles", 2)):
        index, few, place, two, name, grad, rows = found
        assert index == "ValueError: Stage index 2 is out of range of 2"
        assert few.startswith("RuntimeError: Pipeline group size 2 cannot be larger")
        assert place.startswith(f"ValueError: Schedule1F1B: rank {rank} of 2 needs")
        assert two.startswith("ValueError: ZBV requires exactly 2 stages per rank")
        assert name.startswith("ValueError: Unknown schedule name 'none'")
        assert grad.startswith("RuntimeError: step() requires gradients")
        assert rows == "ValueError: Expecting 4 arg_mbs but got 2"


def test_split_points():
    model = taeda.nn.Sequential(*(taeda.nn.Linear(3, 3) for _ in range(4)))
    x = taeda.ones(2, 3)
    spec = {"1": SplitPoint.BEGINNING, "2": SplitPoint.END}
    pipe = pipeline(model, (x,), split_spec=spec)
    assert pipe.num_stages == pipe.info().num_stages == 3
    names = [list(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert names == [
        ["0.weight", "0.bias"],
        ["1.weight", "1.bias", "2.weight", "2.bias"],
        ["3.weight", "3.bias"],
    ]
    assert taeda.equal(pipe(x), model(x))
    assert "forward" not in vars(model[1])
    with pytest.raises(AttributeError):
        pipeline(model, (x,), split_spec={"7": SplitPoint.END})
    with pytest.raises(ValueError, match="Invalid stage index"):
        pipe.get_stage_module(3)
    with pytest.raises(ValueError, match="Cannot specify both"):
        pipeline(model, (x,), split_spec=spec, split_policy=lambda graph: graph)


def test_a_parameter_of_two_stages_is_copied():
    class Tied(taeda.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = taeda.nn.Linear(3, 3)

        def forward(self, x):
            x = self.one(x)
            taeda.distributed.pipelining.pipe_split()
            return self.one(x)

    pipe = pipeline(Tied(), (taeda.ones(2, 3),))
    assert pipe.replicated_params == [
        {"submod_0": "one.weight", "submod_1": "one.weight"},
        {"submod_0": "one.bias", "submod_1": "one.bias"},
    ]
    first, second = (pipe.get_stage_module(i).one.weight for i in range(2))
    assert first is not second and taeda.equal(first, second)


def test_running_statistics_are_of_their_stage():
    model = taeda.nn.Sequential(taeda.nn.BatchNorm1d(3), taeda.nn.Linear(3, 3))
    pipe = pipeline(model, (taeda.ones(2, 3),), split_spec={"1": SplitPoint.BEGINNING})
    before = int(model[0].num_batches_tracked)
    pipe(taeda.ones(2, 3))
    stage = pipe.get_stage_module(0)
    assert int(getattr(stage, "0").num_batches_tracked) == before + 1


def test_micro_batches():
    x = taeda.arange(12.0).reshape(6, 2)
    args, kwargs = microbatch.split_args_kwargs_into_chunks(
        ({"x": x}, 3), {"k": x + 1}, 3
    )
    assert [a[0]["x"].tolist() for a in args] == [c.tolist() for c in x.chunk(3)]
    assert all(a[1] == 3 for a in args) and len(kwargs) == 3
    spec = TensorChunkSpec.from_tuple((1,))
    columns, _ = microbatch.split_args_kwargs_into_chunks((x,), None, 4, spec)
    assert len(columns) == 2
    merged = microbatch.merge_chunks([c[0] for c in columns], spec[0])
    assert taeda.equal(merged, x)
    total = microbatch._CustomReducer(0.0, lambda a, b: a + b)
    assert microbatch.merge_chunks([1.0, 2.0], total) == 3.0
    with pytest.raises(ValueError, match="did not match chunk spec"):
        microbatch.merge_chunks([(x, x)], spec[0])
    with pytest.raises(AssertionError, match="Expected 1, got 2"):
        microbatch.merge_chunks([1, 2], microbatch._Replicate())
    with pytest.raises(ValueError, match="Unsupported chunk spec"):
        microbatch.split_args_kwargs_into_chunks((3,), None, 2, (spec[0],))
    assert str(spec[0]) == "TensorChunkSpec(1)"


def test_picture(tmp_path):
    from PIL import Image
    from taeda.distributed.pipelining._picture import draw

    table, _ = table_of("DualPipeV", 2, 2, 4)
    draw(table, tmp_path / "schedule.png")
    image = Image.open(tmp_path / "schedule.png")
    image.load()
    assert image.size == (16 * len(table[0]) + 2, 24 * 2 + 2)
    colours = {colour for _, colour in image.getcolors()}
    assert (245, 245, 245) in colours and len(colours) > 5


class Counted(taeda.autograd.Function):
    """Tanh that counts its backwards."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        Counted.calls += 1
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class Layers(taeda.nn.Module):
    """Weights by several ways, and with `tied` one that is used twice."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.a, self.b = taeda.nn.Linear(4, 4), taeda.nn.Linear(4, 4)
        self.scale = taeda.nn.Parameter(taeda.rand(4))
        self.last = self.a if tied else taeda.nn.Linear(4, 2)

    def forward(self, x, mask):
        h = Counted.apply(self.a(x)) * (self.scale * 2 + 1).exp()
        return Counted.apply(self.b(h) + h) * mask, self.last(h)


@pytest.mark.parametrize("tied", [False, True])
def test_backwards_in_two_parts(tied):
    from taeda.distributed.pipelining._split import of_inputs

    taeda.manual_seed(0)
    model, mask = Layers(tied), taeda.rand(3, 4)
    x = taeda.rand(3, 4, requires_grad=True)
    results = model(x, mask)
    seeds = [taeda.rand(*r.shape) for r in results]
    taeda.autograd.backward(results, seeds)
    wanted = [x.grad, *(p.grad for p in model.parameters())]
    model.zero_grad()
    Counted.calls = 0
    results = model(x, mask)
    (grad,), later = of_inputs(results, seeds, [x])
    assert all(p.grad is None for p in model.parameters())
    if tied:
        assert later is None
        weights = list(model.parameters())
        taeda.autograd.backward(results, seeds, inputs=weights)
    else:
        later.run()
    assert Counted.calls == (4 if tied else 2)
    found = [grad, *(p.grad for p in model.parameters())]
    assert all(taeda.allclose(a, b) for a, b in zip(found, wanted, strict=True))
