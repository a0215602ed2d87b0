"""Models with the source of their classes: what is packaged, and what comes back."""

from __future__ import annotations

import importlib
import io
import pathlib
import subprocess
import sys
import zipfile

import pytest
import taeda
import taeda.package as packaging
from taeda.package import analyze

MODEL = """
import math

import taeda
from helper_of_model import factor
from . import layers


class Model(taeda.nn.Module):
    class Inner:
        value = 3

    def __init__(self):
        super().__init__()
        self.linear = layers.Twice(2, 2)

    def forward(self, x):
        return factor * self.linear(x)
"""
NET = "model_of_test.net"  # what a fixture writes
LAYERS = """
import taeda


class Twice(taeda.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)
"""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Modules that can be imported during a test."""
    folder = tmp_path / "model_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "net.py").write_text(MODEL)
    (folder / "layers.py").write_text(LAYERS)
    (tmp_path / "helper_of_model.py").write_text("factor = 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in list(sys.modules):
        if name.partition(".")[0] in ("model_of_test", "helper_of_model"):
            del sys.modules[name]


def written(fill, **options) -> tuple:
    """(the exporter, the bytes) of a package."""
    file = io.BytesIO()
    with packaging.PackageExporter(file, **options) as exporter:
        fill(exporter)
    return exporter, file.getvalue()


def read(data: bytes, **options) -> packaging.PackageImporter:
    return packaging.PackageImporter(io.BytesIO(data), **options)


def of_source(source: str, *rules):
    def fill(exporter) -> None:
        for name, *arguments in rules:
            getattr(exporter, name)(*arguments)
        exporter.save_source_string("asked", source)

    return fill


def test_a_model_comes_back_with_its_own_classes(sources) -> None:
    net = importlib.import_module(NET)
    model, x = net.Model(), taeda.rand(3, 2)

    def fill(exporter) -> None:
        exporter.intern(["model_of_test.**", "helper_of_model"])
        exporter.save_pickle("weights", "model.pkl", {"model": model, "x": x})
        exporter.save_pickle("weights", "inner.pkl", net.Model.Inner)

    exporter, data = written(fill)
    assert set(exporter.interned_modules()) == {
        "model_of_test.net",
        "model_of_test.layers",
        "helper_of_model",
    }
    (sources / "helper_of_model.py").write_text("factor = 0\n")
    importer = read(data)
    loaded = importer.load_pickle("weights", "model.pkl")
    assert taeda.equal(loaded["x"], x)
    assert taeda.equal(loaded["model"](x), model(x))
    assert type(loaded["model"]) is not net.Model
    assert type(loaded["model"]).__module__ == f"{importer.id()}.model_of_test.net"
    assert packaging.is_from_package(loaded["model"])
    assert not packaging.is_from_package(model)
    inner = importer.load_pickle("weights", "inner.pkl")
    assert inner is importer.import_module("model_of_test.net").Model.Inner


def test_tensors_share_memory_across_pickles() -> None:
    base = taeda.arange(6.0)

    def fill(exporter) -> None:
        exporter.save_pickle("a", "one.pkl", [base, base[2:]])
        exporter.save_pickle("a", "two.pkl", base.view(2, 3), pickle_protocol=4)

    _, data = written(fill)
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert [n for n in names if n.endswith(".storage")] == ["archive/.data/0.storage"]
    whole, part = read(data).load_pickle("a", "one.pkl")
    part.zero_()
    assert whole.tolist() == [0, 1, 0, 0, 0, 0]
    assert read(data).load_pickle("a", "two.pkl").tolist() == [[0, 1, 2], [3, 4, 5]]


PROGRAM = """
import sys
lib = __import__(sys.argv[1])
packaging = __import__(sys.argv[1] + ".package").package
if sys.argv[2] == "write":
    with packaging.PackageExporter(sys.argv[3]) as exporter:
        exporter.mock("numpy.**")
        exporter.save_source_string("one.two", "import numpy.linalg\\nvalue = 4")
        linear = lib.nn.Linear(2, 1)
        linear.weight.data.fill_(3)
        exporter.save_pickle("one", "p.pkl", [linear, lib.arange(3)])
else:
    importer = packaging.PackageImporter(sys.argv[3])
    linear, numbers = importer.load_pickle("one", "p.pkl")
    module = importer.import_module("one.two")
    print(module.value, linear.weight.tolist(), numbers.tolist())
    try:
        importer.import_module("numpy.linalg").call()
    except NotImplementedError as error:
        print("mocked" in str(error))
