"""tools/simulate: costs, replays and failures against answers that are known."""

from __future__ import annotations

import json
import math
import random
import statistics

import pytest
import taeda
import taeda.distributed as dist
from simulate import check, clusters, events, plan
from simulate.engine import Group, replay
from simulate.events import Call, Compute, Wait
from simulate.faults import Failures, slowest
from simulate.network import Cost, Curve, Host, Level, Network
from simulate.settings import Setting
from taeda.distributed._fake import FakeRecord, FakeStore

LEVELS = (Level(4, 1e-6, 100e9), Level(64, 10e-6, 10e9))


class Fixed:
    """Every collective takes as long."""

    interference, wake, block, spin = 0.0, 0.0, 0.0, math.inf

    def __init__(self, seconds: float, work: float = 0.0) -> None:
        self.value = Cost(seconds, work)

    def cost(self, kind, size, count, span=1) -> Cost:
        return self.value

    def message(self, count, distance) -> Cost:
        return self.value


def passed_around(latencies: list[float], part: float, bandwidth: float) -> float:
    """Seconds until all parts have gone around a ring, step by step."""
    ranks = len(latencies)
    ready = [[0.0 if r == p else math.inf for p in range(ranks)] for r in range(ranks)]
    free = [0.0] * ranks
    for _ in range(ranks * ranks):
        moves = [
            (max(ready[r][p], free[r]), r, p)
            for r in range(ranks)
            for p in range(ranks)
            if ready[r][p] < math.inf and ready[(r + 1) % ranks][p] == math.inf
        ]
        if not moves:
            break
        begin, r, p = min(moves)
        free[r] = begin + part / bandwidth
        ready[(r + 1) % ranks][p] = free[r] + latencies[r]
    return max(map(max, ready))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_rings_within_a_host_are_as_passed_around(ranks) -> None:
    count = 4_000_000
    found = Network(LEVELS, "ring").cost("all_gather", ranks, count).seconds
    stepwise = passed_around([1e-6] * ranks, count / ranks, 100e9)
    # Step by step a part is sent on when it has come as a whole.
    assert found == pytest.approx(stepwise, rel=1e-9)


def test_rings_through_hosts_use_all_their_ports() -> None:
    count = 10**9
    network = Network(LEVELS, "ring")
    # 4 ranks in each of 4 hosts: 15/16 of the bytes enter each at 4 times 10 GB/s; of
    # 16 links 12 stay in hosts, and a message stops one before its start.
    expected = count * 15 / 16 / 40e9 + (12 * 1e-6 + 4 * 10e-6) * 15 / 16
    assert network.cost("all_gather", 16, count).seconds == pytest.approx(expected)
    # One rank of each host has one port.
    alone = network.cost("all_reduce", 4, count, span=4).seconds
    assert alone == pytest.approx(2 * (count * 3 / 4 / 10e9 + 3 * 10e-6))


def test_trees_win_where_messages_are_small() -> None:
    ring, tree, best = (Network(LEVELS, a) for a in ("ring", "tree", "best"))
    costs = [n.cost("all_reduce", 64, 8).seconds for n in (ring, tree, best)]
    assert costs[1] < costs[0] and costs[2] == costs[1]
    assert costs[1] == pytest.approx(2 * (2 * 1e-6 + 4 * 10e-6), rel=1e-3)
    large = [n.cost("all_reduce", 64, 10**10).seconds for n in (ring, tree, best)]
    assert large[2] == large[0] <= large[1]
    with pytest.raises(ValueError, match="65 ranks, 1 apart, is beyond its 64 ranks"):
        ring.cost("all_reduce", 65, 8)


def test_what_is_called_early_is_hidden() -> None:
    groups = {"0": Group((0, 1), 2)}

    def step(between: float) -> float:
        mine = [Compute(1.0), Call("all_reduce", 1, 8), Compute(between), Wait(1)]
        return replay({0: mine, 1: mine}, groups, Fixed(2.0))

    assert step(0.0) == pytest.approx(3.0)
    assert step(1.5) == pytest.approx(3.0)
    assert step(5.0) == pytest.approx(6.0)


