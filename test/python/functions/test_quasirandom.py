"""Sobol sequences, against PyTorch's and NumPy's view of their evenness."""

from __future__ import annotations

import pytest
import taeda
import torch


def draws(library, dimension: int, scramble: bool, dtype: str):
    engine = library.quasirandom.SobolEngine(dimension, scramble, seed=7)
    dtype = getattr(library, dtype)
    yield engine.draw(1, dtype=dtype)
    yield engine.draw(6, dtype=dtype)
    yield engine.fast_forward(1000).draw(3, dtype=dtype)
    yield engine.quasi
    yield engine.reset().draw(5, dtype=dtype)
    yield engine.reset().fast_forward(4).draw(2, dtype=dtype)
    yield engine.reset().draw_base2(4, dtype=dtype)
    yield engine.draw_base2(4, out=library.empty(0, dtype=dtype), dtype=dtype)
    yield engine.sobolstate


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 13, 200])
def test_points_are_pytorchs(dimension, scramble, dtype) -> None:
    pairs = zip(
        draws(taeda, dimension, scramble, dtype),
        draws(torch, dimension, scramble, dtype),
        strict=True,
    )
    for ours, theirs in pairs:
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype)[6:]
        assert ours.tolist() == theirs.tolist()


def test_all_dimensions_that_are_there() -> None:
    ours = taeda.quasirandom.SobolEngine(1111)
    theirs = torch.quasirandom.SobolEngine(1111)
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    # Of 2^k points every one of 2^k equal intervals holds one, in each dimension.
    cells = (ours.draw(256, dtype=taeda.float64) * 256).to(taeda.int64).sort(0).values
    assert bool((cells == taeda.arange(256)[:, None]).all())


def test_scrambling_draws_from_the_librarys_generator() -> None:
    found = []
    for library in (taeda, torch):
        library.manual_seed(3)
        engine = library.quasirandom.SobolEngine(5, scramble=True)
        found.append((engine.draw(9).tolist(), repr(engine)))
    assert found[0] == found[1]


def test_refusals() -> None:
    for library in (taeda, torch):
        engine = library.quasirandom.SobolEngine(3, seed=1)
        assert repr(engine) == "SobolEngine(dimension=3, seed=1)"
        engine.draw(3)
        with pytest.raises(ValueError, match="power of 2"):
            engine.draw_base2(2)
        for dimension in (0, 21202):
            with pytest.raises(ValueError, match="Supported range of dimensionality"):
                library.quasirandom.SobolEngine(dimension)
    with pytest.raises(NotImplementedError, match="SobolEngine: dimension 1112"):
        taeda.quasirandom.SobolEngine(1112)
