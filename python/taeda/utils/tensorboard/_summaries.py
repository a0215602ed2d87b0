"""One function per kind of value: from arguments to a `Summary` message."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _messages as messages
from ._arrays import buckets, png, pr_curve, to_numpy, to_scalar

# Numbers of TensorFlow's DataType.
_FLOAT, _DOUBLE, _STRING = 1, 2, 7
# The pr_curves plugin draws no more.
_MOST_THRESHOLDS = 127
# Kinds of hyperparameters, and the status of a finished session.
_TEXT, _NUMBER = 1, 3
_SUCCESS = 1
_CLIPPED = "warning: audio amplitude out of range, auto clipped."


def _summary(tag: str, **kind: Any) -> Any:
    return messages.Summary(value=[messages.Value(tag=tag, **kind)])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    data = messages.PluginData(plugin_name=plugin, content=content)
    return messages.Metadata(plugin_data=data)


def _tensor(shape: Sequence[int], dtype: int, **values: Any) -> Any:
    dims = [messages.Dim(size=size) for size in shape]
    shape_message = messages.Shape(dim=dims)
    return messages.Tensor(dtype=dtype, tensor_shape=shape_message, **values)


def scalar(tag: str, value: Any, as_tensor: bool, double: bool) -> Any:
    """A number: in the old form, or as a tensor of the plugin "scalars", which may
    be a float64 one."""
    number = to_scalar(value)
    if not as_tensor:
        return _summary(tag, simple_value=number)
    if double:
        made = messages.Tensor(dtype=_DOUBLE, double_val=[number])
    else:
        made = messages.Tensor(dtype=_FLOAT, float_val=[number])
    return _summary(tag, tensor=made, metadata=_metadata("scalars"))


def tensor(tag: str, value: Any) -> Any:
    """A tensor's float32 or float64 values, with its shape.

    Raises:
        ValueError: the values have another dtype.
    """
    array = to_numpy(value)
    numbers = array.reshape(-1).tolist()
    if array.dtype == np.float64:
        made = _tensor(array.shape, _DOUBLE, double_val=numbers)
    elif array.dtype == np.float32:
        made = _tensor(array.shape, _FLOAT, float_val=numbers)
    else:
        raise ValueError(
            f"tensorboard: a tensor should be float32 or float64, got {array.dtype}"
        )
    return _summary(tag, tensor=made, metadata=_metadata("tensor"))


def histogram(tag: str, value: Any, bins: Any, max_bins: int | None) -> Any:
    """Counts of values in buckets, with their extremes and moments.

    Raises:
        ValueError: there are no values.
    """
    values = to_numpy(value).astype(np.float64).reshape(-1)
    if values.size == 0:
        raise ValueError("tensorboard: the input has no element")
    moments = {name: getattr(values, name)() for name in ("min", "max", "sum")}
    squares = {"num": values.size, "sum_squares": values @ values}
    shown = buckets(values, bins, max_bins)
    return histogram_raw(tag, **moments, **squares, **shown)


def histogram_raw(tag: str, **fields: Any) -> Any:
    """A histogram that was computed elsewhere."""
    return _summary(tag, histo=messages.Histogram(**fields))


def image(tag: str, picture: np.ndarray) -> Any:
    """A picture of bytes (H, W, C) as PNG."""
    height, width, channels = picture.shape
    made = messages.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=png(picture),
    )
    return _summary(tag, image=made)


def text(tag: str, string: str) -> Any:
    """Text, which TensorBoard shows as Markdown."""
    made = _tensor((1,), _STRING, string_val=[string.encode()])
    return _summary(f"{tag}/text_summary", tensor=made, metadata=_metadata("text"))


def audio(tag: str, value: Any, sample_rate: int) -> Any:
    """One channel of samples in [-1, 1] as 16-bit WAV.

    Raises:
        AssertionError: there are several channels.
    """
    samples = to_numpy(value).squeeze()
    if samples.ndim != 1:
        raise AssertionError(
            f"tensorboard: audio should be 1D, got the shape {samples.shape}"
        )
    if np.abs(samples).max(initial=0) > 1:
        print(_CLIPPED)
        samples = samples.clip(-1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    made = messages.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=made)


def curve(tag: str, rows: np.ndarray, thresholds: int) -> Any:
    """Six rows: true and false positives, true and false negatives, two rates."""
    shown = min(thresholds, _MOST_THRESHOLDS)
    plugin = messages.PrCurve(num_thresholds=shown).SerializeToString()
    made = _tensor(rows.shape, _FLOAT, float_val=rows.reshape(-1).tolist())
    return _summary(tag, tensor=made, metadata=_metadata("pr_curves", plugin))


def precision_recall(
    tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any
) -> Any:
    """The precision-recall curve of binary labels and predictions in [0, 1]."""
    shown = min(thresholds, _MOST_THRESHOLDS)
    weights = None if weights is None else to_numpy(weights)
    rows = pr_curve(to_numpy(labels), to_numpy(predictions), shown, weights)
    return curve(tag, rows, shown)


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """Which charts join which scalars: {category: {title: [kind, tags]}}."""
    made = messages.Layout()
    for category, charts in layout.items():
        group = made.category.add(title=category)
        for title, (kind, tags) in charts.items():
            chart = group.chart.add(title=title)
            if kind == "Margin":
                value, lower, upper = tags
                chart.margin.series.add(value=value, lower=lower, upper=upper)
            else:
                chart.multiline.tag.extend(tags)
    content = [made.SerializeToString()]
    return _summary(
        "custom_scalars__config__",
        tensor=_tensor((), _STRING, string_val=content),
        metadata=_metadata("custom_scalars"),
    )


# Type of a hyperparameter (a bool counts as a number): its number, the field of
# protobuf's Value, and what goes there.
_KINDS: tuple[tuple[type | tuple[type, ...], int, str, Callable[[Any], Any]], ...] = (
    ((int, float), _NUMBER, "number_value", float),
    (str, _TEXT, "string_value", str),
)


def _check_domains(given: dict[str, Any], domains: Any) -> None:
    if not isinstance(domains, dict):
        raise TypeError("hparams: hparam_domain_discrete should be a dictionary")
    for name, values in domains.items():
        known = name in given and isinstance(values, list)
        if not known or not all(isinstance(v, type(given[name])) for v in values):
            raise TypeError(
                f"hparams: hparam_domain_discrete[{name}] should be a list of the same "
                f"type as hparam_dict[{name}]"
            )


def hparams(given: Any, metrics: Any, domains: Any = None) -> list[Any]:
    """Three summaries of the plugin "hparams": the experiment, the session's start
    with the hyperparameters, and its end.

    Raises:
        TypeError: an argument is no dictionary, or a domain fits no hyperparameter.
        ValueError: a hyperparameter is no number, bool, text or tensor.
    """
    for name, value in (("hparam_dict", given), ("metric_dict", metrics)):
        if not isinstance(value, dict):
            raise TypeError(f"hparams: {name} should be a dictionary, got {value!r}")
    domains = domains or {}
    _check_domains(given, domains)
    start, experiment = messages.SessionStart(), messages.Experiment()
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, (int, float, str)):
            value = _number_of(name, value)
        _, kind, field, cast = next(k for k in _KINDS if isinstance(value, k[0]))
        entry = start.hparams.add(key=name)
        setattr(entry.value, field, cast(value))
        info = experiment.hparam_infos.add(name=name, type=kind)
        for allowed in domains.get(name, ()):
            setattr(info.domain_discrete.values.add(), field, cast(allowed))
    for name in metrics:
        experiment.metric_infos.add(name=messages.MetricName(tag=name))
    end = messages.SessionEnd(status=_SUCCESS)
    parts = {
        "experiment": {"experiment": experiment},
        "session_start_info": {"session_start_info": start},
        "session_end_info": {"session_end_info": end},
    }
    return [
        _summary(
            f"_hparams_/{tag}",
            metadata=_metadata("hparams", messages.HParams(**data).SerializeToString()),
        )
        for tag, data in parts.items()
    ]


def _number_of(name: str, value: Any) -> float:
    try:
        return to_scalar(value)
    except (NotImplementedError, AssertionError):
        raise ValueError(
            f"hparams: {name} should be an int, float, str, bool or a tensor of one "
            f"element, got {type(value)}"
        ) from None
