"""From tensors and arrays to what summaries hold: numbers, buckets, pictures."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

import taeda

# The buckets of TensorFlow's histograms: 1e-12 and above, each a tenth wider than the
# one before, below 1e20; the same below zero.
_SMALLEST, _LARGEST, _RATIO = 1e-12, 1e20, 1.1


def to_numpy(value: Any) -> np.ndarray:
    """A tensor, array or number as an array in the CPU's memory.

    Raises:
        NotImplementedError: the value is none of these.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, taeda.Tensor):
        value = value.detach().cpu()
        half = value.dtype == taeda.bfloat16
        return (value.float() if half else value).resolve_conj().numpy()
    if np.isscalar(value):
        return np.array([value])
    raise NotImplementedError(
        f"tensorboard: expected a tensor, an array or a number, got {type(value)}"
    )


def to_scalar(value: Any) -> float:
    """The one element of a value, as a float.

    Raises:
        AssertionError: the value has several elements, or none.
    """
    array = to_numpy(value).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"tensorboard: a scalar should be 0D, got the shape {array.shape}"
        )
    return float(array)


def tensorflow_edges() -> list[float]:
    """The upper edges of the buckets that `bins="tensorflow"` means."""
    positive = []
    edge = _SMALLEST
    while edge < _LARGEST:
        positive.append(edge)
        edge *= _RATIO
    return [-edge for edge in reversed(positive)] + [0.0] + positive


def buckets(
    values: np.ndarray, bins: Any, max_bins: int | None
) -> dict[str, list[float]]:
    """Upper edges and counts of the buckets from the first to the last filled one,
    by the names of a histogram message.

    One empty bucket stays before them, since a bucket's lower edge is the upper one
    of the bucket before. With `max_bins`, equal numbers of neighbours are merged.
    """
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        group = len(counts) // max_bins
        padding = -len(counts) % group
        counts = np.pad(counts, (0, padding)).reshape(-1, group).sum(axis=1)
        edges = np.append(edges[:-1:group], edges[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("tensorboard: the histogram has no value within its bins")
    first, last = filled[0], filled[-1]
    heights = [0, *counts[first : last + 1].tolist()]
    return {"bucket_limit": edges[first : last + 2].tolist(), "bucket": heights}


def pr_curve(
    labels: np.ndarray, predictions: np.ndarray, thresholds: int, weights: Any
) -> np.ndarray:
    """Rows of counts and rates at evenly spaced thresholds in [0, 1].

    The rows: true and false positives, true and false negatives, precision, recall.
    """
    weights = np.broadcast_to(1.0 if weights is None else weights, labels.shape)
    # A prediction counts as positive at every threshold up to its own place.
    place = np.floor(predictions * (thresholds - 1)).astype(np.int64).ravel()
    inside = (place >= 0) & (place < thresholds)

    def at_least(mass: np.ndarray) -> np.ndarray:
        kept = mass.astype(np.float64).ravel()[inside]
        found = np.bincount(place[inside], weights=kept, minlength=thresholds)
        return found[::-1].cumsum()[::-1]

    truth = labels.astype(np.float64)
    positive, negative = at_least(truth * weights), at_least((1 - truth) * weights)
    missed, rejected = positive[0] - positive, negative[0] - negative
    # Precision: the share of what is found that is right; recall: of what is right.
    rates = [positive / np.maximum(1e-7, positive + x) for x in (negative, missed)]
    return np.stack([positive, negative, rejected, missed, *rates])


def grid(pictures: np.ndarray, columns: int = 8) -> np.ndarray:
    """Pictures (N, C, H, W) side by side in rows, as one (3, height, width)."""
    count, channels, height, width = pictures.shape
    if channels == 1:
        pictures = pictures.repeat(3, axis=1)
    columns = min(count, columns)
    rows = -(-count // columns)
    empty = np.zeros((rows * columns - count, *pictures.shape[1:]), pictures.dtype)
    cells = np.concatenate((pictures, empty)).reshape(rows, columns, -1, height, width)
    return cells.transpose(2, 0, 3, 1, 4).reshape(-1, rows * height, columns * width)


def to_picture(value: Any, dataformats: str) -> np.ndarray:
    """An array whose axes the letters name as (H, W, C) bytes.

    Several pictures (an N among the letters) become a grid. Values of other dtypes
    than uint8 are taken to lie in [0, 1].

    Raises:
        AssertionError: the letters do not name the axes.
    """
    array = to_numpy(value)
    letters = dataformats.upper()
    if len(set(letters)) != len(letters) or len(letters) != array.ndim:
        raise AssertionError(
            f"tensorboard: the format {dataformats!r} does not name the axes of a "
            f"tensor of shape {array.shape}"
        )
    if not set(letters) <= set("NCHW") or not set("HW") <= set(letters):
        raise AssertionError(f"tensorboard: unknown format {dataformats!r}")
    whole = "NCHW" if "N" in letters else "CHW"
    for letter in set(whole) - set(letters):
        array, letters = array[np.newaxis], letter + letters
    array = array.transpose([letters.index(letter) for letter in whole])
    if array.dtype != np.uint8:
        array = (array.astype(np.float32) * 255.0).clip(0, 255).astype(np.uint8)
    array = grid(array) if "N" in whole else array
    if array.shape[0] == 1:
        array = array.repeat(3, axis=0)
    return array.transpose(1, 2, 0)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def png(picture: np.ndarray) -> bytes:
    """A picture of bytes (H, W, C), C from 1 to 4, as a PNG file (RFC 2083)."""
    height, width, channels = picture.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.ascontiguousarray(picture, np.uint8).reshape(height, -1)
    # Each row begins with the number of its filter: 0, none.
    raw = np.pad(rows, ((0, 0), (1, 0))).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = (
        _chunk(b"IHDR", head),
        _chunk(b"IDAT", zlib.compress(raw)),
        _chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def figure_pixels(figures: Any, close: bool) -> np.ndarray:
    """Matplotlib figures, drawn: (H, W, 3) bytes, or (N, H, W, 3) for a list."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, list):
        return np.stack([figure_pixels(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.array(canvas.buffer_rgba())[..., :3]
    if close:
        pyplot.close(figures)
    return pixels
