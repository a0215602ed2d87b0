"""Functions over natives whose arguments need work in Python first."""

from __future__ import annotations

from math import prod

import taeda
from taeda import _C
from taeda import Tensor as Tensor  # programs name it in annotations
from taeda._C import _has_torch_function as _overrides_in
from taeda._C import _has_torch_function_unary as _overrides

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "nonzero",
    "norm",
    "split",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]


def _native(name: str):
    for space in (_C._VariableFunctions, _C._linalg, _C._nn):
        found = getattr(space, name, None)
        if found is not None:
            return found
    raise NotImplementedError(f"the operator {name} does not exist yet")


def _override(function, tensors, *args, **kwargs):
    from taeda.overrides import handle_torch_function

    return handle_torch_function(function, tensors, *args, **kwargs)


def _as_list(tensors) -> tuple:
    """f(a, b) and f([a, b]) mean the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(tensors[0])
    return tuple(tensors)


def _of_list(name: str, doc: str):
    def function(*tensors):
        listed = _as_list(tensors)
        if _overrides_in(listed):
            return _override(function, listed, *tensors)
        if name.startswith("atleast") and len(listed) == 1 and listed[0] is tensors[0]:
            return _native(name)(listed[0])
        return _native(name)(listed)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


broadcast_tensors = _of_list(
    "broadcast_tensors", "All tensors expanded to the shape they broadcast to."
)
atleast_1d = _of_list("atleast_1d", "Each 0-d tensor as one of shape [1].")
atleast_2d = _of_list("atleast_2d", "Each tensor with at least two dims.")
atleast_3d = _of_list("atleast_3d", "Each tensor with at least three dims.")
block_diag = _of_list("block_diag", "A matrix with the given ones on its diagonal.")
cartesian_prod = _of_list(
    "cartesian_prod", "Every combination of elements of 1-D tensors, one a row."
)


def chain_matmul(*matrices, out=None):
    """The product of matrices, multiplied in the cheapest order.

    Args:
        matrices (Tensors): two or more, or one sequence of them.
        out (Tensor): gets the product, if given.
    """
    listed = _as_list(matrices)
    options = {} if out is None else {"out": out}
    if _overrides_in(listed):
        return _override(chain_matmul, listed, *matrices, **options)
    return _native("chain_matmul")(listed, **options)


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    Args:
        shapes: sequences of ints, or single ints for one dim.

    Raises:
        RuntimeError: the shapes do not broadcast, or are none.
        ValueError: a size is negative.

    Example:
        >>> taeda.broadcast_shapes((2, 1), (3,))
        taeda.Size([2, 3])
    """
    listed = []
    for shape in shapes:
        sizes = (shape,) if isinstance(shape, (int, taeda.SymInt)) else shape
        if not isinstance(sizes, (tuple, list)):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of "
                f"ints, got {shape}"
            )
        for size in sizes:
            if not isinstance(size, (int, taeda.SymInt)):
                raise TypeError(f"broadcast_shapes: expected ints, got {size!r}")
        listed.append(tuple(sizes))
    result = [1] * max(map(len, listed), default=0)
    for index, shape in enumerate(listed):
        for dim in range(-1, -len(shape) - 1, -1):
            size = shape[dim]
            if size < 0:
                raise ValueError(
                    "Attempting to broadcast a dimension with negative length! "
                    f"broadcast_shapes: {size} in {shape}"
                )
            if size != 1 and result[dim] not in (1, size):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {dim}! "
                    f"Mismatching argument at index {index} had {shape}; but "
                    f"expected shape should be broadcastable to {result}"
                )
            if size != 1:
                result[dim] = size
    return _C.Size(result)


