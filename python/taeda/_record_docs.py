"""What the documentation says of an operator beyond its summary, from its record.

`help(taeda.ops.aten.add)` and the pages of `tools/dev docs` show this text. It is made
when it is asked for: shapes from the record's axes, dtypes and gradients by making the
example's call with each of them.
"""

from __future__ import annotations

import re
from functools import cache

import taeda
from taeda import _C

__all__ = ["facts", "name_of", "records", "text"]

_SPACES = (
    "_VariableFunctions",
    "_nn",
    "_linalg",
    "_special",
    "_fft",
    "_sparse",
    "_nested",
)


def records(name: str) -> list[dict]:
    """The records of all overloads of an operator; none where there is none."""
    from json import loads

    rows = [(n, o) for n, o, _ in _C._op_schemas() if n == name]
    return [loads(_C._op_record(*row)) for row in rows]


def _natives():
    for space in _SPACES:
        yield from vars(getattr(_C, space)).items()


def _native(name: str):
    """The function, or else the method, that is bound to an operator's name."""
    found = next((f for n, f in _natives() if n == name), None)
    return found or getattr(_C.TensorBase, name, None)


def name_of(function) -> str | None:
    """The operator that a bound function, or its wrapper, calls; else None.

    A second name has no record of its own, and the text of the first.
    """
    kind, known = type(function).__name__, _known()
    if kind == "method_descriptor":
        name = function.__name__
        own = vars(_C.TensorBase).get(name) is function
        return name if own and name in known else None
    if kind == "function" and function.__module__ == f"{taeda.__name__}.functional":
        return function.__name__ if function.__name__ in known else None
    if kind != "builtin_function_or_method":
        return None
    name = function.__name__
    if _bound().get(name) is not function:
        return None
    if name in known:
        return name
    about = _about(function)
    return next((n for n, f in _natives() if n in known and _about(f) == about), None)


# What is bound and its records are made with the library and never change.
@cache
def _bound() -> dict:
    return dict(_natives())


@cache
def _known() -> frozenset[str]:
    return frozenset(n for n, _, _ in _C._op_schemas())


def _about(function) -> tuple[str, str]:
    """The signature without the name, and the text below it."""
    signature, _, rest = (function.__doc__ or "").partition("\n\n")
    return signature.partition("(")[2], rest


def text(name: str, path: str = "", function=None) -> str:
    """All that is said of an operator.

    Args:
        name: its base name, "add" or "mylib::add".
        path: what its example calls, "taeda.add", or of a method ".add";
            `taeda.ops.aten.add` if empty.
        function: what Python calls; found by the name if None.
    """
    from inspect import cleandoc

    rows = records(name)
    function = function or _native(name)
    about = getattr(function, "__doc__", None)
    if not about:
        about = "\n".join(f"{row['schema']}" for row in rows)
    if not path:
        space, _, short = name.rpartition("::")
        path = f"taeda.ops.{space or 'aten'}.{short}"
    about = cleandoc(about).removesuffix("\n\nArgs:")  # of a method of self alone
    return "\n\n".join([about, *facts(rows, path, "Example:" in about)])


def facts(rows: list[dict], path: str, has_example: bool = False) -> list[str]:
    """Sections: shapes, dtypes, gradient, other forms, example.

    Args:
        rows: the records of one base name.
        path: what the example calls.
        has_example: whether the text above has one already.
    """
    from taeda import _record_examples

    first = [row for row in rows if row["form"] == "functional"] or rows[:1]
    example = _record_examples.find(path, first)
    found = {"Shapes": _shapes(first)}
    if example is not None:
        found["Dtypes"] = _dtypes(example)
        found["Gradient"] = _gradient(first, example)
    elif first and first[0]["dtypes"]:
        found["Dtypes"] = [", ".join(first[0]["dtypes"]["accepts"])]
    found["Forms"] = _forms(rows)
    if example is not None and not has_example:
        found["Example"] = example.lines
    return [
        f"{title}:\n" + "\n".join(f"    {line}" for line in lines)
        for title, lines in found.items()
        if lines
    ]


# Shapes ------------------------------------------------------------------------


def _shapes(rows: list[dict]) -> list[str]:
    lines = []
    for row in rows:
        shown = _shape(row)
        if shown and shown not in lines:
            lines.append(shown)
    return lines


def _shape(row: dict) -> str:
    count = sum(a["type"] == "Tensor" for a in row["arguments"])
    if row["axes"]:
        return _axes(row["axes"])
    if row["family"] == "pointwise" and count:
        broadcast = ", broadcast against each other" if count > 1 else ""
        return f"{', '.join(['(...)'] * count)} -> (...){broadcast}"
    if row["family"] == "reduction":
        dims = [a["name"] for a in row["arguments"] if a["name"] == "dim"]
        if not dims:
            return "(*) -> (), of all dims"
        return "(*, dim) -> (*), or (*, 1) with keepdim, at the places of dim"
    if row["family"] == "scan":
        return "(*, dim) -> (*, dim)"
    if row["family"] == "foreach":
        return f"for each entry as {row['element']['name']}"
    return ""


