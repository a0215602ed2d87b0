"""Calls whose dtypes under autocast are compared: functions by name with arguments.

Most are samples of PyTorch's own tests in float32; `extra` has what those leave out.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import torch
from recorded import _database
from torch.utils._pytree import tree_leaves, tree_map

# So many of an operator's samples; of operators without policy, every EVERY-th.
KEPT, EVERY = 3, 8
MOST_ELEMENTS = 3000


def resolve(library, name: str):
    """A function by its dotted name; None where the library has none."""
    found = library
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def database(wanted: set[str]) -> Iterator[tuple[str, tuple, dict]]:
    """Samples of the wanted base names, and of some other operators."""
    others = itertools.count()
    for op in _database():
        names = {op.name.rpartition(".")[2], op.aten_name, op.name.replace(".", "_")}
        if not names & wanted and next(others) % EVERY != 0:
            continue
        if resolve(torch, op.name) is None or torch.float32 not in op.dtypes:
            continue
        if getattr(op.op, "__name__", "") == "<lambda>":
            continue  # the samples are no arguments of the function itself
        yield from _calls(op)


def _calls(op) -> Iterator[tuple[str, tuple, dict]]:
    torch.manual_seed(0)
    samples = op.sample_inputs_func(op, "cpu", torch.float32, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = 0
        for sample in itertools.islice(samples, 4 * KEPT):
            call = ((sample.input, *sample.args), sample.kwargs)
            leaves = tree_leaves(call)
            if any(isinstance(leaf, torch.dtype) for leaf in leaves):
                continue  # which is to fit the tensors, that are cast
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            small = sum(t.numel() for t in tensors) <= MOST_ELEMENTS
            if tensors and small and kept < KEPT:
                kept += 1
                yield op.name, *call


def with_floats(tree, dtype: torch.dtype):
    """The tree with its float32 tensors cast."""

    def leaf(value):
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
            return value.to(dtype)
        return value

    return tree_map(leaf, tree)


def called_operators(call) -> set[str]:
    """Base names of the operators that PyTorch runs, composites included."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    names = {event.key for event in profile.key_averages()}
    return {name[6:] for name in names if name.startswith("aten::")}


def extra() -> Iterator[tuple[str, tuple, dict]]:
    """Functions that PyTorch's samples do not reach, or reach by another name."""
    torch.manual_seed(1)
    for part in (_products, _cells, _images, _losses):
        yield from part()


def _products() -> Iterator[tuple[str, tuple, dict]]:
    x, square = torch.rand(3, 4), torch.rand(3, 3) + torch.eye(3)
    yield "einsum", ("ij,kj->ik", x, x), {}
    yield "chain_matmul", (square, square, x), {}
    yield "conv_tbc", (torch.rand(5, 2, 3), torch.rand(3, 3, 4), torch.rand(4)), {}
    yield "_addmm_activation", (torch.rand(3), x, torch.rand(4, 3)), {}
    yield "inverse", (square,), {}
    yield "lu", (square,), {"get_infos": True}
    yield "orgqr", (x.T, torch.rand(3)), {}
    heads = torch.rand(1, 2, 4, 8)
    yield "nn.functional.scaled_dot_product_attention", (heads, heads, heads), {}
    yield "nn.functional.bilinear", (x, x, torch.rand(2, 4, 4), torch.rand(2)), {}


def _cells() -> Iterator[tuple[str, tuple, dict]]:
    x, h = torch.rand(2, 3), torch.rand(2, 4)
    for name, gates in (
        *(("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)),
        ("lstm_cell", 4),
    ):
        state = (h, h) if name == "lstm_cell" else h
        weights = torch.rand(4 * gates, 3), torch.rand(4 * gates, 4)
        biases = torch.rand(4 * gates), torch.rand(4 * gates)
        yield name, (x, state, *weights, *biases), {}
        if name != "lstm_cell":
            net = name.removesuffix("_cell")
            whole = (torch.rand(5, 2, 3), h[None], [*weights, *biases])
            yield net, (*whole, True, 1, 0.0, False, False, False), {}


def _images() -> Iterator[tuple[str, tuple, dict]]:
    for mode, dims in (
        *(("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 1)),
        *(("nearest-exact", 2), ("nearest-exact", 3), ("linear", 1), ("bilinear", 2)),
        *(("bicubic", 2), ("trilinear", 3)),
    ):
        image = torch.rand(1, 2, *[4] * dims)
        options = {"scale_factor": 2, "mode": mode}
        yield "nn.functional.interpolate", (image,), options
        if mode in ("bilinear", "bicubic"):
            options = {**options, "antialias": True}
            yield "nn.functional.interpolate", (image,), options
    for dims in (1, 2, 3):
        image = torch.rand(1, 2, *[4] * dims)
        for mode in ("reflect", "replicate", "constant", "circular"):
            yield "nn.functional.pad", (image, [1] * (2 * dims)), {"mode": mode}
    for dims in (2, 3):
        image, grid = torch.rand(1, 2, *[4] * dims), torch.rand(1, *[3] * dims, dims)
        yield "nn.functional.grid_sample", (image, grid), {"align_corners": False}
        picks = {"output_size": 2, "_random_samples": torch.full((1, 2, dims), 0.5)}
        yield f"nn.functional.fractional_max_pool{dims}d", (image, 2), picks


def _losses() -> Iterator[tuple[str, tuple, dict]]:
    scores, classes = torch.rand(3, 5), torch.tensor([0, 4, 2])
    yield "nn.functional.cross_entropy", (scores, classes), {}
    yield "nn.functional.cross_entropy", (scores, scores.softmax(1)), {}
    image = torch.rand(2, 3, 4, 4).log_softmax(1)
    yield "nn.functional.nll_loss", (image, torch.ones(2, 4, 4).long()), {}
    lengths = torch.tensor([4, 4])
    log_probs, targets = torch.rand(6, 2, 5).log_softmax(2), torch.ones(2, 4).long()
    yield "nn.functional.ctc_loss", (log_probs, targets, lengths + 2, lengths), {}
