"""Backward passes on devices: their threads, their streams, and what they order."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import taeda
from taeda import cuda

Tensor = taeda.Tensor


class Seen(taeda.autograd.Function):
    """The identity, which notes where its backward runs."""

    places: list[tuple[int, int, int]] = []

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        stream = cuda.current_stream(grad.device) if grad.is_cuda else None
        here = threading.get_ident()
        Seen.places.append(
            (here, cuda.current_device(), stream.stream_id if stream else -1)
        )
        return grad.clone()


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    Seen.places = []


def busy(x: Tensor, times: int = 12) -> Tensor:
    """x, by so many kernels that a missing wait shows."""
    for _ in range(times):
        x = x + 1
    return x - times


def test_nodes_of_a_device_run_on_its_thread() -> None:
    leaves = [taeda.ones(3, device=f"cuda:{i}", requires_grad=True) for i in (0, 1)]
    for _ in range(2):
        total = sum(Seen.apply(Seen.apply(x) * 2).sum().cpu() for x in leaves)
        Seen.apply(total).backward()
    mine = threading.get_ident()
    on_cpu = [p for p in Seen.places if p[2] == -1]
    assert len(on_cpu) == 2 and {p[0] for p in on_cpu} == {mine}
    threads = [{p[0] for p in Seen.places if p[1:] == (i, 0)} - {mine} for i in (0, 1)]
    assert [len(t) for t in threads] == [1, 1] and threads[0] != threads[1]
    for x in leaves:
        assert x.grad.device == x.device and x.grad.tolist() == [4, 4, 4]


def test_a_node_runs_on_the_stream_of_its_forward() -> None:
    first, second = cuda.Stream(), cuda.Stream()
    ambient = cuda.current_stream()
    for _ in range(10):
        Seen.places = []
        x = taeda.ones(64, device="cuda", requires_grad=True)
        first.wait_stream(ambient)
        with cuda.stream(first):
            y = Seen.apply(busy(x))
        second.wait_stream(first)
        with cuda.stream(second):
            z = Seen.apply(busy(y * 2))
        ambient.wait_stream(second)
        # The seed is made by kernels of the ambient stream, and used there later.
        z.backward(busy(taeda.full((64,), 3.0, device="cuda")))
        assert x.grad.mul(2).cpu().unique().tolist() == [12]
        streams = [place[2] for place in Seen.places]
        assert streams == [second.stream_id, first.stream_id]
    assert cuda.current_stream() == ambient


def test_gradients_of_two_streams_are_added_in_order() -> None:
    streams = [cuda.Stream() for _ in range(3)]
    ambient = cuda.current_stream()
    for _ in range(10):
        x = taeda.ones(64, device="cuda", requires_grad=True)
        start = x * 1
        parts = []
        for k, stream in enumerate(streams):
            stream.wait_stream(ambient)
            with cuda.stream(stream):
                parts.append(busy(start * (k + 1)))
            ambient.wait_stream(stream)
        (parts[0] + parts[1] + parts[2]).sum().backward()
        assert x.grad.cpu().unique().tolist() == [6]
        (grad,) = taeda.autograd.grad(busy(x * 2).sum(), x)
        assert (grad + 1).cpu().unique().tolist() == [3]


def test_a_pass_on_a_side_stream_is_ordered_there() -> None:
    side = cuda.Stream()
    x = taeda.ones(64, device="cuda", requires_grad=True)
    weight = taeda.full((64,), 2.0, device="cuda", requires_grad=True)
    loss = busy(x * weight)
    side.wait_stream(cuda.current_stream())
    for turn in range(8):
        with cuda.stream(side):
            loss.backward(busy(taeda.ones(64, device="cuda")), retain_graph=True)
            doubled = x.grad * 2
            assert doubled.cpu().unique().tolist() == [4 * (turn + 1)]
    cuda.synchronize()


def test_memory_of_gradients_outlives_its_stream() -> None:
    side = cuda.Stream()
    for _ in range(10):
        x = taeda.ones(256, device="cuda", requires_grad=True)
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = busy(x * 5)
        cuda.current_stream().wait_stream(side)
        (grad,) = taeda.autograd.grad(y.sum(), x)
        kept = busy(grad)
        del grad, y
        with cuda.stream(side):
            taeda.zeros(256, device="cuda").sub_(1)
        assert kept.cpu().unique().tolist() == [5]


def test_errors_of_a_devices_thread_reach_the_caller() -> None:
    class Fails(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("of the device")

    x = taeda.ones(3, device="cuda", requires_grad=True)
    for _ in range(3):
        with pytest.raises(KeyError, match="of the device"):
            Fails.apply(x * 2).sum().backward()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_pass_may_begin_inside_of_another() -> None:
    class Inner(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, device):
            ctx.save_for_backward(x)
            ctx.device = device
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with taeda.enable_grad():
                leaf = x.detach().requires_grad_()
                there = leaf.to(ctx.device)
                inner = Seen.apply(there * there).sum()
                inner.backward()
            return grad * leaf.grad, None

    for _ in range(4):
        leaves = [taeda.full((3,), 2.0, device=f"cuda:{i}") for i in (0, 1)]
        for x in leaves:
            x.requires_grad_()
        # Each device's node waits for a pass on the other one.
        parts = [
            Inner.apply(x, f"cuda:{other}").sum().cpu()
            for x, other in zip(leaves, (1, 0), strict=True)
        ]
        (parts[0] + parts[1]).backward()
        assert [x.grad.tolist() for x in leaves] == [[4, 4, 4]] * 2


def test_passes_stand_deeply_in_each_other() -> None:
    class Deeper(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth > 0:
                with taeda.enable_grad():
                    leaf = taeda.ones(2, device="cuda", requires_grad=True)
                    Deeper.apply(leaf, ctx.depth - 1).sum().backward()
                grad = grad + leaf.grad
            return grad, None

    x = taeda.ones(2, device="cuda", requires_grad=True)
    Deeper.apply(x, 150).sum().backward()
    assert x.grad.tolist() == [151, 151]


def test_checkpoints_run_again_on_their_device() -> None:
    from taeda.utils.checkpoint import checkpoint

    x = taeda.ones(4, device="cuda", requires_grad=True)
    y = checkpoint(lambda t: Seen.apply(t * 3).exp(), x, use_reentrant=False)
    checkpoint(lambda t: t * 2, y, use_reentrant=True).sum().backward()
    want = taeda.ones(4, requires_grad=True)
    ((want * 3).exp() * 2).sum().backward()
    assert taeda.allclose(x.grad.cpu(), want.grad)


def test_settings_go_with_the_pass() -> None:
    seen = []

    class Settings(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((taeda.is_grad_enabled(), taeda.is_autocast_enabled("cpu")))
            return grad.clone()

    x = taeda.ones(2, device="cuda", requires_grad=True)
    Settings.apply(x).sum().backward()
    with taeda.autocast("cpu", taeda.bfloat16):
        Settings.apply(x).sum().backward(create_graph=True)
    assert seen == [(False, False), (True, True)]


def test_one_thread_where_asked_and_with_hooks_of_saved_tensors() -> None:
    x = taeda.ones(2, device="cuda", requires_grad=True)
    with taeda.autograd.set_multithreading_enabled(False):
        Seen.apply(x).sum().backward()
    assert [place[0] for place in Seen.places] == [threading.get_ident()]


def test_final_callbacks_and_hooks() -> None:
    x = taeda.ones(2, device="cuda", requires_grad=True)
    ran: list[object] = []
    x.register_hook(lambda grad: grad * 2)
    x.register_post_accumulate_grad_hook(lambda leaf: ran.append(leaf.grad.tolist()))
    y = x * 3
    y.register_hook(lambda grad: ran.append(grad.tolist()))
    y.sum().backward()
    assert ran == [[1, 1], [6, 6]] and x.grad.tolist() == [6, 6]


def test_many_threads_share_a_devices_thread() -> None:
    weight = taeda.ones(8, device="cuda", requires_grad=True)

    def work() -> None:
        for _ in range(10):
            (weight * 2 + weight).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert weight.grad.tolist() == [120] * 8


def output_of(text: str) -> str:
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


COUNT = "len(__import__('os').listdir('/proc/self/task'))"


def test_no_thread_is_made_before_a_device_has_nodes() -> None:
    text = f"""
