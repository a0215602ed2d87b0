"""Orders of arguments from before keyword-only ones, which stubs tell, still work."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch

from tools.codegen.python_overloads import DEPRECATED
from tools.codegen.schema import parse_schema

pytestmark = pytest.mark.filterwarnings("ignore")
SHAPES = {"vec": (3,), "vec1": (3,), "vec2": (3,), "batch1": (2, 3, 3)}
SHAPES["batch2"] = SHAPES["batch1"]
CASES = [(name, order) for name, orders in DEPRECATED.items() for order in orders]


def arguments(library, name: str, order: str) -> list:
    rng = numpy.random.default_rng(0)
    found = []
    for argument in parse_schema(f"{name}({order}) -> Tensor").arguments:
        if not argument.type.is_tensor:
            found.append(2)
            continue
        shape = SHAPES.get(argument.name, (3, 3))
        if argument.name == "self" and name == "addmv":
            shape = (3,)
        values = library.from_numpy(rng.standard_normal(shape))
        sparse = name == "sspaddmm" and argument.name in ("self", "mat1")
        found.append(values.to_sparse() if sparse else values)
    return found


@pytest.mark.parametrize("name, order", CASES)
def test_results_are_those_of_the_reference(name, order) -> None:
    results = []
    for library in (taeda, torch):
        made = getattr(library, name)(*arguments(library, name, order))
        results.append((made.to_dense() if made.is_sparse else made).numpy())
    numpy.testing.assert_allclose(*results, rtol=1e-12)


def test_there_are_as_many_as_the_reference_has() -> None:
    assert len(CASES) == 16
