"""Classes that follow from rows of text."""

from __future__ import annotations

import copy
import inspect
import os
import pathlib
import re
import subprocess
import sys
import threading
import traceback

import pytest
import taeda
from taeda.distributions import _declare, constraints
from taeda.distributions._formulas import formula

TEXT = """
Ramp over interval(0, w): the density grows from 0.
It is 2 x / w^2.
    Raises:
        ValueError: the width is not positive.
    width w in positive default 1.0: how far it goes
    mean = 2 / 3 * w
    wide variance = square / 18
        # Of the width.
        square = w * w
    lazy drawn = w.clone()
    log_prob = (2 * x).log() - 2 * w.log()
    rsample = w * taeda.rand(shape).sqrt()
    below(part, whole=1.0) = (part * whole / w) ** 2
    failing = w.nothing
    ndim of width
    label, halves is "ramp", 2
    width_too = width
"""


def declared(text: str = TEXT, name: str = "Ramp"):
    module = {"__name__": __name__}
    _declare.declare(module, text)
    return module[name]


@pytest.fixture
def ramp():
    yield declared()
    _declare.KNOWN.pop("Ramp", None)


def test_rows(ramp) -> None:
    made = ramp(taeda.tensor([1.0, 3.0]))
    assert made.batch_shape == (2,) and made.event_shape == ()
    assert made.mean.tolist() == pytest.approx([2 / 3, 2.0])
    assert made.variance.tolist() == pytest.approx([1 / 18, 0.5])
    assert made.variance.dtype == taeda.float32
    assert made.drawn is made.drawn and made.mean is not made.mean
    density = made.log_prob(taeda.tensor(0.5)).exp()
    assert density.tolist() == pytest.approx([1.0, 1 / 9])
    assert made.has_rsample and made.rsample((4,)).shape == (4, 2)
    assert made.below(0.5).tolist() == pytest.approx([0.25, 1 / 36])
    assert made.below(0.5, whole=2.0)[0] == 1
    assert (ramp.label, ramp.halves) == ("ramp", 2)
    assert made.expand((3, 2)).mean.shape == (3, 2)
    assert ramp().width == 1 and made.width_too is made.width and made.ndim == 1
    assert copy.deepcopy(made).mean.equal(made.mean)


def test_members_of_classes_below_are_not_what_super_finds(ramp) -> None:
    class Wide(ramp):
        def __init__(self, half: float) -> None:
            super().__init__(2 * half)

        def log_prob(self, value):
            return super().log_prob(value) + 1

        @property
        def mean(self):
            return super().mean + 1

    made = Wide(0.5)
    assert made.width == 1
    assert made.log_prob(taeda.tensor(0.5)).item() == pytest.approx(1.0)
    assert made.mean.item() == pytest.approx(5 / 3)


def test_support_that_depends_on_members(ramp) -> None:
    assert constraints.is_dependent(ramp.support) and ramp.support.event_dim == 0
    made = ramp(taeda.tensor(2.0))
    assert made.support.upper_bound == 2
    for wrong in (-1.0, 3.0):
        with pytest.raises(ValueError, match="to be within the support"):
            made.log_prob(taeda.tensor(wrong))
    with pytest.raises(ValueError, match="parameter width"):
        ramp(-1.0)


def test_documentation_of_rows(ramp) -> None:
    lines = ramp.__doc__.split("\n")
    assert lines[:3] == ["The density grows from 0.", "", "    It is 2 x / w^2."]
    at = ramp.__doc__.index
    assert at("Args:") < at("width: how far it goes.") < at("Raises:")
    assert ramp.log_prob.__doc__ and ramp.log_prob.__qualname__ == "Ramp.log_prob"


def test_tracebacks_show_rows(ramp) -> None:
    with pytest.raises(AttributeError) as caught:
        _ = ramp(1.0).failing
    text = "".join(traceback.format_exception(caught.value))
    assert "Ramp.failing" in text and "return w.nothing" in text


def test_threads_that_read_first_at_once(ramp) -> None:
    made, found = ramp(taeda.tensor(3.0)), []
    start = threading.Barrier(8)

    def read() -> None:
        start.wait()
        found.append((float(made.mean), float(made.below(1.0))))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 8 and found[0][0] == 2


def test_rows_that_are_none() -> None:
    with pytest.raises(ValueError, match="'nonsense' is no row of a class"):
        declared("Wrong: a class.\n    nonsense", "Wrong")


def formulas():
    """Every row of the package that was not compiled yet, and those that were."""
    for kind in {each for each in _declare.KNOWN.values() if isinstance(each, type)}:
        for name, member in vars(kind).items():
            if isinstance(member, formula):
                yield kind, name


def with_heirs(kind: type) -> list[type]:
    return [
        kind,
        *(heir for each in kind.__subclasses__() for heir in with_heirs(each)),
    ]


def has(kind: type, name: str, held: set[str]) -> bool:
    own = {*inspect.signature(kind).parameters}
    return hasattr(kind, name) or name in held or name.removeprefix("_") in own


READ = """
from taeda.distributions import _formulas, constraints, kl, transforms
from test_declarations import formulas

read = []
for name in ("function_of", "wide_function_of"):
    def seen(*given, make=getattr(_formulas, name)):
        read.append((given[0], given[3]))
        return make(*given)
    setattr(_formulas, name, seen)
for kind, name in list(formulas()):
    first = len(read)
    getattr(kind, name)
    for expression in read[first][1].values() if read[first:] else ():
        print(kind.__module__, kind.__qualname__, name, expression)
"""


def test_rows_read_what_objects_have() -> None:
    """In a process of its own, in which no row was read before."""
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), *sys.path])
    told = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(told) > 600
    folder = pathlib.Path(taeda.distributions.__file__).parent
    sources = "".join(path.read_text() for path in folder.glob("*.py"))
    held = {*re.findall(r"(?:self|new|made)\.(\w+)(?:, self\.\w+)* = ", sources)}
    held |= {*re.findall(r", self\.(\w+) = ", sources)}
    held |= {*re.findall(r"^    \w+ as (\w+)\b", sources, re.MULTILINE)}
    held |= {*re.findall(r"setattr\(self, \"(\w+)\"", sources)}
    wrong = []
    for line in told:
        module, kind, row, expression = line.split(" ", 3)
        owner, read = getattr(sys.modules[module], kind), expression.split(".")[1]
        if not any(has(each, read, held) for each in with_heirs(owner)):
            wrong.append(f"{kind}.{row} reads {expression}")
    assert not wrong


def test_every_row_is_compiled() -> None:
    for kind, name in list(formulas()):
        getattr(kind, name)
    assert not list(formulas())