def _axes(axes: str) -> str:
    """`n^ k, k m^ -> n^ m^` as `(n, k), (k, m) -> (n, m)`."""
    if axes.startswith("opaque:"):
        return f"not fixed by a pattern: {axes.removeprefix('opaque:').strip()}"
    before, _, after = axes.partition("->")
    return " -> ".join(
        ", ".join(_pattern(p.strip()) for p in side.split(",") if p.strip()) or "()"
        for side in (before, after)
    )


def _pattern(pattern: str) -> str:
    if pattern.startswith("["):
        return f"[{_pattern(pattern.strip('[]'))}]"
    reduced = "/" in pattern
    pattern = re.sub(r"\s/\w+", "", pattern)
    pattern, _, repeated = pattern.partition(" =")
    if repeated and pattern == "*":
        return f"({repeated})"
    if pattern == "_":
        return "any"
    if pattern == "()":
        return "()"
    words = []
    for word in pattern.split():
        name = re.sub(r"=\w+", "", word.lstrip("@").rstrip("!?^"))
        if word.startswith("#"):
            name = f"*{name.lstrip('#')}"
        elif word.startswith("@"):
            name = name.rstrip("*")
        words.append(f"[{name}]" if "?" in word else name)
    shown = f"({', '.join(words)})"
    return f"{shown} or ()" if reduced else shown


# Dtypes and gradients ----------------------------------------------------------


def _all_dtypes() -> list:
    found = [d for d in vars(taeda).values() if isinstance(d, taeda.dtype)]
    return list(dict.fromkeys(found))


def _short(value) -> str:
    return str(value).removeprefix(f"{taeda.__name__}.")


def _dtypes(example) -> list[str]:
    """The dtypes with which the example's call succeeds, by the dtype of its result."""
    from taeda._record_examples import quiet, tensors

    with quiet():
        given = [t for v in example.arguments().values() for t in tensors(v)]
        if not given:
            result = tensors(example.run())
            return [f"result {_short(result[0].dtype)}"] if result else []
        # Those that hold indices stay what they are.
        inexact = [t for t in given if t.is_floating_point() or t.is_complex()]
        chosen = {t.dtype for t in inexact or given}
        results: dict[str, list[str]] = {}
        errors: dict[str, None] = {}
        for dtype in _all_dtypes():
            try:
                found = tensors(
                    example.run(lambda t, d=dtype: t.to(d) if t.dtype in chosen else t)
                )
            except Exception as error:  # the kind of which is what is asked for
                errors[type(error).__name__] = None
                continue
            kind = _short(found[0].dtype) if found else "no tensor"
            same = "the same dtype" if kind == _short(dtype) else kind
            results.setdefault(same, []).append(_short(dtype))
    lines = [f"{', '.join(names)}: result {kind}" for kind, names in results.items()]
    return lines + ([f"others: raises {' or '.join(errors)}"] if errors else [])


def _gradient(rows: list[dict], example) -> list[str]:
    """Arguments that get a gradient, with its formula where the record has one."""
    row = rows[0]
    if not row["differentiable"] or row["form"] == "inplace":
        return []
    formulas = {
        e["argument"]: e["text"]
        for e in row["expressions"]
        if e["role"] == "gradient" and e["kind"] == "float" and not e.get("choice")
    }
    lines = []
    for name in _with_gradient(example):
        own = "self" if name == "input" else name
        formula = f": {formulas[own]}" if own in formulas else ""
        lines.append(f"{name}{formula}")
    return lines


def _with_gradient(example) -> list[str]:
    from taeda._record_examples import quiet, tensors

    names = []
    for name in example.arguments():
        with quiet(), taeda.enable_grad():
            try:
                made = example.arguments()
                for tensor in tensors(made[name]):
                    tensor.requires_grad_()
                found = tensors(example.run(given=made))
            except Exception:  # integers, or a call that needs an open graph
                continue
            if tensors(made[name]) and any(t.requires_grad for t in found):
                names.append(name)
    return names


def _forms(rows: list[dict]) -> list[str]:
    """In-place and `out=` forms, autocast, randomness: what else a caller asks."""
    lines = []
    for row in rows:
        name = row["name"].rpartition("::")[2].partition(".")[0]
        if row["form"] == "functional" and _native(name + "_") and name[-1:] != "_":
            lines.append(f"in place: {name}_")
        if row["form"] == "out":
            lines.append("into given tensors: out=")
        policy = row["autocast"]["cpu"]
        words = {
            "lower": "computes in the lower dtype",
            "float32": "computes in float32",
            "promote": "computes in the widest dtype of its tensors",
        }
        if policy in words:
            lines.append(f"under autocast: {words[policy]}")
        if "nondeterministic_seeded" in row["tags"]:
            lines.append("random: the generator that manual_seed sets, or generator=")
        if any(r.get("alias") and not r.get("written") for r in row["results"]):
            lines.append("its result shares the memory of its input")
    return list(dict.fromkeys(lines))
