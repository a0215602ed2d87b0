"""The files that TensorBoard's projector reads: points, labels, a sprite."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arrays import grid, png, to_numpy


def _write_lines(path: pathlib.Path, rows: Sequence[Sequence[Any]]) -> None:
    lines = ["\t".join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _label_rows(labels: Sequence[Any], header: Sequence[str] | None) -> list[Any]:
    if not header:
        return [[label] for label in labels]
    if len(header) != len(labels[0]):
        raise AssertionError(
            f"embedding: {len(header)} headers for {len(labels[0])} columns of metadata"
        )
    return [header, *labels]


def _sprite(pictures: np.ndarray) -> np.ndarray:
    """Pictures (N, C, H, W) in [0, 1] in a square of bytes (S, S, 3)."""
    arranged = grid(pictures, columns=math.ceil(len(pictures) ** 0.5))
    _, height, width = arranged.shape
    square = np.zeros((width, width, 3))
    square[:height] = arranged.transpose(1, 2, 0)
    return (square * 255).clip(0, 255).astype(np.uint8)


def write_embedding(
    logdir: str,
    place: str,
    name: str,
    points: Any,
    labels: Any,
    header: Any,
    pictures: Any,
) -> str:
    """Writes the files of one embedding and returns its part of the configuration.

    Args:
        logdir: the run's folder.
        place: the folder of the files below it.
        name: the name that the projector shows.
        points: a tensor (N, D).
        labels: N labels, or rows of them, or None.
        header: the names of the columns of labels, or None.
        pictures: a tensor (N, C, H, W) in [0, 1], or None.

    Raises:
        AssertionError: `points` is not 2D, or the numbers differ.
    """
    matrix = to_numpy(points)
    if matrix.ndim != 2:
        raise AssertionError(
            f"embedding: mat should be 2D, got the shape {matrix.shape}"
        )
    images = None if pictures is None else to_numpy(pictures)
    for what, given in (("metadata", labels), ("label_img", images)):
        if given is not None and len(given) != len(matrix):
            raise AssertionError(
                f"embedding: {len(given)} of {what} for {len(matrix)} points"
            )
    folder = pathlib.Path(logdir, place)
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "tensors.tsv", matrix.tolist())
    config = [f'tensor_name: "{name}"', f'tensor_path: "{place}/tensors.tsv"']
    if labels is not None:
        _write_lines(folder / "metadata.tsv", _label_rows(labels, header))
        config.append(f'metadata_path: "{place}/metadata.tsv"')
    if images is not None:
        (folder / "sprite.png").write_bytes(png(_sprite(images)))
        height, width = images.shape[2:]
        config.append(
            f'sprite {{\n  image_path: "{place}/sprite.png"\n'
            f"  single_image_dim: {width}\n  single_image_dim: {height}\n}}"
        )
    inner = "\n".join(config).replace("\n", "\n  ")
    return f"embeddings {{\n  {inner}\n}}\n"
