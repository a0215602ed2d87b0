"""Event files: TensorBoard reads in ours what it reads in PyTorch's."""

from __future__ import annotations

import io
import pathlib
import re
import struct
import subprocess
import sys
import threading

import matplotlib
import numpy as np
import pytest
import taeda
import torch
from PIL import Image
from taeda.utils import tensorboard as ours
from taeda.utils.tensorboard import _arrays, _records
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing.event_file_loader import (
    LegacyEventFileLoader,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from torch.utils import tensorboard as theirs

matplotlib.use("Agg")


def events(folder: pathlib.Path) -> dict[str, list]:
    """Folder below this one to the events of its files, times taken out."""
    found: dict[str, list] = {}
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        place = str(path.parent.relative_to(folder))
        for event in LegacyEventFileLoader(str(path)).Load():
            event.ClearField("wall_time")
            event.ClearField("source_metadata")
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "hparams":
                    order_hparams(value.metadata.plugin_data)
            found.setdefault(place, []).append(event)
    assert found
    return found


def order_hparams(plugin) -> None:
    """Maps have no order in a message: sorts them."""
    read = HParamsPluginData.FromString(plugin.content)
    plugin.content = read.SerializeToString(deterministic=True)


def pixels(event) -> np.ndarray:
    """Takes the encoded picture out of an event: encoders may differ."""
    for value in event.summary.value:
        if value.HasField("image"):
            data, value.image.encoded_image_string = (
                value.image.encoded_image_string,
                b"",
            )
            return np.array(Image.open(io.BytesIO(data)))
    return np.zeros(0)


def both(tmp_path: pathlib.Path, use, **options) -> dict[str, list]:
    """Makes the same calls on both writers; their events must be equal."""
    sides = {}
    for name, module, library in (
        ("theirs", theirs, torch),
        ("ours", ours, taeda),
    ):
        writer = module.SummaryWriter(tmp_path / name, **options)
        use(writer, library)
        writer.close()
        sides[name] = events(tmp_path / name)
    assert sides["ours"].keys() == sides["theirs"].keys()
    for place, expected in sides["theirs"].items():
        got = sides["ours"][place]
        assert len(got) == len(expected)
        for mine, wanted in zip(got, expected, strict=True):
            assert np.array_equal(pixels(mine), pixels(wanted))
            assert mine == wanted
    return sides["ours"]


def ramp(library, *shape: int):
    count = int(np.prod(shape))
    return library.tensor(np.linspace(-1.5, 2.5, count, dtype=np.float32)).reshape(
        shape
    )


def scalars(writer, library) -> None:
    writer.add_scalar("loss/train", 0.25, 1)
    writer.add_scalar("loss/train", library.tensor(1 / 3), 2, walltime=12.5)
    writer.add_scalar("count", library.tensor([7]), 3)
    writer.add_scalar("nothing", float("nan"))
    writer.add_scalar("new", 1.5, 4, new_style=True)
    writer.add_scalar("precise", 1 / 3, 5, double_precision=True)
    writer.add_scalar("array", np.float64(2.5), 6)
    writer.add_scalar("half", library.tensor(1.5, dtype=library.bfloat16), 2**40)


def groups(writer, library) -> None:
    for step in range(3):
        writer.add_scalars("run/14h", {"sin": step * 0.5, "cos": 1.0}, step)
    writer.add_scalar("alone", 1.0, 0)


def histograms(writer, library) -> None:
    values = ramp(library, 50, 20)
    writer.add_histogram("weights", values, 1)
    writer.add_histogram("integers", library.arange(17), 2)
    writer.add_histogram("zeros", library.zeros(5), 3)
    writer.add_histogram("tiny", values * 1e-14, 4)
    writer.add_histogram("auto", values, 5, bins="auto")
    writer.add_histogram("fd", values, 6, bins="fd")
    writer.add_histogram("few", values, 7, max_bins=64)
    writer.add_histogram("edges", values, 8, bins=[-1.0, 0.0, 0.5, 1.0, 9.0])
    writer.add_histogram_raw(
        "raw", 0.0, 2.0, 3, 4.0, 6.0, [1.0, 2.0, 3.0], [1, 0, 2], 9
    )


def texts(writer, library) -> None:
    writer.add_text("note", "**bold** and ünïcode", 3)


def images(writer, library) -> None:
    picture = ramp(library, 3, 11, 7)
    writer.add_image("chw", picture, 1)
    writer.add_image("hwc", picture.permute(1, 2, 0), 2, dataformats="HWC")
    writer.add_image("hw", picture[0], 3, dataformats="HW")
    writer.add_image("grey", picture[:1], 4)
    bytes_ = (picture * 50).abs().to(library.uint8)
    writer.add_image("bytes", bytes_, 5)
    writer.add_images("many", ramp(library, 11, 3, 5, 4), 6)
    writer.add_images("greys", ramp(library, 2, 1, 5, 4), 7)
    writer.add_images("last", ramp(library, 3, 5, 4, 3), 8, dataformats="NHWC")


def figures(writer, library) -> None:
    from matplotlib import pyplot

    def draw(scale):
        figure = pyplot.figure(figsize=(2, 1.5), dpi=50)
        pyplot.plot([0, 1, 2], [0, scale, 1])
        return figure

    writer.add_figure("one", draw(2), 1)
    writer.add_figure("two", [draw(3), draw(4)], 2)
    kept = draw(5)
    writer.add_figure("kept", kept, 3, close=False)
    assert pyplot.get_fignums() == [kept.number]
    pyplot.close(kept)


def hyperparameters(writer, library) -> None:
    writer.add_hparams(
        {"lr": 0.1, "depth": 3, "bias": True, "name": "net", "gone": None},
        {"accuracy": 0.9, "loss": library.tensor(0.5)},
        hparam_domain_discrete={"depth": [1, 3], "name": ["net", "other"]},
        run_name="first",
        global_step=4,
    )
    writer.add_hparams({"flag": False}, {}, {"flag": [True]}, run_name="second")


def curves(writer, library) -> None:
    predictions = np.linspace(0, 1, 40, dtype=np.float32)
    labels = library.tensor((np.arange(40) % 3 == 0).astype(np.int64))
    writer.add_pr_curve("pr", labels, library.tensor(predictions), 1)
    weights = np.linspace(1, 2, 40, dtype=np.float32)
    writer.add_pr_curve("weighted", labels, library.tensor(predictions), 2, 11, weights)
    rows = [library.tensor([3.0, 2.0, 1.0]) / (i + 1) for i in range(6)]
    writer.add_pr_curve_raw("raw", *rows, global_step=3, num_thresholds=3)


def sounds(writer, library) -> None:
    wave = library.sin(library.arange(300, dtype=library.float64) / 9)
    writer.add_audio("tone", wave.reshape(1, -1), 1, sample_rate=8000)
    writer.add_audio("loud", wave * 3, 2)


def layouts(writer, library) -> None:
    charts = {"both": ["Multiline", ["a", "b"]], "band": ["Margin", ["a", "b", "c"]]}
    writer.add_custom_scalars({"first": charts})


def tensors(writer, library) -> None:
    writer.add_tensor("tensor", ramp(library, 2, 3), 5)
    writer.add_tensor("double", ramp(library, 4).double(), 6)


@pytest.mark.parametrize(
    "use",
    [
        scalars,
        groups,
        histograms,
        texts,
        images,
        figures,
        hyperparameters,
        curves,
        sounds,
        layouts,
        tensors,
    ],
    ids=lambda use: use.__name__,
)
def test_events_equal_pytorchs(tmp_path: pathlib.Path, use) -> None:
    assert sum(map(len, both(tmp_path, use).values())) > 1


@pytest.mark.parametrize("bins", ["multiline", "margin"])
def test_charts_of_scalars(tmp_path: pathlib.Path, bins: str) -> None:
    def use(writer, library) -> None:
        add = getattr(writer, f"add_custom_scalars_{bins}chart")
        add(["a", "b", "c"], category="group", title="chart")

    both(tmp_path, use)


def test_purge_step_and_reopening(tmp_path: pathlib.Path) -> None:
    def use(writer, library) -> None:
        writer.add_scalar("a", 1.0, 8)

    got = both(tmp_path, use, purge_step=7)["."]
    assert [event.WhichOneof("what") for event in got] == [
        "file_version",
        "file_version",
        "session_log",
        "summary",
    ]
    assert got[1].step == got[2].step == 7


def test_embeddings_equal_pytorchs(tmp_path: pathlib.Path) -> None:
    for name, module, library in (("theirs", theirs, torch), ("ours", ours, taeda)):
        with module.SummaryWriter(tmp_path / name) as writer:
            points = ramp(library, 5, 3)
            writer.add_embedding(points)
            pictures = ramp(library, 5, 3, 4, 4).clamp(0, 1)
            labels = [[i, f"label {i}"] for i in range(5)]
            header = ["number", "text"]
            writer.add_embedding(points, labels, pictures, 2, "a/b%", header)
            writer.add_embedding(points, list("vwxyz"), global_step=3)
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    mine, wanted = tmp_path / "ours", tmp_path / "theirs"
    for path in sorted(wanted.rglob("*")):
        twin = mine / path.relative_to(wanted)
        if path.suffix == ".png":
            pair = [np.array(Image.open(p)) for p in (twin, path)]
            assert np.array_equal(*pair)
        elif path.suffix == ".tsv":
            assert twin.read_text() == path.read_text()
    configs = [
        text_format.Parse((p / "projector_config.pbtxt").read_text(), ProjectorConfig())
        for p in (mine, wanted)
    ]
    assert configs[0] == configs[1] and len(configs[0].embeddings) == 3


def test_tensorboard_accumulates_the_run(tmp_path: pathlib.Path) -> None:
    with ours.SummaryWriter(tmp_path, filename_suffix=".mine") as writer:
        for step in range(5):
            writer.add_scalar("loss", 1.0 / (step + 1), step, walltime=100.0 + step)
        writer.add_histogram("weights", taeda.arange(4.0), 3)
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\..+\.\d+\.\d+\.mine", path.name)
    run = event_accumulator.EventAccumulator(str(tmp_path))
    run.Reload()
    shown = [(e.wall_time, e.step, e.value) for e in run.Scalars("loss")]
    assert shown == [(100.0 + s, s, float(np.float32(1 / (s + 1)))) for s in range(5)]
    (histogram,) = run.Histograms("weights")
    assert histogram.histogram_value.num == 4 and histogram.histogram_value.sum == 6


def test_checksums() -> None:
    # RFC 3720, appendix B.4.
    assert _records.crc32c(bytes(32)) == 0x8A9136AA
    assert _records.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert _records.crc32c(bytes(range(32))) == 0x46DD794E
    file = io.BytesIO()
    _records.RecordWriter(file).write(b"data")
    length, _ = struct.unpack("<QI", file.getvalue()[:12])
    assert (length, file.getvalue()[12:16]) == (4, b"data")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_of_any_channels(channels: int) -> None:
    picture = np.arange(6 * 5 * channels, dtype=np.uint8).reshape(6, 5, channels)
    read = np.array(Image.open(io.BytesIO(_arrays.png(picture))))
    assert np.array_equal(read.reshape(6, 5, channels), picture)


def test_default_folder_is_named_as_pytorchs(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for module in (theirs, ours):
        writer = module.SummaryWriter(comment="_lr")
        names.append(re.sub(r"\d\d-\d\d-\d\d", "", writer.log_dir))
        assert writer.get_logdir() == writer.log_dir
        writer.close()
    assert names[0] == names[1] and names[1].startswith("runs/")


def test_events_wait_for_the_queue_or_the_clock(tmp_path: pathlib.Path) -> None:
    def written() -> int:
        return sum(map(len, events(tmp_path).values()))

    writer = ours.FileWriter(tmp_path, max_queue=3, flush_secs=0.2)
    add = [ours._summaries.scalar("x", 1.0, False, False)]
    writer.add_summary(add[0], 1)
    assert written() == 1
    assert writer._timer is not None
    writer._timer.join(10)
    assert written() == 2
    for step in range(3):
        writer.add_summary(add[0], step)
    assert written() == 5
    writer.add_summary(add[0], 9)
    writer.flush()
    assert written() == 6
    writer.close()


def test_a_closed_writer_begins_a_new_file(tmp_path: pathlib.Path) -> None:
    writer = ours.SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0)
    writer.close()
    writer.close()
    writer.add_scalar("a", 2.0)
    writer.flush()
    assert len(list(tmp_path.iterdir())) == 2
    writer.close()


def test_many_threads_write_whole_records(tmp_path: pathlib.Path) -> None:
    with ours.SummaryWriter(tmp_path, max_queue=3) as writer:

        def work(number: int) -> None:
            for step in range(50):
                writer.add_scalar(f"thread{number}", number, step)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (found,) = events(tmp_path).values()
    assert len(found) == 1 + 8 * 50


REFUSALS = [
    ("add_scalar", ("a", [1.0]), NotImplementedError, "expected a tensor"),
    ("add_scalar", ("a", np.ones(2)), AssertionError, "scalar should be 0D"),
    ("add_histogram", ("a", np.zeros(0)), ValueError, "has no element"),
    ("add_histogram", ("a", np.ones(3), 0, [5.0, 6.0]), ValueError, "no value within"),
    ("add_image", ("a", np.ones((3, 4))), AssertionError, "does not name the axes"),
    ("add_image", ("a", np.ones((3, 4)), 0, 0, "HX"), AssertionError, "unknown format"),
    ("add_audio", ("a", np.ones((2, 4))), AssertionError, "should be 1D"),
    ("add_tensor", ("a", np.ones(2, np.int64)), ValueError, "float32 or float64"),
    ("add_hparams", ([], {}), TypeError, "hparam_dict should be"),
    ("add_hparams", ({}, 3), TypeError, "metric_dict should be"),
    ("add_hparams", ({"a": 1}, {}, [1]), TypeError, "should be a dictionary"),
    ("add_hparams", ({"a": 1}, {}, {"a": ["x"]}), TypeError, r"discrete\[a\]"),
    ("add_hparams", ({"a": object()}, {}), ValueError, "hparams: a should be"),
    ("add_embedding", (np.ones(3),), AssertionError, "mat should be 2D"),
    ("add_embedding", (np.ones((3, 2)), ["a"]), AssertionError, "1 of metadata for 3"),
    (
        "add_embedding",
        (np.ones((1, 2)), [["a"]], None, 0, "t", ["x", "y"]),
        AssertionError,
        "2 headers for 1 columns",
    ),
    ("add_histogram_raw", ("a", 0, 1, 1, 1, 1, [1.0], []), ValueError, "1 and 0"),
    ("add_custom_scalars_marginchart", (["a"],), AssertionError, "3 tags, got 1"),
    ("add_graph", (None,), NotImplementedError, "SummaryWriter.add_graph"),
    ("add_video", ("a", None), NotImplementedError, "SummaryWriter.add_video"),
    ("add_mesh", ("a", None), NotImplementedError, "SummaryWriter.add_mesh"),
    ("add_onnx_graph", ("a",), NotImplementedError, "SummaryWriter.add_onnx_graph"),
    ("add_image_with_boxes", (), NotImplementedError, "add_image_with_boxes"),
]


@pytest.mark.parametrize(("method", "arguments", "error", "text"), REFUSALS)
def test_refusals(tmp_path, method: str, arguments, error, text: str) -> None:
    with ours.SummaryWriter(tmp_path) as writer:
        with pytest.raises(error, match=text):
            getattr(writer, method)(*arguments)


def test_signatures_are_pytorchs() -> None:
    import inspect

    refused = {method for method, *_, text in REFUSALS if "SummaryWriter" in text}
    compared = 0
    for name, method in inspect.getmembers(theirs.SummaryWriter, inspect.isfunction):
        mine = getattr(ours.SummaryWriter, name, None)
        if name.startswith("_") or name in refused | {"add_image_with_boxes"}:
            continue
        wanted = list(inspect.signature(method).parameters)
        assert list(inspect.signature(mine).parameters) == wanted, name
        compared += 1
    assert compared == 20


@pytest.mark.parametrize("package", ["google.protobuf", "numpy"])
def test_a_missing_package_names_the_extra(package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "import taeda\n"
        "try:\n    from taeda.utils.tensorboard import SummaryWriter\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert f"needs the package {package}" in done.stdout
    assert 'pip install "taeda[tensorboard]"' in done.stdout


def test_tensorboard_itself_is_not_imported(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys\nfrom taeda.utils.tensorboard import SummaryWriter\n"
        f"with SummaryWriter({str(tmp_path)!r}) as w: w.add_scalar('a', 1.0)\n"
        "print([m for m in ('tensorboard', 'torch', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
