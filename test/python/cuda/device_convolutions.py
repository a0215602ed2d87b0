"""Convolutions by cuDNN: what it is given, and what it leaves to our kernels."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
import taeda
from device_operators import agree
from taeda import nn
from taeda.backends import cudnn

Tensor = taeda.Tensor
DTYPES = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)
# Tensor cores in any order; one that is exact; what takes odd addresses.
TENSOR_CORES, EXACT, FALLBACK = range(3)


@pytest.fixture(autouse=True)
def seeded() -> None:
    taeda.manual_seed(5)


def ran() -> list[int]:
    """How often each engine of the emulator ran."""
    library = ctypes.CDLL(os.environ["TAEDA_CUDA_CUDNN"])
    return [library.emulated_convolutions(engine) for engine in range(3)]


def engines(call) -> list[int]:
    """How often each engine runs in a call."""
    before = ran()
    call()
    return [now - then for now, then in zip(ran(), before, strict=True)]


def on_both(module: nn.Module, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """The result and the gradients of a module on either side."""
    found = []
    for device in ("cpu", "cuda"):
        module, x = module.to(device), x.detach().to(device).requires_grad_()
        module.zero_grad()
        y = module(x)
        (y * y.detach().cos()).sum().backward()
        grads = [x.grad, *(p.grad.clone() for p in module.parameters())]
        found.append([y.detach(), *grads])
    return found[0], found[1]


def check(module: nn.Module, x: Tensor, calls: int = 3) -> None:
    """Both sides agree, by so many calls of the library's."""
    sides = []
    counted = engines(lambda: sides.extend(on_both(module, x)))
    assert sum(counted) == calls, counted
    for want, got in zip(*sides, strict=True):
        assert got.is_cuda and agree(got, want), (got, want)
        assert got.stride() == want.stride()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: taeda.dtype) -> None:
    check(nn.Conv2d(4, 6, 3, padding=1).to(dtype), taeda.randn(2, 4, 5, 6).to(dtype))


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.Conv3d])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 2},
        {"dilation": 2},
        {"groups": 2},
        {"bias": False},
    ],
    ids=str,
)
def test_ways(kind: type, options: dict) -> None:
    dims = int(kind.__name__[4])
    x = taeda.randn(2, 4, *(5, 6, 7)[:dims])
    check(kind(4, 6, 2, **options), x)


@pytest.mark.parametrize(
    "kind", [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d]
)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed(kind: type, groups: int) -> None:
    dims = int(kind.__name__[13])
    x = taeda.randn(2, 4, *(3, 4, 2)[:dims])
    module = kind(4, 6, 3, stride=2, padding=1, output_padding=1, groups=groups)
    check(module, x)


def test_depthwise_and_one_sided_padding() -> None:
    check(nn.Conv2d(4, 8, 3, groups=4, padding=(2, 0)), taeda.randn(1, 4, 5, 6))
    check(nn.Conv2d(4, 4, 2, padding="same"), taeda.randn(1, 4, 5, 6))
    check(
        nn.Conv2d(4, 4, 3, padding="same", padding_mode="circular"),
        taeda.randn(1, 4, 5, 6),
    )


@pytest.mark.parametrize("of", ["input", "weight", "both"])
def test_channels_innermost(of: str) -> None:
    module, x = nn.Conv2d(4, 6, 3), taeda.randn(2, 4, 5, 6)
    if of != "input":
        module = module.to(memory_format=taeda.channels_last)
    if of != "weight":
        x = x.to(memory_format=taeda.channels_last)
    check(module, x)
    assert module(x.cuda()).is_contiguous(memory_format=taeda.channels_last)


def test_operands_lie_as_they_like() -> None:
    module = nn.Conv2d(4, 6, 3).cuda()
    for x in (
        taeda.randn(5, 6, 4, 2).permute(3, 2, 0, 1),
        taeda.randn(2, 4, 10, 12)[:, :, ::2, ::2],
        taeda.randn(1, 4, 5, 6).expand(3, 4, 5, 6),
    ):
        assert agree(module(x.cuda()), module.cpu()(x))
        module.cuda()


def test_gradients_of_gradients() -> None:
    x = taeda.randn(1, 2, 4, 4, dtype=taeda.float64, device="cuda", requires_grad=True)
    w = taeda.randn(2, 2, 2, 2, dtype=taeda.float64, device="cuda", requires_grad=True)
    assert taeda.autograd.gradgradcheck(nn.functional.conv2d, (x, w))


def test_gradients_that_are_not_asked_for_are_not_computed() -> None:
    module = nn.Conv2d(4, 6, 3).cuda()
    x = taeda.randn(2, 4, 5, 6, device="cuda")
    assert sum(engines(lambda: module(x).sum().backward())) == 2
    module.weight.requires_grad_(False)
    assert sum(engines(lambda: module(x).sum().backward())) == 1


