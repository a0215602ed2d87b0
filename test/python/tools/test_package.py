"""Licence texts of the wheel, and what the audit of its libraries refuses."""

from __future__ import annotations

import pathlib
import zipfile

import pytest
from devtool import audit, cmake, licences, package
from devtool.shell import Failure


def library(**changes: object) -> audit.Library:
    values = {
        "name": "libtaeda.so",
        "bytes": 1,
        "needed": ["libc.so.6", "libgomp.so.1"],
        "paths": ["$ORIGIN"],
        "versions": {"GLIBC": (2, 17)},
        "texts": ["LICENSE"],
    }
    return audit.Library(**{**values, **changes})


def test_texts_are_gathered(tmp_path: pathlib.Path) -> None:
    (tmp_path / "licenses").mkdir()
    (tmp_path / "licenses" / "old.txt").write_text("of a library that is gone")
    written = licences.collect(tmp_path / "licenses")
    assert sorted(written) == sorted((tmp_path / "licenses").iterdir())
    assert {path.name for path in written} == set(licences.TEXTS)
    for path in written:
        assert len(path.read_text()) > 1000


def test_a_missing_package_is_named(monkeypatch, tmp_path: pathlib.Path) -> None:
    text = {"x.txt": lambda: licences._carried("no-such-package", "LICENSE")}
    monkeypatch.setattr(licences, "TEXTS", text)
    with pytest.raises(Failure, match="no-such-package.*is not installed"):
        licences.collect(tmp_path / "licenses")


def test_a_wrong_text_is_refused(monkeypatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(licences, "TEXTS", {"fmt.txt": lambda: "Copyright me"})
    with pytest.raises(Failure, match="does not mention 'Victor Zverovich'"):
        licences.collect(tmp_path / "licenses")


def test_every_text_belongs_to_a_library() -> None:
    used = {name for texts in licences.LIBRARIES.values() for name in texts}
    assert used == set(licences.PHRASES) == {"LICENSE", *licences.TEXTS}


def test_a_good_library_has_no_faults() -> None:
    assert audit.faults(library(), {"libtaeda.so"}) == []
    needs = library(needed=["libtaeda.so"], paths=["$ORIGIN/lib"])
    assert audit.faults(needs, {"libtaeda.so"}) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"needed": ["libopenblas.so.0"]}, "needs libopenblas.so.0"),
        ({"needed": ["libpython3.11.so.1.0"]}, "needs libpython3.11"),
        ({"paths": ["/usr/local/lib"]}, "searches /usr/local/lib"),
        ({"paths": ["$ORIGIN/../../.."]}, "searches"),
        ({"paths": [""]}, "an empty path"),
        ({"versions": {"GLIBC": (2, 99)}}, "needs GLIBC"),
        ({"versions": {"GLIBCXX": (3, 4, 31)}}, "needs GLIBCXX"),
        ({"texts": []}, "no licence"),
    ],
)
def test_a_bad_library_is_refused(changes: dict[str, object], message: str) -> None:
    (fault,) = audit.faults(library(**changes), {"libtaeda.so"})
    assert fault.startswith("libtaeda.so: ") and message in fault


def test_readelf_is_understood() -> None:
    read = audit.read_library(cmake.build_dir() / "lib" / "libtaeda_dnn.so")
    assert {"libtaeda.so", "libdnnl.so.3", "libc.so.6"} <= set(read.needed)
    assert read.paths == ["$ORIGIN"]
    assert set(read.versions) == {"GLIBC", "GLIBCXX"}
    assert (2, 2, 5) < read.versions["GLIBC"] <= audit.NEWEST["GLIBC"]


def test_a_wheel_without_texts_and_libraries_is_refused(
    tmp_path: pathlib.Path,
) -> None:
    wheel = tmp_path / "taeda-1-py3-none-any.whl"
    texts = "taeda-1.dist-info/licenses/"
    with zipfile.ZipFile(wheel, "w") as archive:
        source = cmake.build_dir() / "lib" / "libtaeda_dnn.so"
        archive.write(source, "taeda/lib/libtaeda_dnn.so")
        archive.write(source, "taeda/lib/libstranger.so")
        archive.writestr(texts + "LICENSE", "Copyright Taeda authors")
        archive.writestr(texts + "third_party/licenses/fmt.txt", "somebody else's")
    libraries, wrong = audit.audit(wheel)
    assert sorted(x.name for x in libraries) == ["libstranger.so", "libtaeda_dnn.so"]
    assert "libstranger.so: no licence is known for it (devtool/licences.py)" in wrong
    assert "licence text Eigen.txt is not in the wheel" in wrong
    assert "licence text fmt.txt does not mention 'Victor Zverovich'" in wrong
    assert "libtaeda.so is not in the wheel" in wrong
    assert any(x.startswith("libtaeda_dnn.so: needs libdnnl.so.3") for x in wrong)
    assert audit.report(wheel) is False


def test_the_copy_of_the_sources_is_a_clone_of_them(tmp_path: pathlib.Path) -> None:
    package.copy_sources(tmp_path)
    assert (tmp_path / "pyproject.toml").is_file()
    assert (tmp_path / "python" / "taeda" / "py.typed").is_file()
    assert not (tmp_path / "build").exists()
    assert not (tmp_path / "python" / "taeda" / "lib").exists()
