"""The functions of `taeda.masked`, each against PyTorch's on the same numbers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import taeda
import torch
import torch.masked

DTYPES = "float32 float64 int32 int64 uint8 bool complex64".split()
REDUCTIONS = "sum prod amax amin mean var std norm logsumexp argmax argmin median"
ALONG = "cumsum cumprod softmax log_softmax softmin normalize"
MASKS = {
    "none": None,
    "full": [[True, False, True, True], [True, True, False, True], [False] * 4],
    "row": [True, False, True, True],
}


WIDER = {(n, "bool") for n in ("argmax", "argmin", "cumsum", "cumprod")}
WIDER.add(("norm", "complex64"))


def sample(dtype: str) -> np.ndarray:
    numbers = np.arange(12).reshape(3, 4) * 7 % 11
    signed = numbers - (0 if dtype in ("uint8", "bool") else 5)
    return (signed % 2 if dtype == "bool" else signed).astype(dtype)


def cells() -> list:
    found = []
    for dtype in DTYPES:
        for mask in MASKS:
            for name in REDUCTIONS.split():
                whole = () if name == "median" else ({"dim": None}, {"dim": ()})
                dims = (*whole, {"dim": 1}, {"dim": 0, "keepdim": True})
                orders = (2.0, -np.inf, 1.0) if name == "norm" else (None,)
                found += [(name, dtype, mask, d, o) for d in dims for o in orders]
            orders = {"normalize": 2.0}
            found += [
                (name, dtype, mask, {"dim": d}, orders.get(name))
                for name in ALONG.split()
                for d in (0, -1)
            ]
    return found


def outcome(lib, cell):
    name, dtype, mask, options, order = cell
    x = lib.from_numpy(sample(dtype))
    given = dict(options)
    if order is not None:
        given["ord"] = order
    if MASKS[mask] is not None:
        given["mask"] = lib.tensor(MASKS[mask])
    try:
        return getattr(lib.masked, name)(x, **given)
    except Exception as error:
        return error


def test_every_cell_agrees_with_pytorch():
    listed = cells()
    assert len(listed) == 1386
    agreed, raised, wrong = 0, 0, []
    for cell in listed:
        want, got = outcome(torch, cell), outcome(taeda, cell)
        if isinstance(want, Exception):
            raised += 1
            # Places and scans of bool are a result here and refused there.
            fine = isinstance(got, Exception) or cell[:2] in WIDER
        elif isinstance(got, Exception):
            fine = False
        else:
            fine = str(got.dtype).partition(".")[2] == str(want.dtype).partition(".")[2]
            fine = fine and np.allclose(
                got.numpy(), want.numpy(), 1e-5, 1e-5, equal_nan=True
            )
        agreed += fine
        if not fine:
            wrong.append((cell, got, want))
    assert not wrong, (len(wrong), wrong[:4])
    assert (agreed, agreed - raised > 700) == (len(listed), True)


@pytest.mark.parametrize("name", [*REDUCTIONS.split(), *ALONG.split()])
def test_gradients_pass_by_masked_elements(name):
    if name in ("argmax", "argmin"):
        return
    found = []
    for lib in (torch, taeda):
        x = lib.from_numpy(sample("float64") + 0.25).requires_grad_()
        given = {"ord": 2.0} if name == "normalize" else {}
        mask = lib.tensor(MASKS["row"])
        out = getattr(lib.masked, name)(x, dim=1, mask=mask, **given)
        weights = lib.linspace(1, 2, out.numel(), dtype=lib.float64)
        out = lib.where(out.isfinite(), out, 0.0)
        (out.flatten() * weights).sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-9, 1e-9)


def test_signatures_are_pytorchs():
    names = [*REDUCTIONS.split(), *ALONG.split(), "logaddexp"]
    for name in names:
        ours, theirs = (
            [
                (p.name, p.kind, p.default)
                for p in inspect.signature(
                    getattr(lib.masked, name)
                ).parameters.values()
            ]
            for lib in (taeda, torch)
        )
        assert ours == theirs, name
    assert len(names) == 19


def test_logaddexp_leaves_out_what_either_mask_says():
    a, b = [-1.0, -2.0, 3.0], [0.0, -1.0, 2.0]
    first, second = [True, False, True], [True, True, False]
    want, got = (
        lib.masked.logaddexp(
            lib.tensor(a),
            lib.tensor(b),
            input_mask=lib.tensor(first),
            other_mask=lib.tensor(second),
        )
        for lib in (torch, taeda)
    )
    np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-6)


def test_refusals():
    x = taeda.ones(3)
    with pytest.raises(IndexError, match="dimensionality higher than of the input"):
        taeda.masked.sum(x, mask=taeda.ones(2, 3, dtype=taeda.bool))
    with pytest.raises(NotImplementedError, match="identity of amax on"):
        taeda.masked.amax(x.bool(), mask=x.bool())
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        taeda.masked.mean(x.long())
    with pytest.raises(RuntimeError, match="appears multiple times"):
        taeda.masked.sum(x, (0, 0))
    with pytest.raises(IndexError, match="out of range"):
        taeda.masked.sum(x, 1)
    with pytest.raises(ValueError, match="no fully masked out rows"):
        taeda.masked.median(x.long(), mask=taeda.zeros(3, dtype=taeda.bool))


def test_products_of_no_dims_are_the_elements():
    x, mask = taeda.arange(4.0).reshape(2, 2), taeda.tensor([True, False])
    out = taeda.masked.prod(x, dim=[], mask=mask)
    assert out.tolist() == [[0, 1], [2, 1]]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "median", "softmax"])
def test_functions_along_a_dim_need_one(name):
    with pytest.raises(IndexError):
        getattr(taeda.masked, name)(taeda.ones(2, 2), dim=[])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64"])
def test_identities_and_masks_by_private_names(dtype):
    def identities(lib):
        x = lib.ones(2, dtype=getattr(lib, dtype))
        for (
            name
        ) in "masked.sum cumprod amin argmax logsumexp norm mean std median".split():
            try:
                found = lib.masked._reduction_identity(name, x)
            except (NotImplementedError, TypeError):
                found = "none"
            yield found if found in (None, "none") else (found.item(), found.dtype)

    ours, theirs = (repr([*identities(lib)])[1:-1] for lib in (taeda, torch))
    assert ours == theirs.replace("torch", "taeda")


def test_masks_of_results_by_private_names():
    def masks(lib):
        x, mask = lib.ones(2, 3), lib.tensor([True, False, False])
        m, find = lib.masked, lib.masked._output_mask
        yield find(m.sum, x, mask=mask)
        yield find(m.norm, x, 2, 1, mask=mask)
        yield find(m.var, x, dim=(0, -1), keepdim=True, mask=mask)
        yield find(m.softmax, x, dim=1, mask=mask)
        yield m._input_mask(x, mask=mask)

    ours, theirs = ([t.tolist() for t in masks(lib)] for lib in (taeda, torch))
    assert ours == theirs
    assert taeda.masked._canonical_dim((1, -2), 2) == (0, 1)
