"""Values between convolutions lie with their channels innermost (Note [Layouts])."""

from __future__ import annotations

import copy
import threading

import pytest
import taeda
from taeda import nn
from taeda.compiler import _default
from taeda.nn import functional as F

CHECKED = {"check": True}  # each kernel is held to its calls


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("TAEDA_COMPILE_STRICT", "1")


@pytest.fixture
def copies(monkeypatch):
    """Of the last graphs: how many copies to innermost channels, and to rows."""
    made = []
    compile_graph = _default._compiler.compile

    class Watched:
        @staticmethod
        def compile(*args, **settings):
            made.append(compile_graph(*args, **settings))
            return made[-1]

    def told():
        texts = made[-1].graphs()[-1]
        return [
            (_copies_to(text, "2") + _copies_to(text, "3"), _copies_to(text, "0"))
            for text in texts
            if text
        ]

    monkeypatch.setattr(_default, "_compiler", Watched)
    return told


def _copies_to(text: str, number: str) -> int:
    calls = [line for line in text.splitlines() if "aten::clone(" in line]
    return sum(line.rstrip().endswith(f", {number})") for line in calls)


class Block(nn.Module):
    """Two convolutions, norms, a sum with what came in."""

    def __init__(self, channels: int, **options) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding="same", **options)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding="same", **options)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.norm(self.first(x)))) + x)


def leaves_of(module, x) -> list:
    return [x, *module.parameters()]


def both(module, x, calls: int = 2, tolerance: float = 2e-4, **options):
    """Results, gradients and buffers of eager and compiled calls are alike, and lie
    alike."""
    outcomes = []
    for compiled in (False, True):
        net = copy.deepcopy(module)
        run = taeda.compile(net, options=CHECKED, **options) if compiled else net
        taeda.manual_seed(5)
        found = []
        image = x.detach().clone(memory_format=taeda.preserve_format)
        image.requires_grad_(x.requires_grad)
        for _ in range(calls):
            results = run(image)
            results = results if isinstance(results, tuple) else (results,)
            found += results
            if any(r.requires_grad for r in results):
                sum((r * r).sum() for r in results if r.requires_grad).backward()
        found += [t.grad for t in leaves_of(net, image) if t.grad is not None]
        outcomes.append([*found, *net.buffers()])
    for want, got in zip(*outcomes, strict=True):
        assert got.stride() == want.stride()
        taeda.testing.assert_close(got, want, rtol=tolerance, atol=tolerance * 10)
    return outcomes[1]


def image(*sizes, grad: bool = True, **options):
    taeda.manual_seed(1)
    return taeda.randn(*sizes, requires_grad=grad, **options)


def test_copies_stand_at_the_borders_only(copies) -> None:
    both(nn.Sequential(Block(16), Block(16)), image(2, 16, 9, 9))
    # The image and the result; the gradient, the image again, its gradient.
    assert copies() == [(1, 1), (2, 1)]


def test_one_convolution_is_left_as_it_is(copies) -> None:
    both(nn.Sequential(nn.Conv2d(16, 16, 3), nn.ReLU()), image(2, 16, 9, 9))
    assert copies() == [(0, 0), (0, 0)]


def test_heavy_weights_turn_nothing_while_they_are_trained(copies) -> None:
    net, x = nn.Sequential(Block(64), Block(64)), image(1, 64, 4, 4)
    both(net, x)
    assert copies() == [(0, 0), (0, 0)]
    with taeda.no_grad():
        both(net.eval(), x)
    assert copies() == [(1, 1)]


@pytest.mark.parametrize(
    "options",
    [{}, {"groups": 4}, {"groups": 16}, {"dilation": 2}, {"bias": False}],
    ids=str,
)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_blocks(options, mode, copies) -> None:
    net = nn.Sequential(Block(16, **options), nn.MaxPool2d(2), Block(16, **options))
    both(getattr(net, mode)(), image(2, 16, 11, 7))
    assert copies()[0][0] > 0


def test_pools_upsampling_and_concatenation(copies) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1)
            self.c, self.up = nn.Conv2d(16, 8, 1), nn.ConvTranspose2d(8, 4, 2, 2)

        def forward(self, x):
            a = F.max_pool2d(F.gelu(self.a(x)), 3, 2, 1)
            b = F.interpolate(F.avg_pool2d(self.b(a), 2), scale_factor=2)
            return self.up(self.c(taeda.cat([a, b], 1))), b.mean((2, 3))

    both(Net(), image(2, 3, 32, 32))
    assert copies()[0][0] > 0


def test_three_spatial_dims(copies) -> None:
    net = nn.Sequential(nn.Conv3d(4, 8, 3), nn.BatchNorm3d(8), nn.Conv3d(8, 8, 3))
    both(net, image(2, 4, 9, 8, 7))
    assert copies()[0] == (1, 1)


