"""The documentation site: what `tools/dev docs` builds is whole and true."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MOST_WITHOUT_EXAMPLE = 50
MOST_OTHERS_WITHOUT_EXAMPLE = 1_400
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tools'}"}


def run(*words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site. Links that lead nowhere end its build (MkDocs, strict)."""
    folder = tmp_path_factory.mktemp("site")
    printed = run("-m", "docsite.build", folder)
    assert "WARNING" not in printed and "ERROR" not in printed, printed
    return folder


def table(site: Path, name: str) -> dict[str, str]:
    return json.loads((site / f"{name}.json").read_text())


def test_every_public_name_has_an_anchor(site: Path) -> None:
    pages: dict[str, list[str]] = {}
    for name, page in table(site, "names").items():
        pages.setdefault(page, []).append(name)
    missing = []
    for page, names in pages.items():
        shown = (site / "html" / "api" / page / "index.html").read_text()
        anchors = set(re.findall(r'id="([^"]+)"', shown))
        missing += [name for name in names if name not in anchors]
    assert missing == []
    assert sum(map(len, pages.values())) > 7000


def test_links_between_pages_lead_somewhere(site: Path) -> None:
    """Of the built pages themselves, whatever MkDocs has checked."""
    html = site / "html"
    anchors: dict[Path, set[str]] = {}
    links = set()
    for path in html.rglob("*.html"):
        text = path.read_text()
        anchors[path] = set(re.findall(r'(?:id|name)="([^"]+)"', text))
        # Those that the theme itself has are counted once, as the same pairs.
        links |= {(path, target) for target in re.findall(r'href="([^"]*)"', text)}
    broken, counted = [], 0
    for path, target in links:
        if re.match(r"[a-z]+:|//", target):
            continue
        place, _, anchor = target.partition("#")
        found = path if not place else Path(os.path.normpath(path.parent / place))
        if path.name == "404.html" and place.startswith("/"):
            found = html / place.lstrip("/")
        found = found / "index.html" if found.is_dir() else found
        counted += 1
        if not found.exists() or (anchor and anchor not in anchors.get(found, ())):
            broken.append((str(path.relative_to(html)), target))
    assert broken == []
    assert counted > 10000


def test_examples_run(site: Path) -> None:
    printed = run("-m", "docsite.examples", site / "examples.json")
    found = re.search(r"(\d+) examples, 0 names fail", printed)
    assert found and int(found.group(1)) > 2000, printed[-2000:]


def test_nearly_all_operators_have_an_example(site: Path) -> None:
    """Those whose arguments no simple values fit; how many they are may only fall."""
    without = list(table(site, "bare"))
    assert len(without) <= MOST_WITHOUT_EXAMPLE, without
    # Functions and classes that are no operators; methods are not counted.
    assert len(table(site, "unshown")) <= MOST_OTHERS_WITHOUT_EXAMPLE


def test_operators_have_what_their_records_say(site: Path) -> None:
    add = (site / "source/api/taeda/a.md").read_text().partition("{#taeda.add}")[2]
    add = add.partition("\n## ")[0]
    for words in (
        "add(input, other, *, alpha=1, out=None) -> Tensor",
        "out = self + alpha \\* other",
        "broadcast against each other",
        "`other`: grad \\* conj(alpha)",
        "in place: add\\_",
        ">>> taeda.add(input, other)",
    ):
        assert words in add, words
