"""The page of a profile: what it holds, and that a browser shows it."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import subprocess

import pytest
import taeda

from .test_events import recorded

nn = taeda.nn


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    kept = []

    def step() -> None:
        y = model(taeda.ones(32, 64))
        y.sum().backward()
        kept.append(y)

    options = {"profile_memory": True, "with_stack": True, "with_modules": True}
    path = tmp_path_factory.mktemp("page") / "profile.html"
    with taeda.profiler.record_function("</script><b>"):
        prof = recorded(taeda, step, **options)
    prof.export_page(str(path))
    return str(path)


def data_of(path: str) -> dict:
    with open(path) as file:
        text = file.read()
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def test_the_page_needs_nothing_from_elsewhere(page) -> None:
    outside = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs) -> None:
            outside.extend(v for k, v in attrs if k in ("src", "href", "action"))

    with open(page) as file:
        text = file.read()
    Reader().feed(text)
    assert outside == []
    assert "default-src 'none'" in text
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


def test_events_flame_and_memory(page) -> None:
    data = data_of(page)
    names = data["names"]
    shown = {names[e[0]] for e in data["events"]}
    assert {"aten::linear", "ReluBackward0", "Sequential", "Sequential.2"} <= shown
    for _, start, length, depth, thread, *_ in data["events"]:
        assert 0 <= start and start + length <= data["length"] + 1
        assert depth < data["threads"][thread]["depth"]
    depth = {names[e[0]]: e[3] for e in data["events"]}
    assert depth["Sequential"] == 0 and depth["Sequential.2"] == 1

    def check(node) -> set:
        inside = sum(child[1] for child in node[2])
        assert inside <= node[1] * 1.001 + 0.1
        return {names[node[0]]}.union(*(check(child) for child in node[2]))

    frames = check(data["flame"])
    assert "aten::linear" in frames
    assert any("test_page.py" in frame for frame in frames)
    modules = {names[m] for m in data["modules"]}
    assert {"Sequential.0", "Sequential.2"} <= modules
    held = {}
    for _, module, size in data["memory"]:
        held[names[module]] = size
    assert held["Sequential.2"] >= 32 * 10 * 4  # the result, and gradients


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
NODE = shutil.which("node")


def browser_says(page: str, tmp_path) -> str:
    """The document's text after its scripts ran, and what they counted."""
    probe = """<script>
    const text = [timeline.drawn, flame.shown.length, Math.round(memory.peak),
      document.querySelectorAll("#operators tr").length].join(" ");
    document.title = "shown " + text;
    </script>"""
    copy = tmp_path / "probe.html"
    with open(page) as file:
        copy.write_text(file.read().replace("</body>", probe + "</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    flags += [f"--user-data-dir={tmp_path}/user", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [BROWSER, *flags, copy.as_uri()], capture_output=True, text=True, timeout=120
    )
    return done.stdout


NODE_PROBE = r"""
const fs = require("fs");
const text = fs.readFileSync(process.argv[2], "utf8");
const scripts = [...text.matchAll(/<script([^>]*)>([^]*?)<\/script>/g)];
const rows = [], marks = {};
const pen = new Proxy({ rects: 0 }, { get: (t, k) =>
  k in t ? t[k] : () => { if (k === "fillRect") ++t.rects; }, set: (t, k, v) => true });
const element = id => marks[id] ??= { id, style: {}, textContent: "", clientWidth: 1000,
  getContext: () => pen, addEventListener() {}, append() {},
  insertRow() { const row = { append() {} }; rows.push(row); return row; } };
element("data").textContent = scripts[0][2];
globalThis.document = { getElementById: element, createElement: element };
globalThis.window = { addEventListener() {}, devicePixelRatio: 1, innerWidth: 1000 };
(0, eval)(scripts[1][2] + `;globalThis.found =
  [timeline.drawn, flame.shown.length, Math.round(memory.peak)]`);
console.log("<title>shown " + [...found, rows.length].join(" ") + "</title>");
"""


def node_says(page: str, tmp_path) -> str:
    """The same with the script alone, over a document that counts."""
    (tmp_path / "probe.js").write_text(NODE_PROBE)
    command = [NODE, str(tmp_path / "probe.js"), page]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True
    ).stdout


# A browser, and Node over a canvas that counts: those of them that are installed.
SHOWING = [say for say, there in ((browser_says, BROWSER), (node_says, NODE)) if there]


@pytest.mark.parametrize("say", SHOWING)
def test_scripts_draw_everything(page, tmp_path, say) -> None:
    pattern = r"<title>shown (\d+) (\d+) (\d+) (\d+)</title>"
    found = re.search(pattern, say(page, tmp_path))
    drawn, bars, peak, rows = map(int, found.groups())
    data = data_of(page)
    assert 0 < drawn <= len(data["events"])
    assert bars > 3 and peak >= 32 * 64 * 4
    assert rows == len(data["operators"]) + 1
