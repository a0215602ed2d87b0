"""Products into tensors that the caller gives."""

from __future__ import annotations

import pytest
import taeda


@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_vector_by_matrix_restrides_out(torch, name):
    """A vector is computed as one row, and `out` takes that row's strides."""
    strides = []
    for T in (torch, taeda):
        out = T.zeros(8)[::2]
        if name == "matmul":
            T.matmul(T.ones(3), T.ones(3, 4), out=out)
        else:
            T._C._nn.linear(T.ones(3), T.ones(4, 3), out=out)
        assert out.tolist() == [3.0] * 4
        strides.append(out.stride())
    assert strides[0] == strides[1]
