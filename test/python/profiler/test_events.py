"""What a profile sees, beside what PyTorch's sees of the same program."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import taeda
import torch

BACKWARD = "autograd::engine::evaluate_function: "


def perceptron(L, loss="sum"):
    L.manual_seed(0)
    nn = L.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = L.ones(5, 8)

    def step() -> None:
        y = model(x)
        if loss == "entropy":
            y = nn.functional.cross_entropy(y, L.zeros(5, dtype=L.int64))
        y.sum().backward()

    return step


def convolution(L):
    L.manual_seed(0)
    nn = L.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten())
    x = L.ones(2, 3, 6, 6)
    return lambda: nn.functional.gelu(model(x)).mean()


def pointwise(L):
    a, b = L.ones(3, 4), L.arange(4.0)

    def step() -> None:
        c = (a * b + 1).exp().sqrt_()
        d = L.cat([c, a], 1).softmax(-1).transpose(0, 1)
        L.layer_norm(d.reshape(3, 8), (8,)).clamp(min=0).amax(1)
        L.where(a > b, a, b).std(0)
        L.bmm(a[None], b.view(1, 4, 1)).sum(dim=1, keepdim=True)

    return step


def recorded(L, step, **options):
    step()  # what happens once
    with L.profiler.profile(
        activities=[L.profiler.ProfilerActivity.CPU], **options
    ) as p:
        step()
    return p


def top_level(prof) -> Counter:
    return Counter(e.name for e in prof.events() if e.cpu_parent is None)


@pytest.mark.parametrize("program", [perceptron, convolution, pointwise])
def test_programs_call_the_operators_that_pytorch_shows(program) -> None:
    """Names and counts of what the program calls; what those consist of may differ."""
    shown = [
        Counter(
            {n: c for n, c in top_level(recorded(L, program(L))).items() if "::" in n}
        )
        for L in (taeda, torch)
    ]
    own, real = shown
    # Indexing by None is not announced, and `backward()` makes its own root.
    for quiet in ("aten::unsqueeze", "aten::slice", "aten::ones_like"):
        real.pop(quiet, None)
        own.pop(quiet, None)
    named = {n for n in real if not n.startswith(BACKWARD)}
    assert {n: own[n] for n in named} == {n: real[n] for n in named}
    assert {n for n in own if not n.startswith(BACKWARD)} == named


def test_nodes_of_a_backward_pass() -> None:
    def program(L):
        x = L.ones(3, requires_grad=True)
        return lambda: (x.exp() * x).relu().sum().backward()

    found = []
    for L in (taeda, torch):
        events = recorded(L, program(L), record_shapes=True).events()
        nodes = [e for e in events if e.scope == 1]
        assert all(n.cpu_parent.name == BACKWARD + n.name for n in nodes)
        found.append([(n.name, n.input_shapes) for n in nodes])
    assert found[0] == found[1]


def test_forward_calls_and_their_nodes_have_one_number() -> None:
    step = perceptron(taeda)
    events = recorded(taeda, step).events()
    made = {e.sequence_nr: e.name for e in events if e.name.startswith("aten")}
    nodes = {e.sequence_nr: e.name for e in events if e.scope == 1}
    pairs = {made[n]: name for n, name in nodes.items() if n in made}
    assert pairs["aten::relu"] == "ReluBackward0"
    assert pairs["aten::sum"] == "SumBackward0"


def test_shapes_dtypes_and_numbers_are_those_of_pytorch() -> None:
    def program(L):
        a = L.ones(2, 3)

        def step() -> None:
            L.cat([a, a], 0)
            a.add(a, alpha=2.5)
            a.sum(1, keepdim=True)
            L.ones(3, dtype=L.int64).view(-1)
            L.softmax(a, -1)
            L.nn.functional.layer_norm(a, (3,))

        return step

    facts = []
    for L in (taeda, torch):
        events = recorded(L, program(L), record_shapes=True).events()
        facts.append(
            [
                (
                    e.name,
                    e.input_shapes,
                    e.structured_input_shapes,
                    e.structured_input_strides,
                    e.input_dtypes[:3],
                    e.concrete_inputs[:3],
                )
                for e in events
                if e.cpu_parent is None
            ]
        )
    assert facts[0] == facts[1]


def test_calls_of_other_threads_are_seen() -> None:
    a = taeda.ones(4)
    before = threading.Event()
    go = threading.Event()

    def work() -> None:
        before.set()
        go.wait()
        for _ in range(50):
            a.cos()

    threads = [threading.Thread(target=work)]
    threads[0].start()
    before.wait()
    with taeda.profiler.profile() as prof:
        go.set()
        threads.append(threading.Thread(target=work))
        threads[1].start()
        a.sin()
        for thread in threads:
            thread.join()
    shown = Counter((e.thread, e.name) for e in prof.events())
    assert sorted(shown.values()) == [1, 50, 50]
    assert len({thread for thread, _ in shown}) == 3


def test_recording_begins_and_ends_while_threads_call() -> None:
    stop = threading.Event()
    failures = []

    def work() -> None:
        a = taeda.ones(8, requires_grad=True)
        try:
            while not stop.is_set():
                (a * 2).sum().backward()
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with taeda.profiler.profile(profile_memory=True, with_stack=True) as prof:
            taeda.ones(2).sum()
        assert len(prof.events()) > 0
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert taeda.ones(3).sum() == 3


def test_levels_and_modes_announce_a_call_once() -> None:
    x = taeda.arange(6.0).view(2, 3)
    grad = taeda.func.grad(lambda v: v.sin().sum())
    with taeda.profiler.profile() as prof:
        got = taeda.func.vmap(grad)(x)
    assert taeda.allclose(got, x.cos())
    assert top_level(prof)["aten::sin"] == 1
    with taeda.profiler.profile() as prof, taeda.autocast("cpu", dtype=taeda.bfloat16):
        got = x @ x.T
    assert got.dtype == taeda.bfloat16
    assert top_level(prof)["aten::matmul"] == 1


def test_what_runs_is_the_same() -> None:
    losses = []
    for record in (False, True):
        taeda.manual_seed(0)
        model = taeda.nn.Sequential(taeda.nn.Linear(6, 32), taeda.nn.GELU())
        optimizer = taeda.optim.AdamW(model.parameters(), lr=0.01)
        prof = taeda.autograd.profiler.profile(enabled=record, profile_memory=True)
        with prof:
            for _ in range(5):
                loss = model(taeda.randn(4, 6)).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[0] == losses[1]


def test_operators_of_libraries_and_python_errors() -> None:
    library = taeda.library.Library("profiled", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CPU")
    with taeda.profiler.profile() as prof:
        taeda.ops.profiled.twice(taeda.ones(2))
        with pytest.raises(RuntimeError):
            taeda.ones(2, 3) @ taeda.ones(2, 3)
        taeda.ones(1).neg()
    names = [e.name for e in prof.events() if e.cpu_parent is None]
    assert names == ["aten::ones", "profiled::twice"] + ["aten::ones"] * 2 + [
        "aten::matmul",
        "aten::ones",
        "aten::neg",
    ]


def test_an_implementation_that_comes_while_recording_stays() -> None:
    hardswish, one = taeda.nn.functional.hardswish, taeda.ones(1)
    before = hardswish(one)
    with taeda.library._scoped_library("aten", "IMPL") as library:
        with taeda.profiler.profile():
            library.impl("hardswish", lambda x: x * 0 + 7, "CPU")
            assert hardswish(one).item() == 7
        assert hardswish(one).item() == 7
        with taeda.profiler.profile():
            library._destroy()
            assert hardswish(one).equal(before)
    assert hardswish(one).equal(before)


def test_compiled_kernels_are_marked() -> None:
    compiled = taeda.compile(
        lambda x: (x.sin() + x.cos()).exp(), options={"blocking": True}
    )
    x = taeda.ones(1000)
    compiled(x)
    with taeda.profiler.profile() as prof:
        compiled(x)
    names = [e.name for e in prof.events()]
    assert any(n.startswith("compiled kernel:") and "sin" in n for n in names), names


def test_one_recording_at_a_time() -> None:
    with taeda.profiler.profile():
        with pytest.raises(RuntimeError, match="only one of profile"):
            taeda.profiler.profile().start()
        with pytest.raises(RuntimeError, match="only one of profile"):
            taeda.debug.nan_guard().__enter__()
    with taeda.profiler.profile() as prof:
        taeda.ones(1)
    assert len(prof.events()) == 1