import taeda
taeda.set_num_threads(1)
there = taeda.ones(2, device="cuda")
x = taeda.ones(2, requires_grad=True)
before = {COUNT}
(x * 2).sum().backward()
print({COUNT} - before)
y = taeda.ones(2, device="cuda", requires_grad=True)
(y * 2).sum().backward()
(y * 2).sum().backward()
print({COUNT} - before)
"""
    assert output_of(text).split() == ["0", "1"]


def test_a_child_process_has_backward_on_the_cpu() -> None:
    text = """
import os
import taeda
y = taeda.ones(2, device="cuda", requires_grad=True)
(y * 2).sum().backward()
child = os.fork()
if child == 0:
    x = taeda.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    try:
        (y * 2).sum().backward()
        print("used a device after a fork", flush=True)
    except RuntimeError as error:
        print(x.grad.tolist(), "forked subprocess" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
(y * 2).sum().backward()
print(y.grad.tolist())
"""
    assert output_of(text) == "[3.0, 3.0] True\n[4.0, 4.0]\n"


def test_a_signal_ends_a_pass() -> None:
    text = """
import signal, threading, time
import taeda

class Slow(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        time.sleep(0.05)
        return grad

x = y = taeda.ones(2, device="cuda", requires_grad=True)
for _ in range(100):
    y = Slow.apply(y)
main = threading.main_thread().ident
threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
begin = time.monotonic()
try:
    y.sum().backward()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 3)
(x * 2).sum().backward()
print(x.grad.tolist())
"""
    assert output_of(text) == "interrupted True\n[2.0, 2.0]\n"


def test_a_model_trains_across_two_devices() -> None:
    def losses(place: Callable[[int], str]) -> list[float]:
        taeda.manual_seed(0)
        first = taeda.nn.Linear(4, 8).to(place(0))
        second = taeda.nn.Linear(8, 2).to(place(1))
        parameters = [*first.parameters(), *second.parameters()]
        x = taeda.linspace(-1, 1, 24).view(6, 4)
        found = []
        for _ in range(5):
            hidden = first(x.to(place(0))).tanh()
            loss = second(hidden.to(place(1))).square().mean()
            gradients = taeda.autograd.grad(loss, parameters)
            with taeda.no_grad():
                for parameter, grad in zip(parameters, gradients, strict=True):
                    parameter.sub_(grad, alpha=0.1)
            found.append(loss.item())
        return found

    got = losses(lambda i: f"cuda:{i}")
    want = losses(lambda i: "cpu")
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-5
    assert want[-1] < want[0]
