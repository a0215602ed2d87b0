"""Docstrings of the bindings, made from the records."""

from __future__ import annotations

from .python_signature import PyFunction, PySignature


def _result(signature: PySignature) -> str:
    returns = signature.operator.schema.returns
    if not returns:
        return "list of Tensors" if signature.gives_list else "None"
    texts = []
    for r in returns:
        kind = {"Scalar": "Number", "SymInt": "int", "ScalarType": "dtype"}.get(
            r.type.base, r.type.base
        )
        texts.append(f"tuple of {kind}s" if r.type.is_list else kind)
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _first_lines(function: PyFunction, name: str, method: bool) -> list[str]:
    shown = [s for s in function.signatures if not (s.hidden or s.deprecated)]
    shown = [s for s in shown if not method or s.self_index >= 0]
    return [f"{name}{s.plain(method)} -> {_result(s)}" for s in shown]


def docstring(function: PyFunction, name: str, method: bool = False) -> str:
    """Signatures, summary, formula, arguments, results, errors, example."""
    record = function.record
    lines = [*_first_lines(function, name, method), ""]
    inplace = function.name.endswith("_") and not record.name.endswith("_")
    if inplace:
        lines.append(f"In-place form of `{function.name[:-1]}`.")
        return "\n".join(lines)
    lines.append(record.doc.summary)
    if record.doc.details:
        lines += ["", record.doc.details]
    if record.args:
        lines += ["", "Args:"]
        for arg, text in record.args.items():
            if method and arg == "self":
                continue
            shown = "input" if arg == "self" and not method else arg
            lines.append(f"    {shown}: {text}")
    if record.returns:
        lines += ["", "Returns:", f"    {record.returns}"]
    if record.raises:
        lines += ["", "Raises:", f"    {record.raises}"]
    if record.example:
        lines += ["", "Example:"]
        lines += [f"    {line}" for line in str(record.example).strip().splitlines()]
    return "\n".join(lines)


def method_docstring(function: PyFunction, name: str) -> str:
    """Short where a function of that name says the rest."""
    if not function.is_function:
        return docstring(function, name, method=True)
    lines = _first_lines(function, name, method=True)
    return "\n".join([*lines, "", f"See `taeda.{name}`."])
