"""Work that is recorded once and replayed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda import cuda


def capture(function, **settings) -> tuple:
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **settings):
        result = function()
    return graph, result


def test_a_replay_reads_what_lies_there_now() -> None:
    x = taeda.zeros(5, device="cuda")
    graph, y = capture(lambda: (x + 1) * 2)
    for value in (0.0, 3.0, -1.0):
        x.fill_(value)
        graph.replay()
        assert y.cpu().unique().tolist() == [(value + 1) * 2]
    assert cuda.graphs.CUDAGraph is cuda.CUDAGraph


def test_the_accelerators_graph_is_one() -> None:
    x = taeda.zeros(4, device="cuda")
    other = taeda.accelerator.Graph()
    with cuda.stream(cuda.Stream()), other:
        x.add_(2)
    other.replay()
    other.replay()
    cuda.synchronize()
    assert x.cpu().tolist() == [4] * 4
    again = taeda.accelerator.Graph(pool=other.pool())
    with pytest.raises(ZeroDivisionError), cuda.stream(cuda.Stream()), again:
        1 / 0  # noqa: B018
    taeda.accelerator.empty_host_cache()


def test_recording_does_nothing_yet() -> None:
    x = taeda.zeros(4, device="cuda")
    graph, _ = capture(lambda: x.add_(1))
    assert x.cpu().sum() == 0
    for _ in range(3):
        graph.replay()
    assert x.cpu().tolist() == [3, 3, 3, 3]


def test_capturing_is_seen() -> None:
    seen = []
    x = taeda.ones(2, device="cuda")

    def look() -> taeda.Tensor:
        seen.append(cuda.is_current_stream_capturing())
        return x + 1

    assert not cuda.is_current_stream_capturing()
    capture(look)
    assert seen == [True] and not cuda.is_current_stream_capturing()


def test_streams_fork_and_join_inside() -> None:
    x = taeda.zeros(100, device="cuda")

    def work() -> taeda.Tensor:
        main, side = cuda.current_stream(), cuda.Stream()
        y = x + 1
        side.wait_stream(main)
        with cuda.stream(side):
            z = y * 3
            for _ in range(5):
                z.add_(1)
        w = y * 5
        main.wait_stream(side)
        z.record_stream(main)
        return z + w

    graph, out = capture(work)
    for value in range(5):
        x.fill_(float(value))
        graph.replay()
        assert out.cpu().unique().tolist() == [(value + 1) * 8 + 5]


def test_a_stream_that_is_not_joined_is_an_error() -> None:
    x = taeda.zeros(10, device="cuda")

    def work() -> None:
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            x.add_(1)

    with pytest.raises(RuntimeError, match="unjoined work"):
        capture(work)
    assert (x + 1).cpu().unique().tolist() == [1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x.sum().item(), "copy_ to the CPU: cannot be part of a CUDA graph"),
        (lambda x: x.cpu(), "copy_ to the CPU: cannot be part"),
        (lambda x: x.nonzero(), "cannot be part of a CUDA graph"),
        (lambda x: taeda.ones(10).to("cuda"), "not pinned"),
        (lambda x: cuda.current_stream().synchronize(), "synchronize: cannot be part"),
        (lambda x: cuda.synchronize(), "synchronize: cannot be part"),
    ],
    ids="item cpu nonzero upload stream device".split(),
)
def test_what_waits_is_refused(call, said: str) -> None:
    x = taeda.ones(10, device="cuda")
    with pytest.raises(RuntimeError, match=said):
        capture(lambda: call(x + 1))
    # All is as it was.
    assert not cuda.is_current_stream_capturing()
    graph, y = capture(lambda: x * 4)
    graph.replay()
    assert y.cpu().unique().tolist() == [4]


def test_what_the_driver_refuses_ends_the_capture() -> None:
    x = taeda.ones(10, device="cuda")
    done = cuda.current_stream().record_event()
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"uncaptured work.*nothing may wait"):
        with cuda.graph(graph):
            x.add_(1)
            done.wait()
    assert not cuda.is_current_stream_capturing()
    assert x.cpu().unique().tolist() == [1]


def test_memory_of_a_graph_is_its_own() -> None:
    x = taeda.ones(1 << 20, device="cuda")
    graph, y = capture(lambda: (x * 2).exp().log() + 1)
    (pool,) = {
        s["segment_pool_id"]
        for s in cuda.memory_snapshot()
        if s["segment_pool_id"] != (0, 0)
    }
    assert graph.pool() == pool
    others = [taeda.full((1 << 20,), 9.0, device="cuda") for _ in range(4)]
    graph.replay()
    assert taeda.allclose(y.cpu(), taeda.full((1 << 20,), 3.0))
    assert all(o.cpu().unique().tolist() == [9] for o in others)
    reserved = cuda.memory_reserved()
    del graph, y
    gc.collect()
    cuda.empty_cache()
    assert cuda.memory_reserved() < reserved
    assert not any(s["segment_pool_id"] == pool for s in cuda.memory_snapshot(pool))


def test_graphs_share_a_pool() -> None:
    x = taeda.ones(1000, device="cuda")
    pool = cuda.graph_pool_handle()
    first, y = capture(lambda: x + 1, pool=pool)
    second, z = capture(lambda: y * 2, pool=first.pool())
    assert first.pool() == second.pool() == pool
    first.replay()
    second.replay()
    assert z.cpu().unique().tolist() == [4]
    with pytest.raises(RuntimeError, match="no memory pool"):
        capture(lambda: x + 1, pool=(0, 1 << 40))


def test_each_replay_draws_anew() -> None:
    cuda.manual_seed(5)
    graph, drawn = capture(
        lambda: (taeda.rand(64, device="cuda"), taeda.randn(64, device="cuda"))
    )
    cuda.manual_seed(5)
    eager = [
        (taeda.rand(64, device="cuda").cpu(), taeda.randn(64, device="cuda").cpu())
        for _ in range(3)
    ]
    cuda.manual_seed(5)
    for want in eager:
        graph.replay()
        assert all(taeda.equal(a.cpu(), b) for a, b in zip(drawn, want, strict=True))
    # What is drawn after a replay goes on behind it.
    after = taeda.rand(64, device="cuda").cpu()
    cuda.manual_seed(5)
    for _ in range(3):
        taeda.rand(64, device="cuda"), taeda.randn(64, device="cuda")
    assert taeda.equal(taeda.rand(64, device="cuda").cpu(), after)


def test_generators_are_registered() -> None:
    generator = taeda.Generator("cuda").manual_seed(3)

    def draw() -> taeda.Tensor:
        return taeda.rand(8, device="cuda", generator=generator)

    with pytest.raises(RuntimeError, match="register_generator_state"):
        capture(draw)
    graph = cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with cuda.graph(graph):
        out = draw()
    generator.manual_seed(3)
    graph.replay()
    got = out.cpu()
    generator.manual_seed(3)
    assert taeda.equal(draw().cpu(), got)


def test_wrong_uses_say_so(tmp_path: Path) -> None:
    x = taeda.ones(2, device="cuda")
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="default stream cannot be captured"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="capture_error_mode"):
        with cuda.graph(graph, capture_error_mode="none"):
            pass
    with pytest.warns(UserWarning, match="graph is empty"):
        capture(lambda: None)
    with cuda.graph(graph):
        y = x + 1
    with pytest.raises(RuntimeError, match="captured already"):
        with cuda.graph(graph):
            pass
    file = tmp_path / "graph.dot"
    graph.debug_dump(str(file))
    assert "digraph" in file.read_text() and "kernel" in file.read_text()
    with pytest.raises(RuntimeError, match="keep_graph=True"):
        graph.raw_cuda_graph()
    assert graph.raw_cuda_graph_exec() != 0
    graph.reset()
    with cuda.graph(graph):
        y = x + 5
    graph.replay()
    assert y.cpu().tolist() == [6, 6]


def test_a_kept_graph_is_instantiated_later() -> None:
    x = taeda.ones(2, device="cuda")
    graph = cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(graph):
        x.add_(1)
    assert graph.raw_cuda_graph() != 0
    with pytest.raises(RuntimeError, match="not instantiated"):
        graph.raw_cuda_graph_exec()
    graph.instantiate()
    graph.replay()
    assert x.cpu().tolist() == [2, 2]


def test_blocks_of_other_streams_are_freed_after_the_capture() -> None:
    x = taeda.ones(1 << 20, device="cuda")
    other = cuda.Stream()

    def work() -> taeda.Tensor:
        kept = taeda.ones(1 << 20, device="cuda")
        kept.record_stream(other)
        return x + kept

    graph, y = capture(work)
    graph.replay()
    assert y.cpu().unique().tolist() == [2]


def test_a_training_step() -> None:
    def network() -> tuple:
        taeda.manual_seed(0)
        net = taeda.nn.Sequential(
            taeda.nn.Linear(4, 8), taeda.nn.Tanh(), taeda.nn.Linear(8, 1)
        ).cuda()
        return net, list(net.parameters())

    def step(net, parameters, x, y) -> taeda.Tensor:
        loss = ((net(x) - y) ** 2).mean()
        grads = taeda.autograd.grad(loss, parameters)
        with taeda.no_grad():
            for p, g in zip(parameters, grads, strict=True):
                p.sub_(g, alpha=0.1)
        return loss

    data = [(taeda.randn(6, 4), taeda.randn(6, 1)) for _ in range(4)]
    net, parameters = network()
    eager = [step(net, parameters, x.cuda(), y.cuda()).item() for x, y in data]
    net, parameters = network()
    x, y = (t.cuda() for t in data[0])
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    before = [p.detach().clone() for p in net.parameters()]
    with cuda.stream(side):
        for _ in range(2):
            step(net, parameters, x, y)
    cuda.current_stream().wait_stream(side)
    with taeda.no_grad():
        for p, b in zip(net.parameters(), before, strict=True):
            p.copy_(b)
    graph, loss = capture(lambda: step(net, parameters, x, y))
    replayed = []
    for new_x, new_y in data:
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()
        replayed.append(loss.item())
    assert replayed == pytest.approx(eager, rel=1e-5)


def test_graphed_callables() -> None:
    taeda.manual_seed(1)
    net = taeda.nn.Sequential(taeda.nn.Linear(3, 5), taeda.nn.Tanh()).cuda()

    def double(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    x = taeda.randn(4, 3, device="cuda", requires_grad=True)
    y = taeda.randn(4, 5, device="cuda", requires_grad=True)

    def run() -> list:
        net.zero_grad(set_to_none=True)
        out = double(net(values)).sum()
        out.backward()
        found = [p.grad.cpu() for p in net.parameters()]
        return [out.detach().cpu(), values.grad.cpu(), *found]

    inputs = [taeda.randn(4, 3) for _ in range(2)]
    wanted = []
    for value in inputs:
        values = value.cuda().requires_grad_()
        wanted.append(run())
    made, double = cuda.make_graphed_callables((net, double), ((x,), (y,)))
    assert made is net
    for value, want in zip(inputs, wanted, strict=True):
        values = value.cuda().requires_grad_()
        assert all(taeda.allclose(a, b) for a, b in zip(run(), want, strict=True))
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="hooks"):
        cuda.make_graphed_callables(net, (x,))
    with pytest.raises(TypeError, match="tensors, got int"):
        cuda.make_graphed_callables(double, (3,))


def test_without_a_gpu() -> None:
    text = """
import taeda
for make in (taeda.cuda.CUDAGraph, lambda: taeda.cuda.graph(None)):
    try:
        make()
    except RuntimeError as error:
        print("no GPU" in str(error))
print(taeda.cuda.is_current_stream_capturing())
"""
    command = [sys.executable, "-c", text]
    environment = os.environ | {"TAEDA_CUDA_DRIVER": "/nonexistent.so"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "True\nTrue\nFalse\n", done.stderr
