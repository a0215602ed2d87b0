"""Prints the API pages: one Markdown page per namespace of functions."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator
from .python_docs import docstring, method_docstring
from .python_signature import PyFunction, all_names, python_functions
from .writer import Output

_TITLES = {
    "": "taeda",
    "nn": "taeda.nn.functional (natives)",
    "linalg": "taeda.linalg",
    "special": "taeda.special",
    "fft": "taeda.fft",
    "sparse": "taeda.sparse",
    "nested": "taeda.nested",
}


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes `docs/api/*.md`."""
    functions = [f for f in python_functions(list(operators)) if _is_public(f)]
    for module, title in _TITLES.items():
        listed = [
            f for f in functions if f.is_function and f.record.python.module == module
        ]
        if listed:
            name = title.split()[0]
            out.write(f"docs/api/{name}.md", _page(title, listed, docstring))
    methods = [f for f in functions if f.is_method]
    page = _page("taeda.Tensor", methods, method_docstring)
    out.write("docs/api/taeda.Tensor.md", page)


def _is_public(function: PyFunction) -> bool:
    return not function.name.startswith("_") and not function.record.python.private


def _page(title: str, functions: list[PyFunction], text) -> str:
    lines = [f"# {title}", ""]
    for function in functions:
        for name in all_names(function):
            lines += [f"## {name}", "", "```", text(function, name), "```", ""]
    return "\n".join(lines)
