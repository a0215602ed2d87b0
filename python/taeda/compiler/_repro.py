"""Graphs that compiled code computes otherwise, as small programs to run: TAEDA_MINIFY.

Where the environment's TAEDA_MINIFY names a folder, each graph is run compiled and by
its calls when it is first called. Where results or gradients differ by more than
roundings, or compiled code raises, the graph is made small (`_minify.py`) and written
there.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import taeda

from ._events import warn
from ._minify import copies, reduce_graph

__all__ = ["Held", "difference"]

# What roundings may come to, as a share of the largest element; none elsewhere.
_SHARES = {
    taeda.float64: 1e-9,
    taeda.float32: 1e-3,
    taeda.float16: 2e-2,
    taeda.bfloat16: 8e-2,
}

_SCRIPT = '''"""A graph that compiled code computes otherwise: {why}

Exits with 1 while that is so. The graph is in graph/module.py.
"""

import sys
from pathlib import Path

import taeda

here = Path(__file__).parent
sys.path.insert(0, str(here))
from graph import Graph
from taeda.compiler._repro import difference

inputs = taeda.load(here / "inputs.pt")
found = difference(Graph(), inputs)
print(found or "no difference")
sys.exit(bool(found))
'''


def _outcome(function, inputs) -> list:
    """Results, inputs afterwards and gradients of a sum of the results."""
    inputs = copies(inputs)
    with taeda.random.fork_rng():
        taeda.manual_seed(0)
        results = [r for r in function(*inputs) if taeda.is_tensor(r)]
        moved = [r for r in results if r.requires_grad and r.is_floating_point()]
        if moved:
            sum((r * r).sum().double() for r in moved).backward()
    tensors = [x for x in inputs if taeda.is_tensor(x)]
    return [*results, *tensors, *(x.grad for x in tensors if x.is_leaf)]


def _differs(found, expected) -> bool:
    if found is None or expected is None:
        return found is not expected
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return True
    found, expected = found.detach(), expected.detach()
    finite = expected[expected.isfinite()].abs() if expected.numel() else expected
    largest = finite.max().item() if finite.numel() else 0
    bound = _SHARES.get(expected.dtype, 0) * largest
    return not taeda.allclose(found, expected, rtol=0, atol=bound, equal_nan=True)


def difference(gm, inputs) -> str:
    """What is different where a GraphModule is compiled, in words; "" for nothing."""
    from ._default import compile_function

    try:
        expected = _outcome(gm.forward, inputs)
    except Exception:  # what fails by its calls too says nothing
        return ""
    try:
        compiled = compile_function(gm.forward, inputs, fuse=True, blocking=True)
        found = _outcome(compiled, inputs)
    except Exception as error:  # any is a finding
        return f"{type(error).__name__}: {error}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if _differs(a, b):
            return f"tensor {i} of results, inputs and gradients differs"
    return ""


def write(where, gm, inputs, why: str) -> Path:
    """Writes a script that shows the difference, in a folder of its own.

    Returns:
        The script's path.
    """
    Path(where).mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="graph_", dir=where))
    gm.to_folder(place / "graph", "Graph")
    taeda.save(list(inputs), place / "inputs.pt")
    script = place / "repro.py"
    script.write_text(_SCRIPT.format(why=why.replace('"""', "'''")))
    return script


class Held:
    """A compiled graph that is compared with its calls at its first call.

    Args:
        made: the compiled graph.
        graph: makes its GraphModule.
    """

    def __init__(self, made, graph) -> None:
        self._made, self._graph = made, graph

    def __call__(self, *given):
        if self._graph is not None:
            graph, self._graph = self._graph, None
            self._hold(graph(), given)
        return self._made(*given)

    def _hold(self, gm, given) -> None:
        why = difference(gm, given)
        if not why:
            return
        small, inputs = reduce_graph(gm, given, lambda *part: difference(*part) != "")
        told = difference(small, inputs)
        script = write(os.environ["TAEDA_MINIFY"], small, inputs, told)
        warn("compile: a graph computes otherwise (%s); run %s", why, script)
