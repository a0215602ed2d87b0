"""Texts and examples that are made of operators' records."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from collections import defaultdict

import pytest
import taeda
from taeda import _C, _record_docs, _record_examples


def public_operators() -> dict[str, list[dict]]:
    """Operators of the top level, linalg, fft and special with their records."""
    spaces = (_C._VariableFunctions, _C._linalg, _C._fft, _C._special)
    names = {name for space in spaces for name in vars(space) if name[0] != "_"}
    return {n: rows for n in sorted(names) if (rows := _record_docs.records(n))}


def test_help_shows_the_record() -> None:
    text = pydoc.render_doc(taeda.ops.aten.mm, renderer=pydoc.plaintext)
    assert "(n, k), (k, m) -> (n, m)" in text
    assert ">>> taeda.ops.aten.mm(input, mat2)" in text
    assert taeda.ops.aten.mm.default.__doc__ == taeda.ops.aten.mm.__doc__
    assert "dispatches" in type(taeda.ops.aten.mm.default).__doc__


def test_second_names_have_the_text_of_the_first() -> None:
    assert _record_docs.name_of(taeda.multiply) == "mul"
    assert _record_docs.name_of(taeda.linalg.svd) == "linalg_svd"
    assert _record_docs.name_of(len) is None
    assert _record_docs.name_of(taeda.nn.Linear) is None
    text = _record_docs.text("mul", "taeda.multiply", taeda.multiply)
    assert text.startswith("multiply(") and "taeda.multiply(input, other)" in text


@pytest.mark.parametrize(
    ("axes", "shown"),
    [
        ("n^ k, k m^ -> n^ m^", "(n, k), (k, m) -> (n, m)"),
        ("* @dim! -> * @dim!, * @dim!", "(*, dim) -> (*, dim), (*, dim)"),
        ("-> * =size", "() -> (size)"),
        ("[* @dim!] -> * @dim!", "[(*, dim)] -> (*, dim)"),
        ("..., ... -> ... /reduction", "(...), (...) -> (...) or ()"),
        ("opaque: so it is", "not fixed by a pattern: so it is"),
    ],
)
def test_axes_in_words(axes: str, shown: str) -> None:
    assert _record_docs._axes(axes) == shown


def test_dtypes_are_those_that_the_record_accepts() -> None:
    """What calls show is never more than what the record says."""
    checked = 0
    for name, rows in public_operators().items():
        row = rows[0]
        if row["family"] != "pointwise" or not row["dtypes"] or "_backward" in name:
            continue
        lines = [line for line in _facts(name, rows)["Dtypes"] if ": result" in line]
        shown = {word for line in lines for word in line.partition(":")[0].split(", ")}
        accepts = set(row["dtypes"]["accepts"])
        if row["dtypes"]["promotes"] in ("int_to_float", "int_through_double"):
            accepts |= {"uint16", "uint32", "uint64"}  # they become floats first
        assert shown and shown <= accepts, (name, shown - accepts)
        checked += 1
    assert checked > 100


def _facts(name: str, rows: list[dict]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for section in _record_docs.facts(rows, f"taeda.ops.aten.{name}"):
        title, *lines = section.splitlines()
        found[title.rstrip(":")] = [line.strip() for line in lines]
    return found


def test_examples_leave_no_trace() -> None:
    taeda.manual_seed(5)
    state = taeda.get_rng_state()
    text = taeda.ops.aten.randn.__doc__
    assert "manual_seed(0)" in text
    assert taeda.equal(taeda.get_rng_state(), state)
    assert taeda.is_grad_enabled()
    assert not taeda.are_deterministic_algorithms_enabled()


def test_new_memory_is_shown_by_its_shape(monkeypatch) -> None:
    assert "taeda.Size([2, 3])" in taeda.ops.aten.empty.__doc__

    def call() -> str:
        found = _record_examples.find("taeda.empty", _record_docs.records("empty"))
        assert found is not None
        return found.call

    assert call() == "taeda.empty([2, 3]).shape"
    # Now with memory that was filled with nan before, and that is free again.
    real, left = taeda.empty, [1, 1]

    def empty(size: list[int]) -> taeda.Tensor:
        again = 0 not in size and left and left.pop()
        return taeda.full(size, float("nan")) if again else real(size)

    monkeypatch.setattr(taeda, "empty", empty)
    assert call() == "taeda.empty([2, 3]).shape"
    assert not left


def test_texts_cost_nothing_at_import() -> None:
    code = "import sys, taeda; taeda.ops.aten.add; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {m for m in done.stdout.split() if m.startswith("taeda._record")}
