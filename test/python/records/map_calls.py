"""Random calls of index maps: sizes from 0, dims of both signs, by overload."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import taeda

Draw = Callable[[np.random.Generator], tuple]


def sizes(r: np.random.Generator, low: int, high: int, least: int = 0) -> list[int]:
    """As many sizes as a number from low to high."""
    return [int(r.integers(least, 5)) for _ in range(r.integers(low, high + 1))]


def real(r: np.random.Generator, shape: list[int]) -> np.ndarray:
    return np.asarray(r.uniform(-4, 4, size=shape))


def whole(r: np.random.Generator, high: int, shape: list[int]) -> np.ndarray:
    return np.asarray(r.integers(0, high, size=shape), dtype=np.int64)


def dim_of(r: np.random.Generator, rank: int) -> int:
    rank = max(rank, 1)
    return int(r.integers(-rank, rank))


def two_dims(r: np.random.Generator, rank: int) -> tuple[int, int]:
    first, second = (int(d) for d in r.permutation(rank)[:2])
    return first - rank * int(r.integers(2)), second - rank * int(r.integers(2))


def number(r: np.random.Generator) -> float | int:
    return float(r.uniform(-4, 4)) if r.integers(2) else int(r.integers(-4, 5))


# Values that are repeated ---------------------------------------------------------


def sized(r: np.random.Generator) -> tuple:
    return (sizes(r, 0, 3),)


def sized_number(r: np.random.Generator) -> tuple:
    return sizes(r, 0, 3), number(r)


def tensor(r: np.random.Generator) -> tuple:
    return (real(r, sizes(r, 0, 3)),)


def tensor_number(r: np.random.Generator) -> tuple:
    return *tensor(r), number(r)


def tensor_scalar(r: np.random.Generator) -> tuple:
    return *tensor(r), real(r, [])


def tensor_size(r: np.random.Generator) -> tuple:
    return *tensor(r), sizes(r, 0, 3)


def tensor_size_number(r: np.random.Generator) -> tuple:
    return *tensor_size(r), number(r)


def copied(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 3)
    source = [s if r.integers(3) else 1 for s in shape]
    return real(r, shape), real(r, source[int(r.integers(len(shape) + 1)) :])


def reshaped(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 4)
    return real(r, shape), [int(np.prod(shape, dtype=int))]


# Sequences ------------------------------------------------------------------------


def end(r: np.random.Generator) -> tuple:
    return (abs(number(r)),)


def bounds(r: np.random.Generator) -> tuple:
    start = number(r)
    return start, start + abs(number(r))


def steps(r: np.random.Generator) -> tuple:
    start, stop = bounds(r)
    step = int(r.integers(1, 4)) if r.integers(2) else float(r.uniform(1, 3))
    return (start, stop, step) if r.integers(2) else (stop, start, -step)


def space(left: bool, right: bool) -> Draw:
    def draw(r: np.random.Generator) -> tuple:
        a, b = r.uniform(-3, 3, size=2)
        first = np.asarray(a) if left else float(a)
        return first, np.asarray(b) if right else float(b), int(r.integers(0, 9))

    return draw


def powers(left: bool, right: bool) -> Draw:
    def draw(r: np.random.Generator) -> tuple:
        return *space(left, right)(r), float(r.uniform(1.5, 3))

    return draw


def window(extra: int) -> Draw:
    """A length, then as many of periodic, alpha or beta, beta."""

    def draw(r: np.random.Generator) -> tuple:
        more = (bool(r.integers(2)), *(float(x) for x in r.uniform(0.1, 5, size=2)))
        return int(r.integers(0, 12)), *more[:extra]

    return draw


# Reordered and padded -------------------------------------------------------------


def flipped(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 4)
    dims = [d - len(shape) * int(r.integers(2)) for d in range(len(shape))]
    return real(r, shape), [int(d) for d in r.permutation(dims)[: r.integers(5)]]


def rolled(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 3, least=1)
    if not r.integers(3):
        return real(r, shape), [int(r.integers(-9, 9))], []
    dims = [dim_of(r, len(shape)) for _ in range(r.integers(1, 4))]
    return real(r, shape), [int(r.integers(-9, 9)) for _ in dims], dims


def repeated(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 3)
    times = [int(r.integers(0, 4)) for _ in range(len(shape) + r.integers(2))]
    return real(r, shape), times


def padded(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=2)
    pairs = int(r.integers(1, len(shape) + 1))
    return real(r, shape), [int(p) for p in r.integers(-1, 3, size=2 * pairs)], 7


def triangle(r: np.random.Generator) -> tuple:
    return real(r, [*sizes(r, 0, 2), *sizes(r, 2, 2)]), int(r.integers(-4, 5))


def shuffled(r: np.random.Generator) -> tuple:
    by = int(r.integers(1, 4))
    depth, height, width = sizes(r, 3, 3, least=1)
    return real(r, [*sizes(r, 0, 2), depth * by * by, height, width]), by


def unshuffled(r: np.random.Generator) -> tuple:
    by = int(r.integers(1, 4))
    depth, height, width = sizes(r, 3, 3, least=1)
    return real(r, [*sizes(r, 0, 2), depth, height * by, width * by]), by


def columns(r: np.random.Generator) -> tuple:
    batch = [] if r.integers(2) else [2]
    pair = [[int(x) for x in r.integers(1, high, size=2)] for high in (4, 3, 3)]
    kernel, dilation, stride = pair
    padding = [int(x) for x in r.integers(0, 3, size=2)]
    image = [6 + int(x) for x in r.integers(3, size=2)]
    return real(r, [*batch, 2, *image]), kernel, dilation, padding, stride


# Parts of a tensor ----------------------------------------------------------------


def selected(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=1)
    dim = dim_of(r, len(shape))
    at = int(r.integers(-shape[dim], shape[dim]))
    part = [s for i, s in enumerate(shape) if i != dim % len(shape)]
    return shape, real(r, part), dim, at


def select_backward(r: np.random.Generator) -> tuple:
    shape, part, dim, at = selected(r)
    return part, shape, dim, at


def select_scatter(r: np.random.Generator) -> tuple:
    shape, part, dim, at = selected(r)
    return real(r, shape), part, dim, at


def sliced(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4)
    dim = dim_of(r, len(shape))
    start, stop = (int(x) for x in r.integers(-6, 7, size=2))
    step = int(r.integers(1, 4))
    part = shape.copy()
    part[dim] = len(range(*slice(start, stop, step).indices(shape[dim])))
    return shape, real(r, part), dim, start, stop, step


def slice_backward(r: np.random.Generator) -> tuple:
    shape, part, *rest = sliced(r)
    return part, shape, *rest


def slice_scatter(r: np.random.Generator) -> tuple:
    shape, part, dim, start, stop, step = sliced(r)
    if not r.integers(3):
        part, start, stop = real(r, shape), None, None
        step = 1
    return real(r, shape), part, dim, start, stop, step


def diagonal(r: np.random.Generator) -> tuple:
    shape = sizes(r, 2, 4, least=1)
    dim1, dim2 = two_dims(r, len(shape))
    offset = int(r.integers(1 - shape[dim1], shape[dim2]))
    part = np.diagonal(np.zeros(shape), offset, dim1, dim2).shape
    return shape, real(r, list(part)), offset, dim1, dim2


def diagonal_backward(r: np.random.Generator) -> tuple:
    shape, part, *rest = diagonal(r)
    return part, shape, *rest


def diagonal_scatter(r: np.random.Generator) -> tuple:
    shape, part, *rest = diagonal(r)
    return real(r, shape), part, *rest


def diag_embed(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 3)
    return real(r, shape), int(r.integers(-3, 4)), *two_dims(r, len(shape) + 1)


# Elements at given places ---------------------------------------------------------


def index_select(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=1)
    dim = dim_of(r, len(shape))
    return real(r, shape), dim, whole(r, shape[dim], [int(r.integers(0, 6))])


def gather(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 4, least=1)
    dim = dim_of(r, len(shape))
    index = [int(r.integers(0, s + 1)) for s in shape]
    if shape:
        index[dim] = int(r.integers(0, 6))
    return real(r, shape), dim, whole(r, shape[dim] if shape else 1, index)


def take(r: np.random.Generator) -> tuple:
    data = real(r, sizes(r, 0, 3, least=1))
    index = r.integers(-data.size, data.size, size=sizes(r, 0, 3))
    return data, np.asarray(index, dtype=np.int64)


def embedding(r: np.random.Generator) -> tuple:
    rows, width = sizes(r, 2, 2, least=1)
    return real(r, [rows, width]), whole(r, rows, sizes(r, 0, 3))


def chosen_back(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=1)
    dim, keep = dim_of(r, len(shape)), bool(r.integers(2))
    part = shape.copy()
    part[dim : dim + 1 or None] = [1] if keep else []
    return real(r, part), dim, whole(r, shape[dim], part), shape, keep


def square(r: np.random.Generator) -> tuple:
    return (int(r.integers(0, 5)),)


def rectangle(r: np.random.Generator) -> tuple:
    return int(r.integers(0, 5)), int(r.integers(0, 5))


# Views and other composites --------------------------------------------------------


def reshaped_as(r: np.random.Generator) -> tuple:
    data, shape = reshaped(r)
    return data, real(r, shape)


def flattened(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4)
    first, last = sorted(int(d) for d in r.integers(0, len(shape), size=2))
    return real(r, shape), first, last - len(shape) * int(r.integers(2))


def unflattened(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 3)
    dim, parts = dim_of(r, len(shape)), sizes(r, 2, 2, least=1)
    shape[dim] = parts[0] * parts[1]
    return real(r, shape), dim, parts


def expanded(r: np.random.Generator) -> tuple:
    into, source = copied(r)
    return source, list(into.shape)


def expanded_as(r: np.random.Generator) -> tuple:
    into, source = copied(r)
    return source, into


def swapped(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4)
    return real(r, shape), dim_of(r, len(shape)), dim_of(r, len(shape))


def matrix(r: np.random.Generator) -> tuple:
    return (real(r, sizes(r, 0, 2)),)


def unsqueezed(r: np.random.Generator) -> tuple:
    shape = sizes(r, 0, 3)
    return real(r, shape), dim_of(r, len(shape) + 1)


def squeezed(r: np.random.Generator) -> tuple:
    shape = [int(r.integers(1, 3)) for _ in range(r.integers(1, 5))]
    return real(r, shape), dim_of(r, len(shape))


def squeezed_dims(r: np.random.Generator) -> tuple:
    data, _ = squeezed(r)
    dims = r.permutation(data.ndim)[: r.integers(0, data.ndim + 1)]
    return data, [int(d) for d in dims]


def taken_diagonal(r: np.random.Generator) -> tuple:
    shape, _, offset, dim1, dim2 = diagonal(r)
    return real(r, shape), offset, dim1, dim2


def narrowed(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=1)
    dim = dim_of(r, len(shape))
    start = int(r.integers(0, shape[dim]))
    length = int(r.integers(0, shape[dim] - start + 1))
    return real(r, shape), dim, start - shape[dim] * int(r.integers(2)), length


def narrowed_at(r: np.random.Generator) -> tuple:
    data, dim, start, length = narrowed(r)
    return data, dim, np.asarray(start, dtype=np.int64), length


def plane(r: np.random.Generator) -> tuple:
    return (real(r, sizes(r, 2, 4)),)


def turned(r: np.random.Generator) -> tuple:
    shape = sizes(r, 2, 4)
    return real(r, shape), int(r.integers(-5, 6)), list(two_dims(r, len(shape)))


def channels(r: np.random.Generator) -> tuple:
    batch, by, each, *image = sizes(r, 5, 5, least=1)
    return real(r, [batch, by * each, *image]), by


def interleaved(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 4, least=1)
    dim = dim_of(r, len(shape)) if r.integers(3) else None
    return real(r, shape), int(r.integers(1, 4)), dim


def classes(r: np.random.Generator) -> tuple:
    return whole(r, 5, sizes(r, 0, 3)), int(r.integers(5, 7))


def framed(axes: int) -> Draw:
    """Padding smaller than the size, around so many of the last axes."""

    def draw(r: np.random.Generator) -> tuple:
        shape = [2, *sizes(r, axes, axes, least=2)]
        shape = shape if r.integers(2) else [2, *shape]
        pad = [int(r.integers(0, s)) for s in shape[: -axes - 1 : -1] for _ in range(2)]
        return real(r, shape), pad

    return draw


def diagonal_matrix(r: np.random.Generator) -> tuple:
    return real(r, sizes(r, 1, 2, least=1)), int(r.integers(-1, 2))


def vectors(r: np.random.Generator) -> tuple:
    first, second = sizes(r, 2, 2)
    return real(r, [first]), real(r, [second])


def blocks(r: np.random.Generator) -> tuple:
    return real(r, sizes(r, 1, 3, least=1)), real(r, sizes(r, 1, 3, least=1))


def halves(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 3, least=1)
    dim = dim_of(r, len(shape))
    shape[dim] *= 2
    return real(r, shape), dim


def powered(r: np.random.Generator) -> tuple:
    return real(r, sizes(r, 1, 1)), int(r.integers(0, 5)), bool(r.integers(2))


def crossed(r: np.random.Generator) -> tuple:
    shape = sizes(r, 1, 3)
    dim = dim_of(r, len(shape))
    shape[dim] = 3
    place = dim % len(shape)
    other = [s if i == place or r.integers(2) else 1 for i, s in enumerate(shape)]
    return real(r, shape), real(r, other), dim


def taken_along(r: np.random.Generator) -> tuple:
    data, dim, index = gather(r)
    if data.ndim == 0 or not r.integers(3):
        return data, whole(r, data.size, sizes(r, 0, 3)), None
    shape = [1 if r.integers(2) else s for s in data.shape]
    shape[dim] = index.shape[dim]
    return data, whole(r, data.shape[dim], shape), dim


def sloped(r: np.random.Generator) -> tuple:
    data = real(r, sizes(r, 0, 4, least=1))
    channels = data.shape[1] if data.ndim > 1 and r.integers(2) else 1
    return data, real(r, [channels])


def resized(axes: int) -> Draw:
    """Planes, their new sizes, and for each axis a factor or None."""

    def draw(r: np.random.Generator) -> tuple:
        planes = real(r, sizes(r, axes + 2, axes + 2, least=1))
        factors = [float(r.uniform(0.3, 3)) if r.integers(2) else None] * axes
        return planes, [int(r.integers(1, 9)) for _ in range(axes)], *factors

    return draw


def resized_by_list(axes: int) -> Draw:
    """The same by sizes alone or by factors alone."""

    def draw(r: np.random.Generator) -> tuple:
        planes, size, *_ = resized(axes)(r)
        factors = [float(r.uniform(1, 3)) for _ in range(axes)]
        return (planes, size, None) if r.integers(2) else (planes, None, factors)

    return draw


DRAWS: dict[str, Draw] = {
    **dict.fromkeys(("zeros", "ones"), sized),
    **dict.fromkeys(("zeros_like", "ones_like", "zero", "zero_"), tensor),
    **dict.fromkeys(("clone", "_to_copy", "lift"), tensor),
    **dict.fromkeys(("new_zeros", "new_ones"), tensor_size),
    **dict.fromkeys(("fill.Scalar", "fill_.Scalar", "full_like"), tensor_number),
    **dict.fromkeys(("fill.Tensor", "fill_.Tensor"), tensor_scalar),
    **dict.fromkeys(("copy", "copy_"), copied),
    "new_full": tensor_size_number,
    "full": sized_number,
    "scalar_tensor": lambda r: (number(r),),
    "_unsafe_view": reshaped,
    "eye": square,
    "eye.m": rectangle,
    **dict.fromkeys(("arange", "arange.out"), end),
    **dict.fromkeys(("arange.start", "range", "range.out_"), bounds),
    **dict.fromkeys(
        ("arange.start_step", "arange.start_out", "range.step", "range.out"), steps
    ),
    **dict.fromkeys(("linspace", "linspace.out"), space(False, False)),
    **{
        f"{name}.{ends}{form}": calls(ends[0] == "T", ends.endswith("_Tensor"))
        for name, calls in (("linspace", space), ("logspace", powers))
        for ends in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
        for form in ("", "_out")
    },
    **dict.fromkeys(("logspace", "logspace.out"), powers(False, False)),
    **{
        f"{name}_window{overload}": window(extra)
        for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
        for overload, extra in (("", 0), (".periodic", 1))
    },
    "hamming_window.periodic_alpha": window(2),
    "hamming_window.periodic_alpha_beta": window(3),
    "kaiser_window.beta": window(2),
    "flip": flipped,
    "roll": rolled,
    "repeat": repeated,
    "constant_pad_nd": padded,
    **dict.fromkeys(("tril", "triu"), triangle),
    "pixel_shuffle": shuffled,
    "pixel_unshuffle": unshuffled,
    "im2col": columns,
    "select_backward": select_backward,
    "select_scatter": select_scatter,
    "slice_backward": slice_backward,
    "slice_scatter": slice_scatter,
    "diagonal_backward": diagonal_backward,
    "diagonal_scatter": diagonal_scatter,
    "diag_embed": diag_embed,
    "index_select": index_select,
    "gather": gather,
    "take": take,
    "embedding": embedding,
    "value_selecting_reduction_backward": chosen_back,
    "reshape": reshaped,
    **dict.fromkeys(("reshape_as", "view_as"), reshaped_as),
    **dict.fromkeys(("ravel", "atleast_1d", "atleast_2d", "atleast_3d"), tensor),
    **dict.fromkeys(("contiguous", "positive", "resolve_conj", "resolve_neg"), tensor),
    **dict.fromkeys(("to.dtype_layout", "numpy_T"), tensor),
    "to.device": lambda r: (*tensor(r), taeda.device("cpu"), taeda.float64),
    "to.dtype": lambda r: (*tensor(r), taeda.float64),
    **dict.fromkeys(("to.other", "type_as"), lambda r: (*tensor(r), *tensor(r))),
    "flatten.using_ints": flattened,
    "unflatten.int": unflattened,
    "broadcast_to": expanded,
    "expand_as": expanded_as,
    **dict.fromkeys(("swapaxes", "swapdims", "movedim.int", "moveaxis.int"), swapped),
    **dict.fromkeys(("swapaxes_", "swapdims_", "transpose_"), swapped),
    "t_": matrix,
    "unsqueeze_": unsqueezed,
    "squeeze_": lambda r: squeezed(r)[:1],
    "squeeze_.dim": squeezed,
    "squeeze_.dims": squeezed_dims,
    **dict.fromkeys(("detach", "detach_"), tensor),
    "linalg_diagonal": taken_diagonal,
    **dict.fromkeys(("narrow", "narrow_copy"), narrowed),
    "narrow.Tensor": narrowed_at,
    **dict.fromkeys(("fliplr", "flipud"), plane),
    "rot90": turned,
    "tile": repeated,
    **dict.fromkeys(("channel_shuffle", "native_channel_shuffle"), channels),
    "repeat_interleave.self_int": interleaved,
    "one_hot": classes,
    **{f"reflection_pad{n}d": framed(n) for n in (1, 2, 3)},
    **{f"replication_pad{n}d": framed(n) for n in (1, 2, 3)},
    "_pad_circular": framed(2),
    **dict.fromkeys(("diag", "diagflat"), diagonal_matrix),
    **dict.fromkeys(("outer", "ger"), vectors),
    "kron": blocks,
    "glu": halves,
    "vander": powered,
    "linalg_cross": crossed,
    "take_along_dim": taken_along,
    "prelu": sloped,
    **{
        f"{name}{axes}d{overload}": draw(axes)
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for axes in (1, 2, 3)
        for overload, draw in (("", resized), (".vec", resized_by_list))
    },
}


def calls(name: str, count: int) -> Iterator[tuple]:
    """So many random calls of an overload, the same ones in every run."""
    generator = np.random.default_rng([ord(c) for c in name])
    for _ in range(count):
        yield DRAWS[name](generator)
