"""Distances between all rows, and maps of two inputs."""

from __future__ import annotations

import math

import pytest
import taeda

ORDERS = [0, 0.5, 1, 1.5, 2, 3, math.inf]


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(
    "shapes", [((4, 3), (5, 3)), ((2, 1, 4, 3), (3, 5, 3))], ids=str
)
def test_cdist(same, values, p, shapes):
    def program(T, a, b):
        return T.cdist(a, b, p)

    same(program, values(*shapes[0]), values(*shapes[1], seed=1))


@pytest.mark.parametrize("p", ORDERS)
def test_pdist(same, values, p):
    same(lambda T, a: T.pdist(a, p), values(5, 3))


def test_equal_rows_have_no_slope(same, values):
    rows = values(1, 3).repeat(3, axis=0)
    same(lambda T, a: T.pdist(a), rows)
    same(lambda T, a: T.cdist(a, a.detach()), rows)


def test_bilinear(same, values):
    def program(T, a, b, weight, bias):
        return T.nn.functional.bilinear(a, b, weight, bias)

    same(program, values(2, 4, 3), values(2, 4, 5), values(6, 3, 5), values(6))


def test_conv_tbc(same, values):
    def program(T, x, weight, bias):
        return T.conv_tbc(x, weight, bias, 1)

    same(program, values(7, 2, 3), values(3, 3, 4), values(4))


def test_errors():
    x = taeda.ones(2, 3)
    with pytest.raises(RuntimeError, match="same number of columns. X1: 3 X2: 2"):
        taeda.cdist(x, taeda.ones(2, 2))
    with pytest.raises(RuntimeError, match="non-negative p"):
        taeda.pdist(x, -1)
    with pytest.raises(RuntimeError, match="input1 size does not match weight"):
        taeda.bilinear(x, x, taeda.ones(1, 2, 3))


def test_the_kernel_refuses_rows_of_other_batches():
    with pytest.raises(RuntimeError, match=r"_cdist_forward: .*\[4, 5\].*\[2, 3, 5\]"):
        taeda.ops.aten._cdist_forward(taeda.ones(4, 5), taeda.ones(2, 3, 5), 2.0, None)


# Not 0.5: its slopes are so large that sums of 45 cancel to few digits.
@pytest.mark.parametrize("p", [0, 1, 1.5, 2, 3, math.inf])
@pytest.mark.parametrize("width", [1, 16, 37])
def test_rows_that_fill_vectors(same, values, p, width):
    """Whole and partial panels of rows, of pairs and of two matrices."""
    a, b = values(45, width), values(2, 27, width, seed=1)
    same(lambda T, a, b: T.cdist(a, b, p), a, b)
    same(lambda T, a: T.pdist(a, p), a)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_products_keep_what_they_can_not_hold(mode):
    """|a|^2 + |b|^2 - 2 ab has no digits left for near rows, and no value for far
    ones: both are computed from their differences."""
    how = ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist"]
    how.append("donot_use_mm_for_euclid_dist")
    rows = 100 + taeda.randn(40, 48, generator=taeda.Generator().manual_seed(1))
    near = rows + 1e-3
    found = taeda.cdist(rows, near, compute_mode=how[mode])
    wanted = (rows.double()[:, None] - near.double()).square().sum(-1).sqrt()
    assert (found.double() - wanted).abs().max().item() < 1e-5
    assert taeda.cdist(rows, rows, compute_mode=how[mode]).diagonal().eq(0).all()
    far = taeda.full((26, 48), 2e19)
    far[:, 1:] = 0
    assert taeda.cdist(far, far, compute_mode=how[mode]).eq(0).all()
    far[0] = math.inf
    assert taeda.cdist(far, far[1:], compute_mode=how[mode])[0].isinf().all()


@pytest.mark.parametrize("kinds", [("int8", "float32"), ("float64", "bool")], ids=str)
def test_cosine_of_whole_numbers(kinds):
    a, b = (taeda.ones(3, dtype=getattr(taeda, kind)) for kind in kinds)
    found = taeda.nn.functional.cosine_similarity(a, b, dim=0)
    assert found.dtype == taeda.result_type(a, b) and abs(found.item() - 1) < 1e-6
