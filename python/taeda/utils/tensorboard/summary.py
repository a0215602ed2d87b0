"""Summaries by PyTorch's names, for programs that write them by themselves
(`SummaryWriter.file_writer.add_summary`)."""

from __future__ import annotations

from typing import Any

from . import _summaries as made
from ._arrays import to_numpy, to_picture

__all__ = [
    "audio",
    "custom_scalars",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
]


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None) -> list:
    """Three summaries of a session's hyperparameters: experiment, start, end.

    Args:
        hparam_dict: name -> number, bool, text or tensor of one element.
        metric_dict: whose keys are the tags of metrics.
        hparam_domain_discrete: name -> the values that it may have.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> [s.value[0].tag for s in summary.hparams({"lr": 0.1}, {"loss": 1.0})][0]
        '_hparams_/experiment'
    """
    return made.hparams(hparam_dict, metric_dict, hparam_domain_discrete)


def scalar(
    name: str, tensor, collections=None, new_style=False, double_precision=False
) -> Any:
    """A number, or a tensor of one element; `collections` has no meaning.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.scalar("loss", 0.5).value[0].simple_value
        0.5
    """
    return made.scalar(name, tensor, new_style, double_precision)


def tensor_proto(tag: str, tensor) -> Any:
    """A float32 or float64 tensor with its shape.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.tensor_proto("t", taeda.ones(2, 3)).value[0].tag
        't'
    """
    return made.tensor(tag, tensor)


def histogram(name: str, values, bins, max_bins: int | None = None) -> Any:
    """How many values fall between each two of the edges `bins`.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.histogram("h", taeda.ones(3), [0.0, 2.0]).value[0].histo.num
        3.0
    """
    return made.histogram(name, values, bins, max_bins)


def histogram_raw(
    name: str, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
) -> Any:
    """A histogram that was counted elsewhere.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.histogram_raw("h", 0, 1, 2, 1, 1, [1], [2]).value[0].histo.max
        1.0
    """
    fields = {"min": min, "max": max, "num": num, "sum": sum}
    fields |= {"sum_squares": sum_squares, "bucket": [float(c) for c in bucket_counts]}
    fields["bucket_limit"] = [float(limit) for limit in bucket_limits]
    return made.histogram_raw(name, **fields)


def image(tag: str, tensor, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or a grid of several.

    Raises:
        NotImplementedError: `rescale` is not 1.
    """
    if rescale != 1:
        raise NotImplementedError(f"image: rescale should be 1, got {rescale}")
    return made.image(tag, to_picture(tensor, dataformats))


def audio(tag: str, tensor, sample_rate: int = 44100) -> Any:
    """One channel of samples in [-1, 1].

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.audio("a", taeda.zeros(8)).value[0].audio.length_frames
        8
    """
    return made.audio(tag, tensor, sample_rate)


def text(tag: str, text: str) -> Any:
    """Text, which TensorBoard shows as Markdown.

    Example:
        >>> from taeda.utils.tensorboard import summary
        >>> summary.text("note", "**bold**").value[0].tag
        'note/text_summary'
    """
    return made.text(tag, text)


def custom_scalars(layout) -> Any:
    """Which charts join which scalars: {category: {title: [kind, tags]}}."""
    return made.custom_scalars(layout)


def pr_curve(tag: str, labels, predictions, num_thresholds: int = 127, weights=None):
    """The precision-recall curve of binary labels and predictions in [0, 1]."""
    return made.precision_recall(tag, labels, predictions, num_thresholds, weights)


def pr_curve_raw(
    tag: str, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None
):
    """A precision-recall curve that was counted elsewhere."""
    import numpy as np

    rows = np.stack([to_numpy(row) for row in (tp, fp, tn, fn, precision, recall)])
    return made.curve(tag, rows, num_thresholds)
