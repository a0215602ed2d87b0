"""Checks of a text, one after the other: what has to stand in it, and where."""

from __future__ import annotations

import re

__all__ = ["FileCheck"]


class FileCheck:
    """A list of checks; `run` goes through a text with them.

    A check looks behind the place where the one before was found. Those of `check_dag`
    that follow one another are found in any order. Each method returns the object.

    Raises:
        RuntimeError: in `run`: a check fails; the message names it and the text.

    Example:
        >>> text = "a = f(x)\\nb = g(a)\\n"
        >>> FileCheck().check("f(").check_next("g(").check_not("h(").run(text)
    """

    def __init__(self) -> None:
        self._checks: list[tuple[str, str]] = []

    def _add(self, kind: str, text: str):
        self._checks.append((kind, text))
        return self

    def check(self, text: str):
        """The text stands somewhere behind."""
        return self._add("", re.escape(text))

    def check_regex(self, text: str):
        """What fits the pattern stands somewhere behind."""
        return self._add("", text)

    def check_next(self, text: str):
        """The text stands in the next line."""
        return self._add("next", re.escape(text))

    def check_same(self, text: str):
        """The text stands behind in the same line."""
        return self._add("same", re.escape(text))

    def check_dag(self, text: str):
        """The text stands somewhere behind the check that is no `check_dag`."""
        return self._add("dag", re.escape(text))

    def check_not(self, text: str):
        """The text does not stand before the place of the next check, or at all."""
        return self._add("not", re.escape(text))

    def check_count(self, text: str, count: int, exactly: bool = False):
        """The text stands so many times behind; `exactly`: and not once more."""
        for _ in range(count):
            self.check(text)
        return self.check_not(text) if exactly else self

    def run(self, test_file) -> None:
        """Go through a text (of any object, as `str` gives it) with all checks."""
        whole, at, barred = str(test_file), 0, []
        reached = 0  # the end of what checks in any order have found
        last = ""
        for kind, pattern in self._checks:
            if kind == "not":
                barred.append(pattern)
                last = kind
                continue
            if kind != "dag" or last != "dag":
                at = max(at, reached)
            line = whole.find("\n", at) + 1 or len(whole)
            begin = line if kind == "next" else at
            match = re.compile(pattern).search(whole, begin)
            if match is None:
                _fail(
                    f'Expected to find "{_plain(pattern)}" but did not find it', whole
                )
            between = whole[at : match.start()]
            if kind in ("next", "same") and "\n" in whole[begin : match.start()]:
                place = "the next line" if kind == "next" else "the same line"
                _fail(f'Expected to find "{_plain(pattern)}" in {place}', whole)
            _refuse(barred, between, whole)
            barred = []
            reached, last = max(reached, match.end()), kind
            at = at if kind == "dag" else reached
        _refuse(barred, whole[max(at, reached) :], whole)


def _plain(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern)


def _refuse(barred: list[str], text: str, whole: str) -> None:
    for pattern in barred:
        if re.search(pattern, text):
            _fail(f'Expected to not find "{_plain(pattern)}" but found it', whole)


def _fail(what: str, text: str):
    raise RuntimeError(f"{what}\nSearched text:\n{text}")
