"""Prints what `help` says of Tensor's hand-written members.

Their texts stand in `csrc/python/tensor_docs.yaml`; the header that is made of it is
read when the tables of methods are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .emit_python import c_text
from .errors import CodegenError, Location
from .model import Operator
from .writer import Output
from .yaml_fields import read_yaml

SOURCE = Path(__file__).resolve().parents[2] / "csrc" / "python" / "tensor_docs.yaml"

_CAST = """{name}(memory_format=preserve_format) -> Tensor

This tensor with elements of dtype {dtype}; itself where it has them already.
Differentiable in floating and complex dtypes.

Example:
    >>> taeda.ones(2).{name}().dtype
    taeda.{dtype}"""


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes `include/python/tensor_docs.h`."""
    rows = (f"    {{{c_text(n)}, {c_text(t)}}}," for n, t in texts().items())
    lines = [
        "#pragma once",
        "",
        "#include <string_view>",
        "",
        "namespace taeda::python {",
        "struct TensorDoc {",
        "  std::string_view name;",
        "  const char* text;",
        "};",
        "inline constexpr TensorDoc kTensorDocs[] = {",
        *rows,
        "};",
        "}  // namespace taeda::python",
        "",
    ]
    out.write("include/python/tensor_docs.h", "\n".join(lines))


def texts() -> dict[str, str]:
    """The text of each member."""
    root = read_yaml(SOURCE.read_text(encoding="utf-8"), str(SOURCE))
    if root is None:
        raise CodegenError("no texts", Location(str(SOURCE), 1))
    sections = root.mapping("sections of members and casts")
    found = {
        name: node.value.strip()
        for name, node in sections["members"].mapping("names and texts").items()
    }
    for name, node in sections["casts"].mapping("names and dtypes").items():
        found[name] = _CAST.format(name=name, dtype=node.value)
    return found
