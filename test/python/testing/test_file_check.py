"""Checks of texts succeed and fail as PyTorch's do."""

from __future__ import annotations

import random

import pytest
import taeda
import torch


def outcome(library, checks, text: str) -> bool:
    checker = library.testing.FileCheck()
    for name, *arguments in checks:
        checker = getattr(checker, name)(*arguments)
    try:
        checker.run(text)
    except RuntimeError as error:
        assert "xpected to" in str(error)
        return False
    return True


TEXT = "a b\nb c\n\nc a (d)\nb"


@pytest.mark.parametrize(
    "checks, passes",
    [
        ([("check", "a"), ("check", "c")], True),
        ([("check", "c"), ("check", "a b")], False),
        ([("check", "a b"), ("check_next", "b")], True),
        ([("check", "a b"), ("check_next", "d")], False),
        ([("check", "a"), ("check_same", "b")], True),
        ([("check", "a"), ("check_same", "c")], False),
        ([("check_count", "b", 3)], True),
        ([("check_count", "b", 4)], False),
        ([("check_count", "b", 2, True)], False),
        ([("check_count", "b", 3, True)], True),
        ([("check_dag", "c"), ("check_dag", "a b"), ("check", "(d)")], True),
        ([("check_dag", "(d)"), ("check_dag", "a b"), ("check", "c")], False),
        ([("check", "a"), ("check_not", "d"), ("check", "c")], True),
        ([("check", "a"), ("check_not", "c"), ("check", "d")], False),
        ([("check_not", "x")], True),
        ([("check_not", "b")], False),
        ([("check_regex", r"c\s+a")], True),
        ([("check_regex", r"c\d")], False),
    ],
)
def test_each_check(checks, passes) -> None:
    assert outcome(taeda, checks, TEXT) is passes is outcome(torch, checks, TEXT)


def test_random_lists_of_checks() -> None:
    draw = random.Random(3)
    kinds = ["check", "check_next", "check_same", "check_not"]
    seen = [0, 0]
    for _ in range(600):
        text = "".join(draw.choice("abc \n") for _ in range(14))
        checks = [
            (draw.choice(kinds), draw.choice(["a", "b", "c"]))
            for _ in range(draw.randint(1, 3))
        ]
        # A first check has no line before it, and `not` before `next` is ambiguous.
        checks[0] = ("check", checks[0][1])
        pairs = zip(checks, checks[1:], strict=False)
        if any(a[0] == "check_not" and b[0] != "check" for a, b in pairs):
            continue
        found = outcome(taeda, checks, text)
        assert found is outcome(torch, checks, text), (checks, text)
        seen[found] += 1
    assert min(seen) > 50


def test_failures_show_the_text() -> None:
    with pytest.raises(RuntimeError, match=r'find "f\(x\)" but(.|\n)*here it is'):
        taeda.testing.FileCheck().check("f(x)").run("here it is")
