"""What captures tell: errors, counters, warnings and logs come of it."""

from __future__ import annotations

__all__ = ["observe", "warn"]

# The text of the last break. Capture's lock guards it.
_last_break = ""


def observe(event: str, function, data: dict) -> None:
    """Called by capture, under its lock.

    Raises:
        Unsupported, RecompileError, FailOnRecompileLimitHit, RuntimeError: where the
            program's settings make an event an error.
    """
    _HANDLERS[event](function, data)


def warn(text: str, *values) -> None:
    """Says something that a program should know, by `logging`."""
    import logging

    logging.getLogger("taeda.compiler").warning(text, *values)


def _place(function) -> str:
    code = function.__code__
    return f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"


def user_code(stack) -> str:
    """The lines that frames stand at, innermost last."""
    import linecache

    lines = []
    for file, line, name in stack:
        lines.append(f'   File "{file}", line {line}, in {name}')
        text = linecache.getline(file, line or 0).strip()
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines)


def _count(table: str, key: str, by: int = 1) -> None:
    from taeda._dynamo.utils import count

    count(table, key, by)


# What to do about the reasons that programs meet most, by how they begin.
_HINTS = {
    "the value of a tensor is read by __bool__": "Data-dependent branching: use "
    "taeda.where, or taeda.cond where the branches are long.",
    "the value of a tensor is read by": "Data-dependent value: keep it in a tensor, or "
    "read it outside of the compiled function.",
    "no rule tells the shape of": "Data-dependent shape: use taeda.where or masked "
    "sums, or call it outside of the compiled function.",
    "call of <function graph_break": "The program asks for this break by "
    "taeda._dynamo.graph_break().",
    "call of <built-in function __build_class__": "Define classes outside of the "
    "compiled function.",
    "raised": "What the program raises for such arguments is raised without "
    "fullgraph=True.",
    "call of <built-in function print": "Print outside of the compiled function.",
}


def _hint(reason: str) -> str:
    found = (hint for start, hint in _HINTS.items() if reason.startswith(start))
    hint = next(found, None)
    return f"\n  Hint: {hint}" if hint else ""


def _text(data) -> str:
    where = user_code(data["stack"])
    return f"{data['reason']}{_hint(data['reason'])}\n\nfrom user code:\n{where}"


def _refuse(data) -> None:
    from taeda._dynamo import exc

    raised = data["reason"].startswith("raised ")
    kind = exc.TorchRuntimeError if raised else exc.Unsupported
    if "Higher Order Operator: " in data["reason"]:
        kind = exc.UncapturedHigherOrderOpError
    what = "Observed exception, " if raised else ""
    text = f"compile: no graph holds this: {what}{_text(data)}"
    raise kind(text) from data["error"]


def _broke(function, data) -> None:
    text = _text(data)
    if data["is_error"]:
        _refuse(data)
    _count("graph_break", data["reason"])
    text = f"Graph break in {_place(function)}: {text}"
    # Where something stays on the stack that no graph may look at, each instruction
    # of a line is a break of its own.
    global _last_break
    if text != _last_break:
        _log("graph_breaks", text)
    _last_break = text


def _stayed_as_it_is(function, data) -> None:
    reason = data["reason"]
    if data["is_error"]:
        _refuse(data)
    _count("frames", "as_written")
    _log(
        "graph_breaks",
        f"{_place(function)} runs as it is written from here, for its state cannot be "
        f"made again: {reason}\n\nfrom user code:\n{user_code(data['stack'])}",
    )


def _raised(function, data) -> None:
    if data["is_error"]:
        # Its text names the operator that is missing.
        if isinstance(data["error"], NotImplementedError):
            raise data["error"]
        _refuse(data)
    _count("frames", "as_written")
    _log(
        "graph_breaks",
        f"{_place(function)} {data['reason']} while it was captured, and runs as it is "
        f"written for such arguments\n\nfrom user code:\n{user_code(data['stack'])}",
    )


def _ran_again(function, data) -> None:
    _count("frames", "as_written")
    warn(
        "compile: the graph of %s raised %s, and the program, which was then run as it "
        "is written, did not",
        _place(function),
        data["reason"],
    )


def _captured(function, data) -> None:
    _count("frames", "total")
    _count("frames", "ok")
    _count("stats", "unique_graphs")
    global _last_break
    _last_break = ""
    _count("stats", "calls_captured", data["calls"])
    if data["graph"] is None:
        return
    from ._graphs import graph_module

    module, _ = graph_module(*data["graph"])
    where = _place(function)
    _log("graph", f"Graph of {where}:\n{module.graph}")
    _log("graph_code", f"Graph of {where}:\n{module.code.strip()}")
    guards = "\n".join(f"    {each}" for each in data["guards"])
    _log("guards", f"Guards of the graph of {where}:\n{guards}")


def _failures(data) -> str:
    return "\n".join(f"    - {each}" for each in data["failures"])


def _recompiled(function, data) -> None:
    from taeda._dynamo import config

    text = (
        f"Recompiling function {_place(function)}\n"
        f"    triggered by the following guard failure(s):\n{_failures(data)}"
    )
    if config.error_on_recompile:
        from taeda._dynamo.exc import RecompileError

        raise RecompileError(text)
    _log("recompiles", text)


def _hit_limit(function, data) -> None:
    last = data["failures"][0] if data["failures"] else "none"
    warn(
        "compile: %s was captured %d times, which is recompile_limit; what else it is "
        "called with runs as it is written. It did not fit the last time because of "
        "%s. TAEDA_LOGS=recompiles tells each reason.",
        _place(function),
        data["limit"],
        last,
    )
    from taeda._dynamo import config

    if not data["fullgraph"] and not config.fail_on_recompile_limit_hit:
        return
    from taeda._dynamo.exc import FailOnRecompileLimitHit

    why = "fullgraph=True" if data["fullgraph"] else "fail_on_recompile_limit_hit"
    raise FailOnRecompileLimitHit(
        f"compile: recompile_limit {data['limit']} is reached by {_place(function)}, "
        f"and {why} lets nothing run as it is written"
    )


def _refused(function, data) -> None:
    code = function.__code__
    raise RuntimeError(
        "Detected recompile when compile's stance is 'fail_on_recompile'. filename: "
        f"{code.co_filename!r}, function name: {function.__name__!r}, line number: "
        f"{code.co_firstlineno}"
    )


def _log(artifact: str, text: str) -> None:
    from taeda._logging import artifact_log

    artifact_log(artifact, text)


_HANDLERS = {
    "break": _broke,
    "captured": _captured,
    "limit": _hit_limit,
    "not_resumable": _stayed_as_it_is,
    "raised": _raised,
    "ran_again": _ran_again,
    "recompile": _recompiled,
    "refused": _refused,
}
