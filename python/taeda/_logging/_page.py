"""What the compiler says, as a page that a person can look through."""

from __future__ import annotations

import html
import threading
import time

__all__ = ["Page"]

_HEAD = """<!DOCTYPE html>
<meta charset="utf-8">
<title>taeda.compile</title>
<style>
body { font: 14px sans-serif; margin: 1em auto; max-width: 70em; }
pre { background: #f4f4f4; overflow-x: auto; padding: 0.6em; }
summary { cursor: pointer; padding: 0.15em 0; }
b { display: inline-block; min-width: 8em; }
.graph_breaks b, .recompiles b, .perf_hints b { color: #b00; }
</style>
<h1>taeda.compile</h1>
<p>In the order in which it happened, with the seconds since the page was begun. Red is
what costs time.</p>
"""


class Page:
    """An HTML file, each entry of which is whole as soon as it is there.

    Threads may share one. An entry is one line that unfolds.

    Args:
        path: of the file, which is written anew.
    """

    def __init__(self, path) -> None:
        self._file = open(path, "w", encoding="utf-8")
        self._lock, self._begin = threading.Lock(), time.monotonic()
        self._write(_HEAD)

    def _write(self, text: str) -> None:
        with self._lock:
            if not self._file.closed:
                self._file.write(text)
                self._file.flush()

    def add(self, artifact: str, text: str) -> None:
        """Writes an entry.

        Args:
            artifact: its kind, a name of `ARTIFACTS`.
            text: a line that says what it is, and more lines.
        """
        title, _, rest = text.partition("\n")
        seconds = time.monotonic() - self._begin
        self._write(
            f'<details class="{artifact}"><summary><b>{artifact}</b> '
            f"{seconds:.3f} {html.escape(title)}</summary>\n"
            f"<pre>{html.escape(rest or title)}</pre></details>\n"
        )

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *exception) -> None:
        with self._lock:
            self._file.close()
