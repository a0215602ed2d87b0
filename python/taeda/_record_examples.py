"""Calls of operators that run, found from their records.

A record says of which type each argument is. The values of a type that stand here are
tried, simple ones first, until a call succeeds with finite numbers; what the call
accepts and what it gives is then seen by making it.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from contextlib import contextmanager
from functools import cache

import taeda

__all__ = ["Example", "find"]

# So many calls of one overload are tried.
_TRIES = 800
# Calls until one of them gets memory that does not hold nan.
_MEMORIES = 8
# Longer results are shown by their shape.
_LONGEST = 700
# Each kind of tensor, as the first argument and as any other one.
_TENSORS = (
    ("taeda.tensor([2.5, 1.0, 4.0])", "taeda.tensor([2.0, 3.0, 1.5])"),
    (
        "taeda.tensor([[2.0, 1.0], [1.0, 3.0]])",
        "taeda.tensor([[1.0, 4.0], [2.0, 1.0]])",
    ),
    ("taeda.tensor([2, 0, 1])",) * 2,
    ("taeda.tensor([0.25, 0.5, 0.75])", "taeda.tensor([0.5, 0.75, 0.25])"),
    ("taeda.tensor([True, False, True])", "taeda.tensor([True, True, False])"),
    ("taeda.ones(1, 1, 4, 4)",) * 2,
    ("taeda.tensor(2.0)", "taeda.tensor(3.0)"),
    ("taeda.ones(1, 2, 4)",) * 2,
    ("taeda.tensor([[1, 0], [0, 1]])",) * 2,
    ("taeda.tensor([1 + 2j, 3 - 1j])", "taeda.tensor([2 + 1j, 1j])"),
    ("taeda.ones(1, 1, 4, 4, 4)",) * 2,
    ("taeda.tensor(1)",) * 2,
    ("taeda.ones(1, 4, 2, 2)",) * 2,
    ("taeda.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()",) * 2,
    ("taeda.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()",) * 2,
    ("taeda.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csc()",) * 2,
)
_VALUES = {
    "int": ("0", "1", "2"),
    "SymInt": ("1", "0", "2"),
    "float": ("0.5", "2.0"),
    "Scalar": ("2", "0.5"),
    "bool": ("False", "True"),
    "ScalarType": ("taeda.float64",),
    "Device": ('"cpu"',),
    "Layout": ("taeda.strided",),
    "MemoryFormat": ("taeda.contiguous_format",),
    "Scalar[]": ("[1, 2]",),
    "float[]": ("[2.0, 2.0]",),
    "bool[2]": ("[True, True]",),
    "bool[3]": ("[True, True, True]",),
}


class Example:
    """A call that runs.

    Attributes:
        setup: lines that make its arguments.
        call: the expression.
        output: what an interactive session prints for it.
    """

    def __init__(self, path: str, arguments: list, texts: tuple, seeded: bool) -> None:
        self._names = [a["name"] for a in arguments]
        self._texts = texts
        self.setup = ["gen = taeda.manual_seed(0)"] if seeded else []
        self._made = dict(zip(self._names, texts, strict=True))
        shown = []
        for argument, text in zip(arguments, texts, strict=True):
            name, value = argument["name"], text
            if "taeda." in text and "(" in text:
                # `self` is the name of a method's instance, and of nothing else.
                value = "input" if name == "self" else name
                self.setup.append(f"{value} = {text}")
            shown.append(f"{name}={value}" if argument.get("keyword_only") else value)
        if path.startswith("."):  # a method
            path = shown.pop(self._names.index("self")) + path
        self.call = f"{path}({', '.join(shown)})"
        self.output = ""

    @property
    def lines(self) -> list[str]:
        """The example as an interactive session."""
        return [*(f">>> {line}" for line in self.setup), f">>> {self.call}"] + (
            self.output.splitlines()
        )

    def arguments(self, change=None) -> dict:
        """New values of the arguments, tensors among them as `change` makes them."""
        made = {}
        for name, text in self._made.items():
            value = _value(text)
            if change is not None:
                value = _mapped(value, change)
            made["input" if name == "self" else name] = value
        return made

    def run(self, change=None, given: dict | None = None):
        """The call's result, whatever the state of the generator before.

        Args:
            change: a function of each tensor among the arguments.
            given: values of the arguments, in place of new ones.
        """
        space = {"taeda": taeda, **(given or self.arguments(change))}
        if self.setup and self.setup[0].startswith("gen"):
            taeda.manual_seed(0)
        return eval(self.call, space)  # its text is made of this file's alone


@cache
def _compiled(text: str):
    return compile(text, "<example>", "eval")


def _value(text: str):
    return eval(_compiled(text), {"taeda": taeda})


def _mapped(value, change):
    if isinstance(value, taeda.Tensor):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value


def _choices(argument: dict, place: int) -> tuple[str, ...]:
    kind = argument["type"].removesuffix("?")
    if kind == "Tensor":
        none = ("None",) if argument["type"].endswith("?") else ()
        return tuple(pair[place > 0] for pair in _TENSORS) + none
    if kind in ("Tensor[]", "Tensor?[]"):
        return tuple(f"[{first}, {other}]" for first, other in _TENSORS)
    base, bracket, count = kind.partition("[")
    if bracket and base in ("int", "SymInt"):
        if count != "]":
            number = int(count[:-1])
            return tuple(str([n] * number) for n in (1, 2, 0, 3))
        return ("[0]", "[2, 3]", "[3]", "[1, 1]", "[1]", "[4]", "[1, 0]", "[2, 2]")
    return _VALUES.get(kind, ())


def _by_simplicity(choices: list[tuple[str, ...]]):
    """All combinations, those of early choices first, without making all of them."""
    most = sum(len(c) - 1 for c in choices)
    for total in range(most + 1):
        yield from _adding_up(choices, total)


def _adding_up(choices, total: int):
    if not choices:
        if total == 0:
            yield ()
        return
    first, rest = choices[0], choices[1:]
    for place in range(min(total, len(first) - 1) + 1):
        for others in _adding_up(rest, total - place):
            yield (first[place], *others)


@contextmanager
def quiet():
    """No warnings, no gradients; the generator is left as it was."""
    state = taeda.get_rng_state()
    with warnings.catch_warnings(), taeda.no_grad():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            taeda.set_rng_state(state)


def find(path: str, rows: list[dict], names: dict | None = None) -> Example | None:
    """An example of a public function.

    Args:
        path: what the call names, "taeda.linalg.svd", or of a method ".svd".
        rows: the records of its overloads.
        names: record's name of an argument -> the function's.

    Returns:
        The first call that gives finite numbers, else the first that succeeds, else
        None.
    """
    if any(row["name"].partition(".")[0].endswith("_backward") for row in rows):
        return None  # called by derivatives, whose arguments are not checked again
    with quiet():
        found = None
        for row in rows:
            found = found or _of_overload(path, row)
        if found is not None:
            found.output = _output(found)
    return found


def _of_overload(path: str, row: dict) -> Example | None:
    needed = [a for a in row["arguments"] if "default" not in a]
    if path.startswith(".") and all(a["name"] != "self" for a in needed):
        return None
    # Some operators want one of several arguments that each may be left out.
    further = [a for a in row["arguments"] if a.get("default") == "None"]
    found = _of_arguments(path, row, needed)
    for argument in further if found is None else ():
        named = {**argument, "keyword_only": True}
        found = found or _of_arguments(path, row, [*needed, named])
    return found


def _of_arguments(path: str, row: dict, arguments: list) -> Example | None:
    choices = [_choices(a, place) for place, a in enumerate(arguments)]
    if not all(choices):
        return None
    seeded = "nondeterministic_seeded" in row["tags"]
    second = None
    calls = itertools.chain(
        _by_axes(row, arguments, choices),
        _same(arguments, choices),
        _by_simplicity(choices),
    )
    for texts in itertools.islice(calls, _TRIES):
        example = Example(path, arguments, texts, seeded)
        try:
            result = example.run()
        except Exception:  # whatever it refuses, it is no example
            continue
        if _is_good(result) or _is_old_memory(example, result):
            return example
        second = second or (example if result is not None else None)
    return second


def _same(arguments: list, choices: list):
    """Every tensor alike or None, everything else its simplest value."""
    inexact = [i for i, pair in enumerate(_TENSORS) if "." in pair[0][6:]]
    for optional, index in itertools.product((False, True), inexact):
        yield tuple(
            "None"
            if optional and a["type"] == "Tensor?"
            else c[index if "Tensor" in a["type"] else 0]
            for a, c in zip(arguments, choices, strict=True)
        )


def _by_axes(row: dict, arguments: list, choices: list):
    """Tensors with the axes that the record names, an equal name for an equal size."""
    patterns = (row["axes"] or "").partition("->")[0].split(",")
    places = [i for i, a in enumerate(arguments) if a["type"] == "Tensor"]
    words = [re.findall(r"\w+", pattern) for pattern in patterns]
    several = {name for names in words for name in names} - {"dim"}
    if len(places) != len(words) or not all(words) or len(several) < 2:
        return
    sizes: dict[str, int] = {}
    texts = [c[0] for c in choices]
    for place, names in zip(places, words, strict=True):
        shape = [sizes.setdefault(n, 2 + len(sizes) % 3) for n in names]
        count = float(math.prod(shape))
        texts[place] = f"taeda.arange({count}).reshape({str(shape)[1:-1]})"
    yield tuple(texts)


def tensors(result) -> list:
    """The tensors of a result, in order."""
    if isinstance(result, taeda.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [t for item in result for t in tensors(item)]
    return []


def _is_good(result) -> bool:
    found = tensors(result)
    if not found:
        return isinstance(result, (bool, int, float, complex, taeda.dtype))
    if any(t.layout is not taeda.strided or t.numel() == 0 for t in found):
        return False
    inexact = [t for t in found if t.is_floating_point() or t.is_complex()]
    return all(bool(taeda.isfinite(t).all()) for t in inexact)


def _is_old_memory(example: Example, result) -> bool:
    """Whether numbers that are not finite are what memory happened to hold."""
    if all(t.numel() == 0 for t in tensors(result)):
        return False
    held = [result]  # so that each call gets other memory
    while len(held) < _MEMORIES:
        held.append(example.run())
        if repr(held[-1]) != repr(result):
            return _is_good(held[-1])
    return False


def _output(example: Example) -> str:
    """What is printed; the shape alone where that is long or depends on old memory."""
    result = example.run()
    text = repr(result)
    # Memory that is nan already may be what _filled() filled before.
    known = "nan" not in text and text == repr(_filled(example))
    if "\n\n" not in text and len(text) < _LONGEST and known:
        return text
    if isinstance(result, taeda.Tensor):
        example.call += ".shape"
    else:
        example.call = f"[r.shape for r in {example.call}]"
    return repr(example.run())


def _filled(example: Example):
    """The result where new memory is NaN or the largest number."""
    from taeda.utils import deterministic

    before = taeda.are_deterministic_algorithms_enabled()
    fill = deterministic.fill_uninitialized_memory
    warn = taeda.is_deterministic_algorithms_warn_only_enabled()
    try:
        taeda.use_deterministic_algorithms(True, warn_only=True)
        deterministic.fill_uninitialized_memory = True
        return example.run()
    finally:
        deterministic.fill_uninitialized_memory = fill
        taeda.use_deterministic_algorithms(before, warn_only=warn)
