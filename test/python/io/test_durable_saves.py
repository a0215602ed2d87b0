"""A save is on the disk when it returns, and one that is cut short leaves the old file.

The order of the calls is traced; processes are killed before each of them and at
random moments.
"""

from __future__ import annotations

import errno
import os
import pathlib
import random
import signal
import stat
import subprocess
import sys
import time

import pytest
import taeda
from taeda._io import safetensors

PACKAGES = str(pathlib.Path(taeda.__file__).parents[1])
SAVERS = {
    "zip": lambda path: taeda.save({"a": taeda.ones(9)}, path),
    "legacy": lambda path: taeda.save(
        {"a": taeda.ones(9)}, path, _use_new_zipfile_serialization=False
    ),
    "safetensors": lambda path: safetensors.save_file({"a": taeda.ones(9)}, path),
}


@pytest.fixture
def calls(monkeypatch) -> list[tuple]:
    """What was synced and renamed, in order, with the sizes of files by then."""
    seen = []
    fsync, replace = os.fsync, os.replace

    def traced_fsync(fd) -> None:
        facts = os.fstat(fd)
        folder = stat.S_ISDIR(facts.st_mode)
        seen.append(("folder" if folder else "file", facts.st_ino, facts.st_size))
        fsync(fd)

    def traced_replace(source, target) -> None:
        seen.append(("rename", os.stat(source).st_ino, os.fspath(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(os, "replace", traced_replace)
    return seen


@pytest.mark.parametrize("way", SAVERS)
def test_file_then_name_then_folder(way, tmp_path, calls) -> None:
    path = tmp_path / "x"
    SAVERS[way](path)
    facts = path.stat()
    assert [call[0] for call in calls] == ["file", "rename", "folder"]
    # What was synced is the whole file, and the folder is the one it lies in.
    assert calls[0][1:] == (facts.st_ino, facts.st_size)
    assert calls[1][1:] == (facts.st_ino, str(path))
    assert calls[2][1] == tmp_path.stat().st_ino


def test_through_a_link_the_folder_of_the_file_is_synced(tmp_path, calls) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real / "x")
    SAVERS["zip"](tmp_path / "link")
    assert calls[2][:2] == ("folder", real.stat().st_ino)
    assert (tmp_path / "link").is_symlink()


def test_a_relative_name(tmp_path, calls, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    SAVERS["zip"]("x")
    assert calls[2][:2] == ("folder", tmp_path.stat().st_ino)


def test_file_objects_and_devices_are_not_synced(tmp_path, calls) -> None:
    with open(tmp_path / "x", "wb") as file:
        SAVERS["zip"](file)
    SAVERS["zip"]("/dev/null")
    assert calls == []


def test_a_disk_that_fails_keeps_the_old_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def broken(fd) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="broken disk"):
        SAVERS["zip"](path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_file_systems_that_cannot_sync_folders(code, tmp_path, monkeypatch) -> None:
    fsync = os.fsync

    def files_only(fd) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(code, "folders cannot be synced")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", files_only)
    SAVERS["zip"](tmp_path / "x")
    assert taeda.load(tmp_path / "x")["a"].sum() == 9


def test_a_folder_that_is_not_there(tmp_path) -> None:
    path = tmp_path / "no" / "x"
    with pytest.raises(RuntimeError, match=r"Parent directory .*no does not exist"):
        SAVERS["zip"](path)
    with pytest.raises(FileNotFoundError, match="no/x"):
        SAVERS["safetensors"](path)


# Dies before the COUNT-th call of any of the functions that a save makes.
CHILD = """
import os, signal, sys
import taeda
path, count = sys.argv[1], int(sys.argv[2])
value = {"a": taeda.full((300000,), 2.0), "b": taeda.full((300000,), 2.0)}
left = [count]
def dying(function):
    def call(*args):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*args)
    return call
from taeda._io.atomic import AtomicFile
AtomicFile.write = dying(AtomicFile.write)
for name in ("open", "fsync", "replace", "close"):
    setattr(os, name, dying(getattr(os, name)))
taeda.save(value, path)
"""


def run_child(text: str, *args) -> int:
    env = {**os.environ, "PYTHONPATH": PACKAGES}
    command = [sys.executable, "-c", text, *map(str, args)]
    return subprocess.run(command, env=env, check=False).returncode


def test_killed_before_any_of_its_calls(tmp_path) -> None:
    path = tmp_path / "x.pt"
    states = []
    for count in range(20):
        taeda.save({"a": taeda.ones(300000)}, path)
        code = run_child(CHILD, path, count)
        states.append(taeda.load(path)["a"].sum().item() / 300000)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert code == 0 and states[-1] == 2
    # The old file, until the rename; then the new one.
    assert states == sorted(states) and states.count(1) >= 5 and states.count(2) >= 2


LOOP = """
import sys
import taeda
for i in range(10**6):
    taeda.save({"a": taeda.full((200000,), float(i)), "i": i}, sys.argv[1])
    print(i, flush=True)
"""


def test_killed_at_any_moment(tmp_path) -> None:
    path, rng = tmp_path / "x.pt", random.Random(3)
    env = {**os.environ, "PYTHONPATH": PACKAGES}
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", LOOP, path], env=env, stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(rng.random() / 5)
        child.kill()
        finished = child.stdout.read().split()
        child.wait()
        state = taeda.load(path)
        assert (state["a"] == state["i"]).all()
        assert state["i"] >= int(finished[-1] if finished else 0)


@pytest.mark.parametrize("zipped", [True, False])
def test_what_is_saved_to_an_open_file_is_there_by_its_name(tmp_path, zipped) -> None:
    given = {"x": taeda.arange(3)}
    with open(tmp_path / "held.pt", "wb") as file:
        taeda.save(given, file, _use_new_zipfile_serialization=zipped)
        found = taeda.load(tmp_path / "held.pt")
    assert found["x"].tolist() == [0, 1, 2]
