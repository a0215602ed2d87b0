"""What `taeda.hub` fetches: data only, checked by its name, whole or not there."""

from __future__ import annotations

import hashlib
import http.server
import inspect
import pickle
import shutil
import threading
import warnings

import pytest
import taeda


class Runs:
    """Unpickling it copies a file."""

    def __init__(self, source, target) -> None:
        self.arguments = str(source), str(target)

    def __reduce__(self):
        return shutil.copyfile, self.arguments


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        claimed, body = self.server.files[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(claimed))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def site():
    """(address, path -> (claimed length, bytes)) of a server in this process."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files = {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", server.files
    server.shutdown()
    thread.join()
    server.server_close()


def weights(path) -> bytes:
    taeda.save({"a": taeda.ones(2)}, path)
    return path.read_bytes()


def fetch(url: str, folder, **options):
    return taeda.hub.load_state_dict_from_url(
        url, model_dir=str(folder), progress=False, **options
    )


def test_a_fetched_file_runs_nothing(tmp_path) -> None:
    proof = tmp_path / "proof"
    taeda.save({"a": Runs(__file__, proof)}, tmp_path / "hostile.pt")
    url = (tmp_path / "hostile.pt").as_uri()
    for options in ({}, {"weights_only": True}, {"weights_only": None}):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
            fetch(url, tmp_path / "cache", **options)
    assert not proof.exists()


def test_code_runs_when_asked_for_and_with_a_warning(tmp_path) -> None:
    proof = tmp_path / "proof"
    taeda.save({"a": Runs(__file__, proof)}, tmp_path / "trusted.pt")
    url = (tmp_path / "trusted.pt").as_uri()
    with pytest.warns(UserWarning, match="runs any code that whoever wrote it") as seen:
        fetch(url, tmp_path / "cache", weights_only=False)
    assert proof.exists()
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taeda.save({"a": taeda.ones(2)}, tmp_path / "plain.pt")
        url = (tmp_path / "plain.pt").as_uri()
        assert fetch(url, tmp_path / "cache")["a"].tolist() == [1, 1]


def test_the_parameters_are_those_of_pytorch() -> None:
    names = (
        "url model_dir map_location progress check_hash file_name weights_only".split()
    )
    signature = inspect.signature(taeda.hub.load_state_dict_from_url)
    assert list(signature.parameters) == names


def test_a_hash_in_the_name(tmp_path, site) -> None:
    address, files = site
    body = weights(tmp_path / "w.pt")
    digest = hashlib.sha256(body).hexdigest()
    good, bad = f"/w-{digest[:8]}.pt", "/w-0badc0de.pt"
    files[good] = files[bad] = len(body), body
    folder = tmp_path / "cache"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for check in (False, True):
            fetch(address + good, folder, check_hash=check)
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "0badc0de"'):
        fetch(address + bad, folder, check_hash=True)
    assert [p.name for p in folder.iterdir()] == [good[1:]]
    # Not asked for: names may end in other hexadecimal digits.
    with pytest.warns(UserWarning, match=f"carries 0badc0de.*begins {digest[:8]}"):
        assert fetch(address + bad, folder)["a"].tolist() == [1, 1]


@pytest.mark.parametrize("name", ["w-20240131.pt", "w-50.pt", "w-.pt", "w.pt"])
def test_dates_and_sizes_are_no_hashes(name, tmp_path, site) -> None:
    address, files = site
    body = weights(tmp_path / "w.pt")
    files[f"/{name}"] = len(body), body
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch(f"{address}/{name}", tmp_path / "cache")["a"].tolist() == [1, 1]


def test_a_connection_that_breaks_leaves_nothing(tmp_path, site) -> None:
    address, files = site
    body = weights(tmp_path / "w.pt")
    files["/w.pt"] = len(body) + 1, body
    folder = tmp_path / "cache"
    with pytest.raises(RuntimeError, match=f"{len(body)} of {len(body) + 1} bytes"):
        fetch(f"{address}/w.pt", folder)
    assert not list(folder.iterdir())
    old = folder / "old.pt"
    old.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="broke off"):
        taeda.hub.download_url_to_file(f"{address}/w.pt", str(old), progress=False)
    assert old.read_bytes() == b"old" and len(list(folder.iterdir())) == 1
