"""Repositories of `taeda.hub`: a server here plays GitHub."""

from __future__ import annotations

import http.server
import io
import json
import sys
import threading
import zipfile

import pytest
from taeda import _github, hub

HUBCONF = '''
dependencies = ["json"]
from helper import VERSION
def model(size, scale=1):
    """Makes a model."""
    import late  # while the folder is on the path
    return size * scale, VERSION, late.VALUE
def _hidden():
    pass
constant = 3
'''


def archive(files: dict[str, str], root: str = "owner-name-1a2b/") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        for name, text in files.items():
            target.writestr(root + name, text)
    return stream.getvalue()


def repository(version: int) -> dict[str, str]:
    helper = f"VERSION = {version}"
    return {"hubconf.py": HUBCONF, "helper.py": helper, "late.py": "VALUE = 7"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, body = self.server.pages.get(self.path, (404, b""))
        if callable(body):
            status, body = body(self.headers)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def site(monkeypatch, tmp_path):
    """The server: `pages` path -> (status, body or function of headers), `asked`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    heads = [{"name": "main", "commit": {"sha": "1a2b3c"}}]
    server.asked, server.pages = (
        [],
        {
            "/owner/name/tree/main/": (200, b""),
            "/owner/name/zipball/main": (200, archive(repository(1))),
            "/repos/owner/name/branches?per_page=100&page=1": (200, json.dumps(heads)),
            "/repos/owner/name/branches?per_page=100&page=2": (200, "[]"),
            "/repos/owner/name/tags?per_page=100&page=1": (200, "[]"),
        },
    )
    for path, (status, body) in server.pages.items():
        body = body.encode() if isinstance(body, str) else body
        server.pages[path] = status, body
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(_github, "_SITE", address)
    monkeypatch.setattr(_github, "_API", address)
    monkeypatch.setattr(hub, "_chosen", str(tmp_path / "hub"))
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_modules_left():
    """Each test imports the repository's own modules anew."""
    before = list(sys.path)
    yield
    assert sys.path == before
    for name in ("helper", "late"):
        sys.modules.pop(name, None)


@pytest.fixture
def answers(monkeypatch):
    """What the user types, one answer per question."""
    given: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: given.pop(0))
    return given


def test_a_repository_is_fetched_once(site, capsys) -> None:
    found = hub.load("owner/name", "model", 2, scale=3, trust_repo=True)
    assert found == (6, 1, 7)
    assert "/owner/name/zipball/main" in site.asked
    site.asked.clear()
    capsys.readouterr()
    assert hub.load("owner/name:main", "model", 1) == (1, 1, 7)
    assert site.asked == []
    assert "Using cache found in" in capsys.readouterr().err
    hub.load("owner/name:main", "model", 1, verbose=False)
    assert capsys.readouterr().err == ""
    assert hub.list("owner/name:main") == ["model"]
    assert hub.help("owner/name:main", "model") == "Makes a model."


def test_force_reload_replaces_the_files(site, tmp_path) -> None:
    hub.load("owner/name:main", "model", 1, trust_repo=True)
    site.pages["/owner/name/zipball/main"] = 200, archive(repository(2))
    sys.modules.pop("helper")
    found = hub.load("owner/name:main", "model", 1, force_reload=True)
    assert found[1] == 2
    names = sorted(p.name for p in (tmp_path / "hub").iterdir())
    assert names == ["owner_name_main", "trusted_list"]


def test_a_broken_fetch_keeps_the_old_files(site, tmp_path) -> None:
    hub.load("owner/name:main", "model", 1, trust_repo=True)
    site.pages["/owner/name/zipball/main"] = 200, b"no archive"
    with pytest.raises(zipfile.BadZipFile):
        hub.load("owner/name:main", "model", 1, force_reload=True)
    assert hub.load("owner/name:main", "model", 1) == (1, 1, 7)
    assert len(list((tmp_path / "hub").iterdir())) == 2


