"""broadcast_shapes and complex views beside PyTorch's."""

from __future__ import annotations

import pytest
import taeda
import torch

SHAPES = [
    (),
    ((2, 1), (3,)),
    ((0, 1), (1, 4), [5, 1, 1]),
    (3, (2, 1)),
    ((),),
    ((3, 5), (2, 4, 1)),
    ((2, 1), (3,), (2, 5)),
    ((0,), (4,)),
    ((1, -12), (4,)),
    (1.5, 2),
    ((1.5, 2.0),),
]


def told(function, *arguments):
    try:
        return tuple(function(*arguments))
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes_and_errors(shapes) -> None:
    ours = told(taeda.broadcast_shapes, *shapes)
    theirs = told(torch.broadcast_shapes, *shapes)
    if theirs and theirs[0] in ("TypeError", "ValueError"):
        # The one names the constructor that it called; ours adds the size.
        assert ours[0] == theirs[0]
        assert theirs[0] == "TypeError" or theirs[1] in ours[1]
    else:
        assert ours == theirs


def test_dims_of_one_element_may_have_any_stride_in_complex_views() -> None:
    sizes, strides = (336, 1, 2), (2, 1, 1)
    views = [
        m.view_as_complex(m.arange(672.0).as_strided(sizes, strides))
        for m in (taeda, torch)
    ]
    assert views[0].stride() == views[1].stride()
    assert views[0].tolist() == views[1].tolist()
    with pytest.raises(RuntimeError, match="stride divisible by 2"):
        taeda.view_as_complex(taeda.ones(9).as_strided((3, 2, 2), (3, 1, 1)))


def test_drawn_complex_tensors_are_no_views() -> None:
    made = taeda.testing.make_tensor((3, 2), dtype=taeda.complex64, device="cpu")
    assert not made._is_view()
