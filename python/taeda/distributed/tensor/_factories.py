"""New distributed tensors."""

from __future__ import annotations

import taeda

from ..device_mesh import DeviceMesh
from ._api import DTensor, _entered_mesh, like_contiguous
from ._dtensor_spec import DTensorSpec
from ._layout import local_shape, normalized
from ._random import agreed_numbers, part_of
from .placement_types import Replicate

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _made(
    make, size, dtype, layout, requires_grad, device_mesh, placements, is_drawn=False
):
    mesh: DeviceMesh = device_mesh or _entered_mesh()
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    if layout is not taeda.strided:
        raise AssertionError("layout value not supported!")
    given = [Replicate()] * mesh.ndim if placements is None else placements
    if len(given) != mesh.ndim:
        raise ValueError(
            f"placements: expected {mesh.ndim}, one for each dimension of the mesh, "
            f"got {given}"
        )
    placed = normalized(given, len(size))
    dtype = taeda.get_default_dtype() if dtype is None else dtype
    spec = DTensorSpec(mesh, placed, like_contiguous(tuple(size), dtype))
    if mesh.get_coordinate() is None:
        local = taeda.empty(0, dtype=dtype)
    elif is_drawn:
        # See Note [Random numbers of distributed tensors].
        with agreed_numbers(mesh):
            local = part_of(make(tuple(size), dtype), spec)
    else:
        local = make(local_shape(spec), dtype)
    return DTensor(local, spec, requires_grad=requires_grad)


def zeros(
    *size,
    requires_grad: bool = False,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """A tensor of zeros.

    Args:
        size: the whole tensor's sizes, as integers or one sequence.
        requires_grad: whether autograd records what is done to it.
        dtype: by default the default dtype.
        layout: `taeda.strided`.
        device_mesh: the ranks; by default the mesh that was entered by `with`.
        placements: one for each dimension of the mesh; by default replicas.
    """
    return _made(
        lambda shape, kind: taeda.zeros(shape, dtype=kind),
        size,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
    )


def ones(
    *size,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """A tensor of ones; arguments as those of `zeros`."""
    return _made(
        lambda shape, kind: taeda.ones(shape, dtype=kind),
        size,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
    )


def empty(
    *size,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """A tensor of any values; arguments as those of `zeros`."""
    return _made(
        lambda shape, kind: taeda.empty(shape, dtype=kind),
        size,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
    )


def full(
    size,
    fill_value,
    *,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """A tensor of one value; other arguments as those of `zeros`.

    Args:
        size: the whole tensor's sizes.
        fill_value: a number.
    """
    if dtype is None:
        dtype = taeda.full((), fill_value).dtype
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return _made(
        lambda shape, kind: taeda.full(shape, fill_value, dtype=kind),
        (sizes,),
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
    )


def rand(
    *size,
    requires_grad: bool = False,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """Numbers drawn evenly from [0, 1), the same as in one process.

    Arguments as those of `zeros`.
    """
    return _made(
        lambda shape, kind: taeda.rand(shape, dtype=kind),
        size,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
        is_drawn=True,
    )


def randn(
    *size,
    dtype: taeda.dtype | None = None,
    layout: taeda.layout = taeda.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements=None,
) -> DTensor:
    """Normal numbers, the same as in one process; arguments as those of `zeros`."""
    return _made(
        lambda shape, kind: taeda.randn(shape, dtype=kind),
        size,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
        is_drawn=True,
    )
