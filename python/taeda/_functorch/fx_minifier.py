"""`minifier`: the smallest part of a graph that still fails."""

from __future__ import annotations

from taeda.compiler._minify import reduce_graph

__all__ = ["dump_state", "minifier"]


def dump_state(fx_g, inps) -> None:
    """Prints a graph and the shapes and dtypes of its inputs."""
    shapes = ", ".join(f"({tuple(x.shape)}, {x.dtype})" for x in inps)
    print(f"inputs: [{shapes}]\n{fx_g.code.strip()}")


def minifier(fail_f, inps, module_fails, dump_state=dump_state):
    """Leaves out of a graph what does not matter to a failure.

    Args:
        fail_f: a GraphModule that fails on these inputs.
        inps: tensors.
        module_fails: whether a GraphModule fails on some inputs; called many times.
        dump_state: called with the result.

    Returns:
        The smallest graph that was found, and its inputs.

    Raises:
        RuntimeError: `fail_f` does not fail.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: (x + 1).sin() * 2)
        >>> has_sin = lambda gm, inputs: "sin" in gm.code
        >>> small, _ = minifier(gm, [taeda.ones(2)], has_sin, lambda *state: None)
        >>> len(small.graph.nodes)
        3
    """
    found = reduce_graph(fail_f, inps, module_fails)
    dump_state(*found)
    return found