def test_collectives_wait_for_the_last_rank_and_run_in_order() -> None:
    early = [Call("all_reduce", 1, 8), Call("all_reduce", 2, 8), Wait(1), Wait(2)]
    groups = {"0": Group((0, 1), 2)}
    found = replay({0: early, 1: [Compute(3.0), *early]}, groups, Fixed(2.0))
    assert found == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, 1.0), (2, 1.0), (4, 2.0), (8, 4.0)]
)
def test_ranks_share_cores(ranks, expected) -> None:
    everyone = {r: [Compute(1.0)] for r in range(ranks)}
    assert replay(everyone, {}, Fixed(0.0), cores=2) == pytest.approx(expected)


def test_collectives_work_on_the_same_cores() -> None:
    mine = [Compute(1.0), Call("all_reduce", 1, 8), Wait(1)]
    everyone = dict.fromkeys(range(4), mine)
    groups = {"0": Group(tuple(range(4)), 4)}
    found = replay(everyone, groups, Fixed(0.25, work=0.5), cores=2)
    assert found == pytest.approx(2.0 + 0.25 + 1.0)


def gpipe(rank: int, ranks: int, batches: int) -> list[events.Event]:
    """Forward passes of 1 second, then backward passes of 2."""
    numbers, found = iter(range(1000)), []
    for seconds, source, target in ((1.0, -1, 1), (2.0, 1, -1)):
        for _ in range(batches):
            if 0 <= rank + source < ranks:
                number = next(numbers)
                found += [Call("recv", number, 8, peer=rank + source), Wait(number)]
            found.append(Compute(seconds))
            if 0 <= rank + target < ranks:
                found.append(Call("send", next(numbers), 8, peer=rank + target))
    return found


@pytest.mark.parametrize(("ranks", "batches"), [(1, 3), (2, 4), (4, 8), (8, 8)])
def test_pipelines_have_the_bubble_of_the_formula(ranks, batches) -> None:
    schedules = {r: gpipe(r, ranks, batches) for r in range(ranks)}
    found = replay(schedules, {}, Fixed(0.0))
    assert found == pytest.approx(3.0 * (batches + ranks - 1))


def test_steps_are_repeated_with_calls_of_their_own() -> None:
    step = [Compute(1.0), Call("all_reduce", 3, 8, later=False), Wait(3)]
    twice = events.repeated(step, 2)
    assert [getattr(e, "number", None) for e in twice] == [None, 3, 3, None, 7, 7]
    assert replay({0: twice}, {"0": Group((0,), 1)}, Fixed(0.5)) == 3.0


def test_waiting_for_ever_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"the ranks \[0\] wait for ever"):
        replay({0: [Call("recv", 1, 8, peer=1), Wait(1)], 1: []}, {}, Fixed(0.0))
    with pytest.raises(RuntimeError, match="wait for ever"):
        mine = [Call("all_reduce", 1, 8), Wait(1)]
        replay({0: mine, 1: []}, {"0": Group((0, 1), 2)}, Fixed(0.0))


def test_who_sleeps_is_woken() -> None:
    none = Curve.per_byte(0.0)
    host = Host(2, latency=0.0, copy=none, reduce=none, wake=0.5)
    mine = [Call("all_reduce", 1, 8, later=False), Wait(1)]
    groups = {"0": Group((0, 1), 2)}
    assert replay({0: mine, 1: mine}, groups, host) == 0.0
    assert replay({0: mine, 1: [Compute(1.0), *mine]}, groups, host) == 1.5
    # A thread of its own is woken for it, and then the rank that waits.
    mine = [Call("all_reduce", 1, 8), Wait(1)]
    assert replay({0: mine, 1: mine}, groups, host) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("ranks", [1, 8, 1000])