def einsum(*args):
    """Sums of products of elements, written in Einstein's notation.

    Args:
        args: an equation such as "ij,jk->ik" and the tensors; or tensors and lists of
            dim numbers in turn, and a list for the result. Three tensors and more are
            multiplied in the order that `backends.opt_einsum` finds.

    Example:
        >>> taeda.einsum("i,i->", taeda.ones(3), taeda.ones(3))
        tensor(3.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            f"but got {len(args)} argument(s)"
        )
    if isinstance(args[0], str) or all(_overrides_in((each,)) for each in args[:2]):
        equation, operands = args[0], _as_list(args[1:])
    else:
        equation, operands = _equation_of(args)
    if len(operands) == 0:
        raise ValueError("einsum(): must specify at least one operand, got none")
    if _overrides_in(operands):
        return _override(einsum, operands, equation, *operands)
    path = None
    if len(operands) > 2:
        from taeda.backends.opt_einsum import path_of

        path = path_of(equation, operands)
    return _native("einsum")(equation, operands, path=path)


def _letter(number) -> str:
    if number is Ellipsis:
        return "..."
    if 0 <= number < 26:
        return chr(ord("A") + number)
    if 26 <= number < 52:
        return chr(ord("a") + number - 26)
    raise ValueError(
        f"einsum(): subscript in subscript list is not within the valid range [0, 52), "
        f"got {number}"
    )


def _equation_of(args) -> tuple[str, tuple]:
    operands, lists = args[0:-1:2], args[1::2]
    if len(args) % 2 == 0:
        operands = args[0::2]
    equation = ",".join("".join(map(_letter, part)) for part in lists)
    if len(args) % 2 == 1:
        operands = args[0:-1:2]
        equation += "->" + "".join(map(_letter, args[-1]))
    return equation, tuple(operands)


def meshgrid(*tensors, indexing: str | None = None):
    """Grids of coordinates given by 1-D tensors.

    Args:
        tensors: 1-D or 0-d tensors of one dtype.
        indexing: "ij" (rows first, the default) or "xy".

    Returns:
        One grid per tensor.

    Example:
        >>> x, y = taeda.meshgrid(taeda.arange(2), taeda.arange(3), indexing="ij")
        >>> x
        tensor([[0, 0, 0],
                [1, 1, 1]])
    """
    listed = _as_list(tensors)
    if _overrides_in(listed):
        return _override(meshgrid, listed, *tensors, indexing=indexing)
    if indexing is None:
        import warnings

        warnings.warn(
            "meshgrid: pass indexing='ij' (what is meant now) or 'xy'; it will be "
            "required in an upcoming release",
            stacklevel=2,
        )
    options = {} if indexing is None else {"indexing": indexing}
    return _native("meshgrid")(listed, **options)


def _last_and_first(a, b, count: int):
    """The last `count` dims of one tensor and the first of another."""
    least = min(a.dim(), b.dim())
    if 0 <= count <= least:
        return range(-count, 0), range(count)
    wanted = "dims >= 0" if count < 0 else "dims < ndim_a or ndim_b"
    raise RuntimeError(
        f"tensordot expects {wanted}, but got dims={count} for tensors with {a.dim()} "
        f"and {b.dim()} dims"
    )


def tensordot(a, b, dims=2, out=None):
    """Sums products over several dims of two tensors.

    Args:
        a, b (Tensor): the factors.
        dims: how many of a's last and b's first dims, or two lists of dims.

    Example:
        >>> taeda.tensordot(taeda.ones(2, 3), taeda.ones(3, 4), dims=1).shape
        taeda.Size([2, 4])
    """
    if _overrides_in((a, b)):
        return _override(tensordot, (a, b), a, b, dims=dims, out=out)
    if isinstance(dims, taeda.Tensor):
        dims = int(dims) if dims.numel() == 1 else dims.tolist()
    pair = _last_and_first(a, b, dims) if isinstance(dims, int) else dims
    dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in pair)
    options = {} if out is None else {"out": out}
    return _native("tensordot")(a, b, dims_a, dims_b, **options)


def split(tensor, split_size_or_sections, dim: int = 0):
    """Views of parts of a tensor along a dim.

    Args:
        tensor (Tensor): what is split.
        split_size_or_sections: size of each part (the last may be smaller), or the
            list of sizes.
        dim: along which.

    Example:
        >>> taeda.split(taeda.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if _overrides(tensor):
        return _override(split, (tensor,), tensor, split_size_or_sections, dim=dim)
    return tensor.split(split_size_or_sections, dim)


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances between all rows of two batches of vectors.

    Args:
        x1 (Tensor): shape [..., P, M]. x2 (Tensor): shape [..., R, M].
        p: the norm. compute_mode: whether Euclidean distances may use a product.

    Example:
        >>> taeda.cdist(taeda.zeros(1, 2), taeda.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    if _overrides_in((x1, x2)):
        return _override(cdist, (x1, x2), x1, x2, p=p, compute_mode=compute_mode)
    modes = {
        "use_mm_for_euclid_dist_if_necessary": None,
        "use_mm_for_euclid_dist": 1,
        "donot_use_mm_for_euclid_dist": 2,
    }
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _native("cdist")(x1, x2, p, modes[compute_mode])


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of a vector, of a matrix, or of all elements.

    Args:
        input (Tensor): floating or complex.
        p: a number, "fro" or "nuc".
        dim: one or two dims; all elements if None.
        keepdim: whether reduced dims stay with size 1.

    Example:
        >>> taeda.norm(taeda.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if _overrides(input):
        return _override(
            norm, (input,), input, p=p, dim=dim, keepdim=keepdim, out=out, dtype=dtype
        )
    options = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if p == "nuc":
        pair = (-2, -1) if dims is None else tuple(dims)
        return _native("linalg_matrix_norm")(input, "nuc", pair, keepdim, **options)
    order = 2.0 if p in ("fro", None) else p
    return _native("linalg_vector_norm")(input, order, dims, keepdim, **options)


def nonzero(input, *, out=None, as_tuple=False):
    """The positions of the elements that are not 0.

    Args:
        input (Tensor): any dtype and shape.
        out (Tensor): where the positions go; not together with `as_tuple`.
        as_tuple: whether positions come as one tensor per dim.

    Returns:
        A tensor [count, dim], or with `as_tuple` a tuple of tensors [count].

    Example:
        >>> taeda.nonzero(taeda.tensor([0, 3, 5]))
        tensor([[1],
                [2]])
    """
    if _overrides(input):
        return _override(nonzero, (input,), input, out=out, as_tuple=as_tuple)
    if not as_tuple:
        return _native("nonzero")(input, out=out)
    if out is not None:
        if not isinstance(out, taeda.Tensor):
            kind = type(out).__name__
            raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {kind}")
        raise RuntimeError("nonzero: out is not taken together with as_tuple=True")
    # A number has one place, as an array of one element.
    places = _native("nonzero")(input if input.ndim else input.unsqueeze(0))
    return places.unbind(1)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements of a tensor, or distinct slices along a dim.

    Args:
        input (Tensor): any dtype.
        sorted: whether the result is sorted (it always is here).
        return_inverse: also return where each element went.
        return_counts: also return how often each occurs.
        dim: along which slices are compared; all elements if None.

    Returns:
        The values, or a tuple with what was asked for.

    Example:
        >>> taeda.unique(taeda.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    if _overrides(input):
        return _override(
            unique,
            (input,),
            input,
            sorted=sorted,
            return_inverse=return_inverse,
            return_counts=return_counts,
            dim=dim,
        )
    if dim is None:
        found = _native("_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _native("unique_dim")(input, dim, sorted, return_inverse, return_counts)
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """One element of each run of equal ones.

    Args:
        input (Tensor): any dtype.
        return_inverse: also return which run each element is in.
        return_counts: also return the lengths of the runs.
        dim: along which slices are compared; all elements if None.

    Example:
        >>> taeda.unique_consecutive(taeda.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    if _overrides(input):
        return _override(
            unique_consecutive,
            (input,),
            input,
            return_inverse=return_inverse,
            return_counts=return_counts,
            dim=dim,
        )
    found = _native("unique_consecutive")(input, return_inverse, return_counts, dim)
    return _asked(found, return_inverse, return_counts)


def _asked(found, inverse: bool, counts: bool):
    parts = [found[0]]
    if inverse:
        parts.append(found[1])
    if counts:
        parts.append(found[2])
    return parts[0] if len(parts) == 1 else tuple(parts)


def unravel_index(indices, shape):
    """The coordinates that flat indices into a shape stand for.

    Args:
        indices (Tensor): integers.
        shape: an int or a sequence of ints.

    Returns:
        One tensor of coordinates per dim.
    """
    if indices.is_floating_point() or indices.is_complex():
        raise TypeError(
            "unravel_index: expected 'indices' to be integer dtype, but got "
            f"{indices.dtype}"
        )
    if not isinstance(shape, (int, taeda.SymInt, list, tuple)):
        raise TypeError(
            "unravel_index: expected 'shape' to be int or sequence of ints, but got "
            f"{type(shape)}"
        )
    sizes = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    for size in sizes:
        if not isinstance(size, (int, taeda.SymInt)):
            raise TypeError(
                "unravel_index: expected 'shape' sequence to only contain ints, but "
                f"got {type(size)}"
            )
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    device = indices.device
    steps, sizes = (taeda.tensor(s, device=device) for s in (steps, sizes))
    return (indices.unsqueeze(-1) // steps % sizes).unbind(-1)


def stft(input, n_fft: int, *args, **kwargs):
    """The spectra of overlapping windows of a signal: `Tensor.stft`.

    Example:
        >>> x = taeda.ones(16)
        >>> w = taeda.hann_window(8)
        >>> taeda.stft(x, 8, window=w, return_complex=True).shape
        taeda.Size([5, 9])
    """
    return _native("stft")(input, n_fft, *args, **kwargs)


def istft(input, n_fft: int, *args, **kwargs):
    """The signal of overlapping spectra: `Tensor.istft`."""
    return _native("istft")(input, n_fft, *args, **kwargs)


def lu(A, pivot=True, get_infos=False, out=None):
    """The packed LU factorisation: (LU, pivots) and, if asked, the infos."""
    found = _native("_lu_with_info")(A, pivot)
    found = found if get_infos else (found[0], found[1])
    if out is None:
        return found
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"lu: out must be tuple or list, got {type(out).__name__}")
    if len(out) != len(found):
        raise TypeError(
            f"lu: expected tuple of {len(found)} elements but got {len(out)}"
        )
    for target, value in zip(out, found, strict=True):
        target.resize_as_(value).copy_(value)
    return out


def __getattr__(name: str):
    if name == "F":  # as PyTorch's module of this name imports it
        from taeda.nn import functional

        return functional
    from taeda._lazy import missing

    raise missing(__name__, name)
