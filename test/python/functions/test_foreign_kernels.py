"""Operators of other libraries' kernels, and parts of batch norm."""

from __future__ import annotations

import inspect

import numpy
import pytest
import taeda
import torch
from taeda import _foreign_kernels


def test_they_refuse_as_a_build_for_the_cpu_does() -> None:
    """The reference refuses only where its arguments fit, which are then ours too."""
    checked = 0
    for name in _foreign_kernels._PARAMETERS:
        ours = getattr(taeda, name)
        count = len(inspect.signature(ours).parameters)
        with pytest.raises(TypeError):
            ours(*[None] * (count + 3))
        required = [
            p
            for p in inspect.signature(ours).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        with pytest.raises(NotImplementedError, match=f"'aten::{name}'.*CPU"):
            ours(*[None] * len(required))
        assert callable(getattr(torch, name))
        checked += 1
    assert checked == 20


def test_the_message_is_that_of_the_reference() -> None:
    for library in (taeda, torch):
        x = library.ones(1, 1, 3, 3)
        with pytest.raises(NotImplementedError, match="aten::cudnn_grid_sampler"):
            library.cudnn_grid_sampler(x, x)
        with pytest.raises(NotImplementedError, match="from the 'CPU' backend"):
            library.mkldnn_max_pool2d(x, 2)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_of_ordinary_tensors(groups) -> None:
    rng = numpy.random.default_rng(0)
    arrays = [
        rng.standard_normal(s).astype("float32")
        for s in ((2, 4, 5, 6), (6, 4 // groups, 3, 3), (6,))
    ]
    got, want = (
        t.mkldnn_convolution(
            *map(t.from_numpy, arrays), (1, 0), (2, 1), (1, 1), groups
        ).numpy()
        for t in (taeda, torch)
    )
    numpy.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_statistics_move_the_running_ones() -> None:
    x = numpy.random.default_rng(1).standard_normal((3, 5, 2)).astype("float32")
    for momentum in (0.1, 1.0):
        results = []
        for t in (taeda, torch):
            state = t.zeros(5), t.ones(5)
            made = t.batch_norm_update_stats(t.from_numpy(x), *state, momentum)
            results.append([a.numpy() for a in (*made, *state)])
        for got, want in zip(*results, strict=True):
            numpy.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_parts_of_two_processes_make_batch_norm() -> None:
    """Two halves of a batch, with the sums exchanged, against the whole by PyTorch."""
    rng = numpy.random.default_rng(2)
    x, grad = (rng.standard_normal((7, 4, 3)) for _ in range(2))
    weight, bias = rng.standard_normal(4), rng.standard_normal(4)
    whole = [torch.from_numpy(a).requires_grad_() for a in (x, weight, bias)]
    mean, var = torch.zeros(4).double(), torch.ones(4).double()
    y = torch.nn.functional.batch_norm(whole[0], mean, var, *whole[1:], True, 0.3)
    y.backward(torch.from_numpy(grad))

    w, b = taeda.from_numpy(weight), taeda.from_numpy(bias)
    parts = [taeda.from_numpy(part.copy()) for part in (x[:3], x[3:])]
    grads = [taeda.from_numpy(part.copy()) for part in (grad[:3], grad[3:])]
    stats = [taeda.batch_norm_stats(part, 1e-5) for part in parts]
    means, stds = (taeda.stack(column) for column in zip(*stats, strict=True))
    counts = taeda.tensor([9.0, 12.0], dtype=taeda.float64)
    ours = taeda.zeros(4).double(), taeda.ones(4).double()
    m, s = taeda.batch_norm_gather_stats_with_counts(
        parts[0], means, stds, *ours, 0.3, 1e-5, counts
    )
    outputs = [taeda.batch_norm_elemt(p, w, b, m, s, 1e-5) for p in parts]
    sums = [
        taeda.batch_norm_backward_reduce(g, p, m, s, w, True, True, True)
        for g, p in zip(grads, parts, strict=True)
    ]
    total, moment, of_weight, of_bias = (sum(c) for c in zip(*sums, strict=True))
    inner = [
        taeda.batch_norm_backward_elemt(g, p, m, s, w, total, moment, counts)
        for g, p in zip(grads, parts, strict=True)
    ]
    pairs = (
        (taeda.cat(outputs), y),
        (ours[0], mean),
        (ours[1], var),
        (taeda.cat(inner), whole[0].grad),
        (of_weight, whole[1].grad),
        (of_bias, whole[2].grad),
    )
    for got, want in pairs:
        numpy.testing.assert_allclose(
            got.numpy(), want.detach().numpy(), rtol=1e-10, atol=1e-12
        )
    even = taeda.batch_norm_gather_stats(
        parts[0], means, means * 0 + 1, None, None, 0.1, 0.0, 5
    )
    numpy.testing.assert_allclose(even[0].numpy(), means.mean(0).numpy())


def test_copies_of_sparse_parts() -> None:
    x = numpy.eye(3, dtype="float32")
    names = {
        "to_sparse_csr": ("crow_indices", "col_indices", "values"),
        "to_sparse_csc": ("ccol_indices", "row_indices", "values"),
    }
    for convert, parts in names.items():
        for part in parts:
            results = []
            for t in (taeda, torch):
                sparse = getattr(t.from_numpy(x), convert)()
                out = t.empty(0, dtype=getattr(sparse, part)().dtype)
                copy = getattr(t, f"{part}_copy")
                results.append((copy(sparse).numpy(), copy(sparse, out=out).numpy()))
            for got, want in zip(*results, strict=True):
                assert got.dtype == want.dtype and (got == want).all()
    for t in (taeda, torch):
        with pytest.raises(RuntimeError, match="layout"):
            t.crow_indices_copy(t.ones(2))


def test_sizes_after_another_sparse_tensor() -> None:
    for t in (taeda, torch):
        x, template = t.zeros(1, 1).to_sparse(), t.ones(2, 3)
        assert t.resize_as_sparse_(x, template.to_sparse()) is x
        assert tuple(x.shape) == (2, 3) and x.sparse_dim() == 2
        other = t.zeros(1, 1).to_sparse().resize_as_sparse_(template)
        assert other.sparse_dim() == 0 and tuple(other.shape) == (2, 3)
        with pytest.raises(RuntimeError):
            t.zeros(2, 2).resize_as_sparse_(template.to_sparse())