def test_the_slowest_is_as_drawn(ranks) -> None:
    draw = random.Random(ranks)
    speeds = [min(draw.gauss(1, 0.02) for _ in range(ranks)) for _ in range(400)]
    assert slowest(ranks, 0.02) == pytest.approx(statistics.median(speeds), abs=2e-3)


@pytest.mark.parametrize("ranks", [100, 5000, 50_000])
def test_use_of_time_is_as_drawn_and_best(ranks) -> None:
    job = Failures(between=1e8, checkpoint=20.0, restart=300.0)
    drawn = [job.drawn(ranks, 200 * 1e8 / ranks, seed) for seed in range(8)]
    assert job.useful(ranks) == pytest.approx(statistics.mean(drawn), rel=0.03)
    best = job.interval(ranks)
    others = [job.useful(ranks, best * factor) for factor in (0.7, 1.4)]
    assert job.useful(ranks) > max(others)


@pytest.fixture
def world():
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


def test_a_record_is_a_schedule(world, tmp_path) -> None:
    x, out = taeda.ones(10), taeda.zeros(40)
    with FakeRecord() as record:
        work = dist.all_gather_into_tensor(out, x, async_op=True)
        dist.all_reduce(x)
        work.wait()
    dist.barrier()
    begin, end = record.calls[0].begin, record.calls[-1].end
    found = events.from_record(record.calls, begin, end)
    calls = [e for e in found if not isinstance(e, Compute)]
    assert [(c.kind, c.bytes, c.later) for c in calls if isinstance(c, Call)] == [
        ("all_gather", 160, True),
        ("all_reduce", 40, False),
    ]
    numbers = [c.number for c in calls]
    assert numbers == [numbers[0], numbers[1], numbers[1], numbers[0]]
    assert 0.0 < events.total(found) < end - begin
    events.save(found, tmp_path / "schedule")
    assert events.load(tmp_path / "schedule") == found


def test_data_parallel_reduces_all_gradients_once(world) -> None:
    model = taeda.nn.Linear(20, 30)
    parallel = taeda.nn.parallel.DistributedDataParallel(model)
    with FakeRecord() as record:
        parallel(taeda.ones(2, 20)).sum().backward()
    found = [c.bytes for c in record.calls if c.kind == "all_reduce"]
    assert sum(found) == 4 * (20 * 30 + 30)


@pytest.fixture(scope="module")
def llama():
    return plan.llama3_8b()


