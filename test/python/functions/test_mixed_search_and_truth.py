"""Searches across dtypes and truth values along no dims, as PyTorch 2.13 has them."""

from __future__ import annotations

import pytest
import taeda
import torch

SEARCHES = [
    ([1.5, 3.7], "float32", [1, 2, 3], "int64"),
    ([2**24 + 1], "int64", [2.0**24], "float32"),
    ([1.00001], "float64", [1.0], "float16"),
    ([1, 3], "int32", [1.0, 2.0], "float64"),
    (300.5, "float32", [1, 2, 100], "int8"),
]


@pytest.mark.parametrize(("values", "dtype", "bounds", "of"), SEARCHES)
@pytest.mark.parametrize("right", [False, True])
def test_values_of_another_dtype_are_searched_in_the_common_one(
    values, dtype, bounds, of, right
):
    def found(lib):
        value = lib.tensor(values, dtype=getattr(lib, dtype))
        bound = lib.tensor(bounds, dtype=getattr(lib, of))
        first = lib.bucketize(value, bound, right=right)
        return first.tolist(), lib.searchsorted(bound, value, right=right).tolist()

    assert found(taeda) == found(torch)


@pytest.mark.parametrize("value", [1.5, 2.5, 2, 300])
@pytest.mark.parametrize("of", ["int8", "int64", "float32"])
def test_numbers_are_searched_as_what_they_are(value, of):
    def found(lib):
        return lib.bucketize(value, lib.tensor([1, 2, 100], dtype=getattr(lib, of)))

    assert found(taeda).item() == found(torch).item()


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_truth_along_no_dims_is_that_of_each_element(name, shape, dtype, keepdim):
    def result(lib, device="cpu"):
        x = lib.ones(shape, dtype=getattr(lib, dtype), device=device)
        x = lib.tril(x) if len(shape) == 2 else x
        return getattr(lib, name)(x, dim=[], keepdim=keepdim)

    ours, theirs = result(taeda), result(torch)
    assert ours.tolist() == theirs.tolist()
    assert str(ours.dtype)[6:] == str(theirs.dtype)[6:]
    assert result(taeda, "meta").shape == theirs.shape


def test_truth_along_no_dims_of_symbolic_sizes():
    class Each(taeda.nn.Module):
        def forward(self, x):
            return taeda.all(x, dim=[])

    rows = {"x": {0: taeda.export.Dim("rows")}}
    program = taeda.export.export(Each(), (taeda.ones(2, 3),), dynamic_shapes=rows)
    assert program.module()(taeda.zeros(4, 3)).tolist() == [[False] * 3] * 4


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_truth_along_no_dims_of_a_batch(shape):
    def each(x):
        return taeda.any(x, dim=[])

    assert taeda.vmap(each)(taeda.ones(shape)).shape == shape


def test_compiled_truth_along_no_dims():
    compiled = taeda.compile(lambda x: taeda.all(x > 0, dim=[]))
    for _ in range(3):
        assert compiled(taeda.ones(2, 2)).tolist() == [[True, True], [True, True]]
    kernel = taeda.compile(
        lambda x: taeda.any(x > 0, dim=[]) & (x < 2), options={"blocking": True}
    )
    x = taeda.randn(33, 40)
    assert taeda.equal(kernel(x), (x > 0) & (x < 2))


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("options", [{}, {"dim": 0}, {"dim": (0, 1)}, {"dim": []}])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_truth_is_written_into_bools_and_bytes_alone(name, options, dtype):
    def written(lib, out):
        x = lib.tensor([[1, 0], [2, 3]], dtype=getattr(lib, dtype))
        out = lib.empty(0, dtype=getattr(lib, out))
        return getattr(lib, name)(x, out=out, **options)

    for out in ("bool", "uint8"):
        ours, theirs = written(taeda, out), written(torch, out)
        assert ours.tolist() == theirs.tolist()
        assert str(ours.dtype)[6:] == str(theirs.dtype)[6:]
    for out in ("float32", "int64", "int8"):
        with pytest.raises(RuntimeError, match=f"{name} only supports bool"):
            written(taeda, out)
