"""`SummaryWriter`: the values of one run."""

from __future__ import annotations

import os
import pathlib
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _messages as messages
from . import _summaries as summaries
from ._arrays import figure_pixels, tensorflow_edges, to_numpy, to_picture
from ._file import VERSION, FileWriter
from ._projector import write_embedding

__all__ = ["FileWriter", "SummaryWriter"]

# Of the states of a session log.
_SESSION_STARTED = 1


def _default_folder(comment: str) -> str:
    began = time.strftime("%b%d_%H-%M-%S")
    return os.path.join("runs", f"{began}_{socket.gethostname()}{comment}")


def _refused(name: str) -> Callable[..., None]:
    def refuse(self: SummaryWriter, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"SummaryWriter.{name} is not implemented")

    refuse.__name__ = name
    refuse.__doc__ = "Not implemented."
    return refuse


class SummaryWriter:
    """Writes the values of a run into a folder that TensorBoard shows.

    Args:
        log_dir: the run's folder; by default a new one, `runs/DATE_TIME_HOST`.
        comment: what the default folder's name ends with.
        purge_step: hides what an earlier, crashed process wrote from this step on.
        max_queue, flush_secs, filename_suffix: see `FileWriter`.

    Example::

        with SummaryWriter("runs/first") as writer:
            for step in range(100):
                writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.log_dir = str(log_dir) if log_dir else _default_folder(comment)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = tensorflow_edges()
        self._projector_parts: list[str] = []
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The run's file, begun anew after `close`."""
        if self.all_writers is None or self.file_writer is None:
            writer = self._new_file(self.log_dir)
            self.file_writer = writer
            self.all_writers = {writer.get_logdir(): writer}
            if self.purge_step is not None:
                step = self.purge_step
                # TensorBoard drops later steps of older files at this event.
                started = messages.SessionLog(status=_SESSION_STARTED)
                writer.add_event(messages.Event(file_version=VERSION), step)
                writer.add_event(messages.Event(session_log=started), step)
                self.purge_step = None
        return self.file_writer

    def _new_file(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _write(self, summary: Any, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    def get_logdir(self) -> str:
        """The run's folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number, or a tensor of one element.

        Args:
            new_style: write it as a tensor of the plugin "scalars".
            double_precision: write that tensor in float64.

        Raises:
            AssertionError: `scalar_value` has several elements.
        """
        made = summaries.scalar(tag, scalar_value, new_style, double_precision)
        self._write(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Numbers for one chart: a run of its own for each, in a folder below."""
        root = self._get_file_writer().get_logdir()
        walltime = time.time() if walltime is None else walltime
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{root}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in writers:
                writers[folder] = self._new_file(folder)
            made = summaries.scalar(main_tag, value, False, False)
            writers[folder].add_summary(made, global_step, walltime)

    def add_tensor(
        self,
        tag: str,
        tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A float32 or float64 tensor of any shape.

        Raises:
            ValueError: the tensor has another dtype.
        """
        self._write(summaries.tensor(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """The distribution of a tensor's values.

        Args:
            bins: "tensorflow" (geometric buckets), or what `numpy.histogram` takes.
            max_bins: merge neighbours down to about so many buckets.

        Raises:
            ValueError: there are no values.
        """
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        made = summaries.histogram(tag, values, bins, max_bins)
        self._write(made, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that was computed elsewhere: upper limits, and as many counts.

        Raises:
            ValueError: the numbers of limits and counts differ.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: len(bucket_limits) != len(bucket_counts): "
                f"{len(bucket_limits)} and {len(bucket_counts)}"
            )
        made = summaries.histogram_raw(
            tag,
            min=min,
            max=max,
            num=num,
            sum=sum,
            sum_squares=sum_squares,
            bucket_limit=[float(limit) for limit in bucket_limits],
            bucket=[float(count) for count in bucket_counts],
        )
        self._write(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: uint8, or other numbers in [0, 1]; `dataformats` names the axes.

        Raises:
            AssertionError: the letters do not fit the shape.
        """
        made = summaries.image(tag, to_picture(img_tensor, dataformats))
        self._write(made, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures in one, eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A Matplotlib figure, or a list of equally large ones, as a picture."""
        pixels = figure_pixels(figure, close)
        axes = "HWC" if pixels.ndim == 3 else "NHWC"
        self.add_image(tag, pixels, global_step, walltime, axes)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Samples in [-1, 1] of one channel, `sample_rate` a second."""
        made = summaries.audio(tag, snd_tensor, sample_rate)
        self._write(made, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Text, shown as Markdown."""
        self._write(summaries.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision against recall of binary labels and predictions in [0, 1]."""
        made = summaries.precision_recall(
            tag, labels, predictions, num_thresholds, weights
        )
        self._write(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A precision-recall curve that was computed elsewhere."""
        import numpy as np

        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        stacked = np.stack([to_numpy(row) for row in rows])
        made = summaries.curve(tag, stacked, num_thresholds)
        self._write(made, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """The hyperparameters of a run and the metrics to compare runs by.

        They go into a run of their own below this one, named `run_name` (by default,
        the time in seconds).

        Raises:
            TypeError: a dictionary is none, or a domain fits no hyperparameter.
        """
        made = summaries.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for summary in made:
                writer._write(summary, global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_custom_scalars(
        self, layout: Mapping[str, Mapping[str, Sequence[Any]]]
    ) -> None:
        """Charts that join scalars: {category: {title: ["Multiline", [tags...]]}}."""
        self._write(summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One scalar between two others: its tag, the lower's, the upper's.

        Raises:
            AssertionError: there are not three tags.
        """
        if len(tags) != 3:
            raise AssertionError(f"a margin chart needs 3 tags, got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Points (N, D) for the projector, with labels and pictures of them.

        Raises:
            AssertionError: `mat` is not 2D, or the numbers of rows differ.
        """
        step = f"{global_step or 0:05d}"
        root = self._get_file_writer().get_logdir()
        # A tag is one folder, whatever it contains.
        place = f"{step}/{tag.replace('%', '%25').replace('/', '%2f')}"
        part = write_embedding(
            root, place, f"{tag}:{step}", mat, metadata, metadata_header, label_img
        )
        self._projector_parts.append(part)
        config = pathlib.Path(root, "projector_config.pbtxt")
        config.write_text("".join(self._projector_parts), encoding="utf-8")

    add_graph = _refused("add_graph")
    add_onnx_graph = _refused("add_onnx_graph")
    add_video = _refused("add_video")
    add_mesh = _refused("add_mesh")
    add_image_with_boxes = _refused("add_image_with_boxes")

    def flush(self) -> None:
        """Hand everything written so far to the system."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Close all files; the next value begins new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()