def test_views_and_shuffles_get_rows() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(8, 16, 3), nn.Conv2d(16, 16, 3)
            self.c, self.head = nn.Conv2d(4, 8, 3), nn.Linear(8 * 3 * 3, 3)

        def forward(self, x):
            y = self.b(F.relu(self.a(x)))
            y = F.pixel_shuffle(y, 2)[:, :, 1:-1, 1:-1].contiguous()
            y = self.c(y)[:, :, ::2, ::2]
            return self.head(y.flatten(1)), y.transpose(1, 2), y[0]

    both(Net(), image(2, 8, 9, 9))


def test_random_numbers_fall_on_the_same_elements() -> None:
    net = nn.Sequential(Block(16), nn.Dropout(0.5), Block(16), nn.Dropout2d(0.5))
    both(net, image(2, 16, 9, 9))


@pytest.mark.parametrize("channels_last", ["image", "both"])
def test_programs_that_chose_the_layout_themselves(channels_last, copies) -> None:
    net, x = nn.Sequential(Block(16), Block(16)), image(2, 16, 9, 9, grad=False)
    if channels_last == "both":
        net = net.to(memory_format=taeda.channels_last)
    x = x.contiguous(memory_format=taeda.channels_last).requires_grad_()
    both(net, x)
    assert copies() == [(0, 0), (0, 0)]


def test_bfloat16() -> None:
    net = nn.Sequential(Block(16), Block(16)).bfloat16()
    both(net, image(2, 16, 9, 9, dtype=taeda.bfloat16), calls=1, tolerance=3e-2)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.float64])
def test_other_types_are_left_alone(dtype, copies) -> None:
    net = nn.Sequential(Block(8), Block(8)).to(dtype)
    both(net, image(2, 8, 9, 9, dtype=dtype), calls=1, tolerance=3e-2)
    assert copies() == [(0, 0), (0, 0)]


def test_results_that_do_not_reach_the_loss() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Block(16), Block(16)

        def forward(self, x):
            y = self.a(x)
            return y, self.b(y)

    net = Net()
    found = []
    for run in (net, taeda.compile(net, options=CHECKED)):
        for which in ([0], [1], [0, 1]):
            x = image(2, 16, 9, 9)
            results = run(x)
            sum(results[i].square().sum() for i in which).backward()
            found.append(x.grad)
    for want, got in zip(found[:3], found[3:], strict=True):
        taeda.testing.assert_close(got, want, rtol=2e-4, atol=2e-3)


def test_sizes_that_are_symbols(copies) -> None:
    net = nn.Sequential(Block(16), Block(16))
    run = taeda.compile(net, dynamic=True, options=CHECKED)
    for sizes in ((2, 9, 9), (3, 12, 7), (1, 8, 8), (5, 6, 10)):
        batch, height, width = sizes
        x = image(batch, 16, height, width)
        y = image(batch, 16, height, width)
        net(x).square().sum().backward()
        run(y).square().sum().backward()
        taeda.testing.assert_close(y.grad, x.grad, rtol=2e-4, atol=2e-3)
    assert copies()[0] == (1, 1)


def test_weights_written_between_calls() -> None:
    """Reordered weights are kept; whatever writes to them is seen at the next call."""
    net = nn.Sequential(Block(32), Block(32)).eval()
    run = taeda.compile(net, options=CHECKED)
    weight = net[0].first.weight
    alias = weight.detach()
    seen = net[1].second.weight.detach().numpy()
    writes = [
        lambda: weight.data.mul_(2),
        lambda: alias.add_(0.1),
        lambda: alias.view(-1)[3:5].fill_(9),
        lambda: net.load_state_dict({k: v / 2 for k, v in net.state_dict().items()}),
        lambda: weight.data.copy_(taeda.randn_like(weight)),
        lambda: setattr(weight, "data", taeda.randn_like(weight)),
        lambda: weight.detach().numpy().__imul__(3),
        lambda: seen.__iadd__(1),
    ]
    x = image(1, 32, 5, 5, grad=False)
    with taeda.no_grad():
        for write in writes:
            for _ in range(3):
                taeda.testing.assert_close(run(x), net(x), rtol=2e-4, atol=2e-3)
            before = run(x).clone()
            write()
            fresh = copy.deepcopy(net)
            taeda.testing.assert_close(run(x), fresh(x), rtol=2e-4, atol=2e-3)
            taeda.testing.assert_close(net(x), fresh(x), rtol=2e-4, atol=2e-3)
            assert not taeda.allclose(run(x), before)


def test_threads_share_kept_weights() -> None:
    net = nn.Sequential(Block(32), Block(32)).eval()
    run = taeda.compile(net, options={"blocking": True})
    x = image(1, 32, 5, 5, grad=False)
    with taeda.no_grad():
        want = net(x)
        run(x)
        found = []

        def work() -> None:
            with taeda.no_grad():
                found.extend(f(x) for f in (net, run) for _ in range(20))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len(found) == 160
    for got in found:
        taeda.testing.assert_close(got, want, rtol=2e-4, atol=2e-3)