def test_who_is_trusted(site, tmp_path, answers) -> None:
    listed = tmp_path / "hub" / "trusted_list"
    for answer in ("", "n", "No"):
        answers.append(answer)
        with pytest.raises(RuntimeError, match="Untrusted repository"):
            hub.load("owner/name:main", "model", 1)
    answers.append("perhaps")
    with pytest.raises(ValueError, match="Unrecognized response perhaps"):
        hub.load("owner/name:main", "model", 1)
    assert listed.read_text() == "" and site.asked == []
    answers.append("y")
    hub.load("owner/name:main", "model", 1)
    assert listed.read_text() == "owner_name\n"
    hub.load("owner/name:main", "model", 1, force_reload=True)  # asks no more
    answers.append("n")
    with pytest.raises(RuntimeError, match="Untrusted repository"):
        hub.load("owner/name:main", "model", 1, trust_repo=False)
    assert not answers


def test_refs_of_forks_are_refused(site) -> None:
    site.pages["/owner/name/zipball/fork"] = 200, archive(repository(6))
    with pytest.raises(ValueError, match="Cannot find fork in"):
        hub.load("owner/name:fork", "model", 1, trust_repo=True)
    options = {"trust_repo": True, "skip_validation": True}
    assert hub.load("owner/name:fork", "model", 1, **options)[1] == 6
    # The start of a commit that a branch ends in.
    site.pages["/owner/name/zipball/1a2b"] = 200, archive(repository(1))
    assert hub.load("owner/name:1a2b", "model", 1, trust_repo=True)


def test_the_token_is_used_and_left_out_when_refused(site, monkeypatch) -> None:
    page = "/repos/owner/name/branches?per_page=100&page=1"
    seen, (_, body) = [], site.pages[page]

    def guarded(headers):
        seen.append(headers["Authorization"])
        return (200, body) if len(seen) == 1 else (403 if seen[-1] else 200, body)

    site.pages[page] = 0, guarded
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    for _ in range(2):
        hub.load("owner/name:main", "model", 1, trust_repo=True, force_reload=True)
    assert seen == ["token secret", "token secret", None]


def test_a_repository_without_main(site) -> None:
    del site.pages["/owner/name/tree/main/"]
    assert _github.parse("owner/name", "") == ("owner", "name", "master")
    site.pages["/owner/name/tree/main/"] = 500, b""
    with pytest.raises(OSError, match="500"):
        _github.parse("owner/name", "")


def test_without_a_connection_the_cache_serves(site, monkeypatch, tmp_path) -> None:
    hub.load("owner/name", "model", 1, trust_repo=True)
    monkeypatch.setattr(_github, "_SITE", "http://127.0.0.1:1")
    assert hub.load("owner/name", "model", 1) == (1, 1, 7)
    with pytest.raises(RuntimeError, match="no internet connection and the repo"):
        hub.load("owner/other", "model", 1)


def test_an_ambiguous_ref_is_the_branch(site) -> None:
    site.pages["/owner/name/zipball/main"] = 300, b""
    content = archive(repository(8))
    site.pages["/owner/name/zipball/refs/heads/main"] = 200, content
    with pytest.warns(UserWarning, match="The ref main is ambiguous"):
        assert hub.load("owner/name:main", "model", 1, trust_repo=True)[1] == 8


@pytest.mark.parametrize("name", ["../../evil.py", "/evil.py", "a/../../b", "c:/x"])
def test_archives_stay_in_their_folder(site, tmp_path, name) -> None:
    site.pages["/owner/name/zipball/main"] = 200, archive({name: "1"}, root="")
    with pytest.raises(ValueError, match="leaves its folder"):
        hub.load("owner/name:main", "model", 1, trust_repo=True)
    kept = {p.name for p in tmp_path.rglob("*")}
    assert kept == {"hub", "trusted_list"}


def test_bad_requests(tmp_path) -> None:
    for text in ("name", "a/b/c", "a/b:", "../b:c/..:d"):
        with pytest.raises(ValueError, match="expected 'owner/name'"):
            _github.parse(text, "")
    with pytest.raises(ValueError, match='Unknown source: "gitlab"'):
        hub.load("owner/name", "model", source="gitlab")
    (tmp_path / "hubconf.py").write_text("dependencies = ['json', 'no_such_x']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_x"):
        hub.load(str(tmp_path), "model", source="local")
    (tmp_path / "hubconf.py").write_text("value = 1")
    with pytest.raises(RuntimeError, match="Cannot find callable value in hubconf"):
        hub.load(str(tmp_path), "value", source="Local")
    with pytest.raises(ValueError, match="model should be a string"):
        hub.load(str(tmp_path), 3, source="local")