"""


@pytest.mark.parametrize(("writer", "reader"), [("taeda", "torch"), ("torch", "taeda")])
def test_packages_go_both_ways(writer, reader, tmp_path) -> None:
    def run(library: str, what: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, library, what]
        command.append(str(tmp_path / "package.pt"))
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout

    run(writer, "write")
    told = run(reader, "read").split("\n")
    assert [line for line in told if "USDT" not in line] == [
        "4 [[3.0, 3.0]] [0, 1, 2]",
        "True",
        "",
    ]


@pytest.mark.parametrize(
    ("source", "rules", "reason"),
    [
        ("import absent", [], "NO_ACTION"),
        ("import absent", [("deny", "absent")], "DENIED"),
        ("import sys", [], "NO_ACTION"),
        ("import _bisect", [], None),
        ("from .. import x", [], "DEPENDENCY_RESOLUTION_FAILED"),
        ("x =", [], "DEPENDENCY_RESOLUTION_FAILED"),
        ("__import__('absent', fromlist=['a'])", [], "NO_ACTION"),
        ("import taeda._C, torch", [], None),
    ],
)
def test_what_a_source_needs(source, rules, reason) -> None:
    if reason is None:
        written(of_source(source, *rules))
        return
    wanted = packaging.package_exporter.PackagingErrorReason[reason]
    with pytest.raises(packaging.PackagingError) as caught:
        written(of_source(source, *rules))
    assert wanted.value in str(caught.value)
    graph = caught.value.dependency_graph
    broken = {n: a["error"] for n, a in graph.nodes.items() if a.get("error")}
    assert list(broken.values()) == [wanted]
    ways = analyze.find_first_use_of_broken_modules(caught.value)
    assert list(ways) == list(broken)
    assert all(way[-1] == name for name, way in ways.items())


def test_the_error_says_what_needs_a_module_when_asked() -> None:
    with pytest.raises(packaging.PackagingError, match="needed by: asked -> absent"):
        written(of_source("import absent"), debug=True)


def test_a_pattern_that_must_match() -> None:
    def fill(exporter) -> None:
        exporter.extern("absent.*", allow_empty=False)

    with pytest.raises(packaging.EmptyMatchError, match=r"absent\.\*"):
        written(fill)


def test_a_mock_that_a_pickle_needs_is_an_error(sources) -> None:
    net = importlib.import_module(NET)

    def fill(exporter) -> None:
        exporter.mock("model_of_test.layers")
        exporter.intern("**")
        exporter.save_pickle("a", "m.pkl", net.Model())

    with pytest.raises(packaging.PackagingError, match="mocked out"):
        written(fill)


def test_hooks_see_every_module() -> None:
    seen = []

    def fill(exporter) -> None:
        for kind in ("extern", "mock", "intern"):
            register = getattr(exporter, f"register_{kind}_hook")
            register(lambda _, name, kind=kind: seen.append((kind, name)))
        gone = exporter.register_intern_hook(lambda *_: seen.append("gone"))
        gone.remove()
        exporter.extern("outside")
        exporter.mock("left_out")
        exporter.save_source_string("asked", "import outside, left_out")

    exporter, _ = written(fill)
    assert seen == [("extern", "outside"), ("mock", "left_out"), ("intern", "asked")]
    assert exporter.externed_modules() == ["outside"]
    assert exporter.get_rdeps("outside") == ["asked"]
    assert '"asked" -> "outside"' in exporter.all_paths("asked", "outside")


def test_files_of_a_package() -> None:
    source = (
        "import importlib.resources, data, torch_package_importer as own\n"
        "def text(): return own.load_text('data', 'a.txt')\n"
        "def same(): return importlib.resources.files(data) / 'a.txt'\n"
    )

    def fill(exporter) -> None:
        exporter.save_source_string("code", source, is_package=True)
        exporter.save_text("code", "b.txt", "inside")
        exporter.save_text("data", "a.txt", "text: ä")
        exporter.save_binary("data.deep", "b.bin", b"\0\1")

    _, data = written(fill)
    importer = read(data)
    code = importer.import_module("code")
    assert code.text() == code.same().read_text("utf-8") == "text: ä"
    assert importer.load_binary("data.deep", "b.bin") == b"\0\1"
    with pytest.raises(OSError, match=r"no 'c.txt' in 'data'"):
        importer.load_text("data", "c.txt")
    tree = importer.file_structure(include="**/*.txt", exclude="code/**")
    assert tree.has_file("data/a.txt") and not tree.has_file("code/b.txt")
    assert str(tree).split("\n")[1:] == ["    └── data", "        └── a.txt", ""]
    reader = importer.get_resource_reader("data")
    assert list(reader.contents()) == ["a.txt", "deep"]
    assert reader.is_resource("a.txt") and not reader.is_resource("deep")
    assert importer.python_version().startswith("3.")


def test_a_folder_is_read_as_its_file(tmp_path) -> None:
    _, data = written(of_source("value = [1]"))
    zipfile.ZipFile(io.BytesIO(data)).extractall(tmp_path)
    importer = packaging.PackageImporter(str(tmp_path / "archive"))
    assert importer.import_module("asked").value == [1]


def test_modules_are_apart() -> None:
    _, data = written(of_source("value = []\nname = __name__"))
    first, second = read(data), read(data)
    one, two = first.import_module("asked"), second.import_module("asked")
    assert one is first.import_module("asked") and one.value is not two.value
    assert "asked" not in sys.modules
    assert {first.id(), second.id()} == {m.name.partition(".")[0] for m in (one, two)}
    with pytest.raises(ModuleNotFoundError, match="'other'"):
        first.import_module("other")
    ordered = packaging.OrderedImporter(packaging.sys_importer, second)
    assert ordered.import_module("asked") is two
    assert ordered.import_module("json") is sys.modules["json"]


def test_an_error_in_a_module_shows_its_line() -> None:
    import traceback

    _, data = written(of_source("def fails():\n    return 1 / 0\n"))
    try:
        read(data).import_module("asked").fails()
    except ZeroDivisionError:
        assert "return 1 / 0" in traceback.format_exc()


def test_a_process_may_refuse_modules() -> None:
    _, data = written(of_source("import outside", ("extern", "outside")))
    with pytest.raises(ImportError, match="'outside', which is not allowed"):
        read(data, module_allowed=lambda name: name != "outside")


def test_an_object_of_one_package_goes_into_another() -> None:
    source = "class A:\n    value = 1\n"
    _, data = written(of_source(source))
    importer = read(data)
    made = importer.import_module("asked").A()

    def fill(exporter) -> None:
        exporter.intern("asked")
        exporter.save_pickle("p", "a.pkl", made)

    with pytest.raises((packaging.ObjNotFoundError, ModuleNotFoundError)):
        written(fill)
    _, again = written(fill, importer=[importer, packaging.sys_importer])
    loaded = read(again).load_pickle("p", "a.pkl")
    assert loaded.value == 1 and type(loaded) is not type(made)


def test_objects_may_say_how_they_are_packaged() -> None:
    source = (
        "def restore(importer, value): return Own(value, importer)\n"
        "class Own:\n"
        "    def __init__(self, value, importer=None):\n"
        "        self.value, self.importer = value, importer\n"
        "    def __reduce_package__(self, exporter):\n"
        "        return restore, (self.value + 1,)\n"
    )
    _, data = written(of_source(source))
    first = read(data)
    own = first.import_module("asked").Own(1)

    def fill(exporter) -> None:
        exporter.intern("asked")
        exporter.save_pickle("p", "a.pkl", [own, own])

    _, again = written(fill, importer=[first, packaging.sys_importer])
    second = read(again)
    one, two = second.load_pickle("p", "a.pkl")
    assert one is two and one.value == 2 and one.importer is second


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a.*", ["a.b", "a.bc"], ["a", "a.b.c", "b"]),
        ("a.**", ["a", "a.b", "a.b.c"], ["ab", "b.a"]),
        ("a*.b", ["a.b", "ax.b"], ["a.x.b", "a"]),
        ("**.b", ["b", "a.b", "a.c.b"], ["b.a"]),
        (["a", "b.*"], ["a", "b.x"], ["b"]),
    ],
)
def test_patterns(pattern, matching, others) -> None:
    group = packaging.GlobGroup(pattern)
    assert [n for n in matching + others if group.matches(n)] == matching
    with pytest.raises(ValueError, match="whole segment"):
        packaging.GlobGroup("a**.b")


def test_the_modules_that_a_call_runs() -> None:
    import json

    found = analyze.trace_dependencies(json.dumps, [({"a": 1},)])
    assert "json" in found and pathlib.__name__ not in found


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda e: e.save_module(sys), TypeError, "name of a module"),
        (lambda e: e.save_source_file("a", "/nonexistent"), FileNotFoundError, "non"),
        (lambda e: e.save_pickle("a", "b", 1, pickle_protocol=2), AssertionError, "3"),
        (
            lambda e: (e.save_text("a", "b", ""),) * 1 and e.save_text("a", "b", ""),
            AssertionError,
            "there is a record 'a/b' already",
        ),
    ],
)
def test_refused_arguments(call, kind, text) -> None:
    with pytest.raises(kind, match=text):
        written(call)