def test_what_is_allowed_decides_between_engines() -> None:
    module = nn.Conv2d(4, 6, 3, bias=False).cuda()
    x = taeda.randn(2, 4, 5, 6, device="cuda")

    def call() -> None:
        module(x)

    assert engines(call) == [1, 0, 0]
    with cudnn.flags(enabled=True, deterministic=True):
        assert engines(call) == [0, 1, 0]
    taeda.use_deterministic_algorithms(True)
    try:
        assert engines(call) == [0, 1, 0]
    finally:
        taeda.use_deterministic_algorithms(False)
    with cudnn.flags(enabled=True, allow_tf32=False):
        assert engines(call) == [0, 1, 0]
        assert engines(lambda: module.half()(x.half())) == [1, 0, 0]
    module.float()
    cudnn.conv.fp32_precision = "ieee"
    try:
        assert engines(call) == [0, 1, 0]
    finally:
        cudnn.conv.fp32_precision = "tf32"
    with cudnn.flags(enabled=False):
        assert engines(call) == [0, 0, 0]
    assert engines(call) == [1, 0, 0]


def test_benchmark_tries_engines_once_for_each_problem() -> None:
    module = nn.Conv2d(4, 6, 3, bias=False).cuda()
    x = taeda.randn(3, 4, 5, 6, device="cuda")
    want = module(x)
    with cudnn.flags(enabled=True, benchmark=True):
        # Three runs of each of three, and the call itself.
        assert sum(engines(lambda: module(x))) == 10
        assert sum(engines(lambda: module(x))) == 1
        assert agree(module(x), want.cpu())
    with cudnn.flags(enabled=True, benchmark=True, benchmark_limit=1):
        assert sum(engines(lambda: module(x[:1]))) == 1


def test_a_recorded_graph_has_the_convolution() -> None:
    module = nn.Conv2d(4, 6, 3).cuda()
    x = taeda.randn(2, 4, 5, 6, device="cuda")
    with taeda.no_grad():
        module(x)
        graph = taeda.cuda.CUDAGraph()
        with cudnn.flags(enabled=True, benchmark=True), taeda.cuda.graph(graph):
            y = module(x)
        x.copy_(taeda.randn(2, 4, 5, 6))
        graph.replay()
        assert agree(y, module(x).cpu())


def test_odd_channels_and_odd_addresses() -> None:
    module = nn.Conv2d(3, 5, 3, bias=False).cuda()
    x = taeda.randn(2 * 3 * 5 * 6 + 1, device="cuda")
    even = x[:-1].view(2, 3, 5, 6)
    odd = x[1:].view(2, 3, 5, 6)
    assert engines(lambda: module(even)) == [0, 1, 0]
    assert engines(lambda: module(odd)) == [0, 0, 1]
    assert agree(module(odd), module.cpu()(odd.cpu()))


def test_convolutions_run_on_the_current_stream() -> None:
    module = nn.Conv2d(4, 6, 3).cuda()
    x = taeda.randn(2, 4, 5, 6, device="cuda")
    stream = taeda.cuda.Stream()
    stream.wait_event(taeda.cuda.current_stream().record_event())
    with stream:
        y = module(x)
    stream.synchronize()
    assert agree(y, module.cpu()(x.cpu()))


def test_other_dtypes_and_empty_ones_are_ours() -> None:
    f = nn.functional.conv2d
    x, w = taeda.randint(9, (1, 2, 4, 4)), taeda.randint(9, (3, 2, 2, 2))
    z = taeda.randn(1, 2, 4, 4, dtype=taeda.complex64)
    v = taeda.randn(3, 2, 2, 2, dtype=taeda.complex64)
    none = taeda.randn(0, 2, 4, 4)

    def call() -> None:
        assert agree(f(x.cuda(), w.cuda()), f(x, w))
        assert agree(f(z.cuda(), v.cuda()), f(z, v))
        assert f(none.cuda(), v.real.cuda()).shape == (0, 3, 3, 3)

    assert engines(call) == [0, 0, 0]


@pytest.mark.parametrize("weight", [(3, 3, 2, 2), (3, 2, 9, 2)])
def test_errors_are_those_of_the_cpu(weight: tuple) -> None:
    texts = []
    for device in ("cpu", "cuda"):
        x = taeda.randn(1, 2, 4, 4, device=device)
        with pytest.raises(RuntimeError) as raised:
            nn.functional.conv2d(x, taeda.randn(weight, device=device))
        texts.append(str(raised.value).replace("cuda:0", "cpu"))
    assert texts[0] == texts[1]


def test_names_tell_of_the_library() -> None:
    assert cudnn.is_available() and cudnn.version() == 90100
    assert cudnn.is_acceptable(taeda.ones(1, device="cuda"))
    assert not cudnn.is_acceptable(taeda.ones(1))
    assert not cudnn.is_acceptable(taeda.ones(1, device="cuda", dtype=taeda.int64))
    with cudnn.flags(enabled=False):
        assert not cudnn.is_acceptable(taeda.ones(1, device="cuda"))


LOST = """
import sys, warnings
import taeda
warnings.simplefilter("always")
module, x = taeda.nn.Conv2d(2, 3, 2), taeda.randn(1, 2, 4, 4)
want = module(x)
for _ in range(2):
    got = module.cuda()(x.cuda())
print("right" if taeda.allclose(got.cpu(), want, atol=1e-5) else "wrong")
print(taeda.backends.cudnn.version(), taeda.backends.cudnn.is_available())
"""


def test_without_the_library_our_kernels_run_and_one_line_says_so() -> None:
    environment = os.environ | {"TAEDA_CUDA_CUDNN": "/nonexistent/libcudnn.so.9"}
    command = [sys.executable, "-c", LOST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "right\nNone False\n", done.stderr
    assert done.stderr.count("libcudnn.so was not found") == 1
    assert "install the package nvidia-cudnn" in done.stderr