def test_the_plan_moves_the_bytes_of_the_model(llama) -> None:
    moved = {}
    for call in (e for e in llama if isinstance(e, Call)):
        moved[call.kind] = moved.get(call.kind, 0) + call.bytes
    blocks, ends = plan.BLOCKS * plan.BLOCK, plan.ENDS
    # Blocks are gathered for each pass, the ends once; all gradients are float32.
    assert moved["all_gather"] == pytest.approx(2 * (2 * blocks + ends), rel=0.01)
    assert moved["reduce_scatter"] == pytest.approx(4 * (blocks + ends), rel=0.01)
    # Six operations for a parameter and token; the embedding is looked up.
    assert events.total(llama) == 6 * (blocks + ends // 2)


@pytest.mark.parametrize("found", clusters.PUBLISHED, ids=lambda f: f.name)
def test_published_weak_scaling(llama, found) -> None:
    predicted = clusters.weak_scaling(clusters.Job(llama), found)
    assert predicted == pytest.approx(found.efficiency, abs=0.012)


def test_a_hundred_thousand_ranks_need_copies(llama) -> None:
    hybrid = clusters.Job(plan.llama3_8b(copies=True), shard=8)
    flat, computing = clusters.Job(llama), 2.3
    assert flat.step(100_000, computing) > 5 * hybrid.step(100_000, computing)
    assert hybrid.step(100_000, computing) < 1.2 * computing
    steps = [hybrid.step(n, computing) for n in clusters_of_eight()]
    assert steps == sorted(steps)


@pytest.mark.parametrize("text", ["ddp:2:384x8x384", "1f1b:7:128x21x64"])
def test_settings_are_what_they_are_written_as(text) -> None:
    assert str(Setting.parse(text)) == text


@pytest.mark.parametrize("text", ["ddp", "tp:2", "ddp:x", "ddp:2:384x8", "ddp:2:0x8x8"])
def test_other_settings_are_refused(text) -> None:
    with pytest.raises(ValueError, match=r"(KIND:RANKS|WIDTHxLAYERSxROWS).*, got"):
        Setting.parse(text)


def clusters_of_eight() -> list[int]:
    return [8, 64, 1024, 16_384, 100_000]


def test_failures_of_llama_3() -> None:
    # More than 90 % was published.
    assert 0.90 < clusters.LLAMA3.useful(16_384) < 0.95


def test_what_is_predicted_is_written_before_it_is_measured(
    monkeypatch, tmp_path
) -> None:
    path, setting = tmp_path / "told", Setting.parse("ddp:2:8x2x4")
    told, seen = iter([1.0, 3.0, 2.0]), iter([4.0, 2.5, 1.0])

    def measure(which: Setting) -> float:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        rounds.append(lines)
        return next(seen)

    rounds: list[list[dict]] = []
    monkeypatch.setattr(check, "_predicted_once", lambda which: next(told))
    monkeypatch.setattr(check, "measure", measure)
    (row,) = check.in_turns([setting], path)
    assert (row.predicted, row.measured) == (2.0, 2.5)
    assert [len(lines) for lines in rounds] == [1, 2, 3]
    assert rounds[-1] == [{str(setting): t} for t in (1.0, 3.0, 2.0)]


def test_messages_take_a_core_at_both_ends() -> None:
    copy, reduce = Curve.per_byte(1e-9), Curve.per_byte(0.0)
    host = Host(2, latency=1e-5, copy=copy, reduce=reduce, post=2e-5)
    assert host.message(1000, 1) == Cost(1e-5, pytest.approx(2.1e-5))
    passed = [[Call("send", 0, 1000, peer=1), Wait(0)]]
    passed += [[Call("recv", 0, 1000, peer=0), Wait(0)]]
    groups = {"0": Group((0, 1), 2)}
    found = replay(dict(enumerate(passed)), groups, host, cores=2)
    assert found == pytest.approx(1e-5 + 2 * 2.1e-5)


def test_small_tensors_have_their_own_rate() -> None:
    """Straight between what was measured, and at the last rate beyond."""
    curve = Curve(((100, 1.0), (200, 4.0)))
    assert [curve(n) for n in (0, 50, 100, 150, 200, 400)] == [0, 0.5, 1, 2.5, 4, 8]


def test_waiting_for_what_is_there_takes_no_core() -> None:
    """On one core, which who waits for what comes later takes for a while."""
    none = Curve.per_byte(0.0)
    host = Host(1, latency=0.0, copy=none, reduce=none, block=3.0, post=0.5)
    receiver = [Call("recv", 0, 8, peer=0), Wait(0)]
    groups = {"0": Group((0, 1), 2)}
    for late, end in ((0.0, 4.0), (4.0, 9.0)):
        sender = [Compute(late), Call("send", 0, 8, peer=1), Compute(1.0)]
        mine = [Compute(2.0), *receiver] if late == 0.0 else receiver
        found = replay({0: sender, 1: mine}, groups, host, cores=1, slice=9.0)
        assert found == pytest.approx(end)


def test_bytes_of_ranks_that_take_turns_have_their_own_rate() -> None:
    rates = [Curve.per_byte(rate) for rate in (1.0, 2.0, 3.0, 4.0)]
    host = Host(2, 0.0, *rates[:2], copy_in_turns=rates[2], reduce_in_turns=rates[3])
    assert host.cost("all_gather", 2, 8) == Cost(0.0, 8.0)
    assert host.cost("all_gather", 4, 8) == Cost(0.0, 24.0)
    assert host.cost("reduce_scatter", 4, 8) == Cost(0.0, 32.0)
