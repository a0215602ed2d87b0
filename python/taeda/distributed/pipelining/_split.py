"""Backwards in two parts: gradients of inputs, and later those of weights.

In a stage's graph some nodes lie on a path to an input; what else they lead to are
weights. The first part runs these nodes and keeps the gradients that come into those
of them that have weights. The second part runs each of these alone, for its weights.
So nothing is computed twice but what a node computes of both at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda.autograd.graph import GradientEdge

__all__ = ["Later", "of_inputs"]


class Later:
    """What the gradients of weights need: pieces of (edges, gradients, weights)."""

    def __init__(self, pieces: list[tuple[list, list, list]]) -> None:
        self.pieces = pieces

    def run(self) -> None:
        """Adds to the gradients of the weights."""
        while self.pieces:
            edges, grads, weights = self.pieces.pop()
            taeda.autograd.backward(edges, grads, inputs=weights)


def _order(roots: Sequence) -> list:
    """All nodes that roots lead to, each behind those that it leads to."""
    found: list = []
    seen: set = set()
    stack = [(node, False) for node in roots]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(n, False) for n, _ in node.next_functions if n is not None]
    return found


def _weights(roots: Sequence, inputs: Sequence) -> dict | None:
    """Node on a path to an input -> the weights that it leads to otherwise.

    None where a weight belongs to several nodes, or to none: its gradient cannot be
    taken piece by piece.
    """
    targets = {id(tensor) for tensor in inputs}
    on_path: set = set()
    leaves: dict = {}  # node beside the paths -> weights that it leads to, by id
    pieces: dict = {}
    for node in _order(roots):
        following = [n for n, _ in node.next_functions if n is not None]
        variable = getattr(node, "variable", None)
        beside: dict = {}
        for other in following:
            beside.update(leaves.get(other, {}))
        if (variable is not None and id(variable) in targets) or any(
            other in on_path for other in following
        ):
            on_path.add(node)
            if beside:
                pieces[node] = beside
        else:
            if variable is not None:
                beside[id(variable)] = variable
            leaves[node] = beside
    owned = [key for weights in pieces.values() for key in weights]
    apart = any(leaves.get(root) for root in roots)
    if apart or len(owned) != len(set(owned)):
        return None
    return {node: list(weights.values()) for node, weights in pieces.items()}


def of_inputs(
    roots: Sequence, seeds: Sequence, inputs: Sequence
) -> tuple[tuple, Later | None]:
    """The gradients of inputs, and what those of weights need.

    Args:
        roots, seeds: tensors, and the gradients that come into them.
        inputs: leaves that require gradients.

    Returns:
        A gradient or None for each input, and a Later; None if weights need the whole
        graph again, which is kept.
    """
    starts = [root.grad_fn for root in roots]
    weights = _weights(starts, inputs) if all(starts) else None
    caught: dict = {}
    handles = []
    for node in weights or {}:

        def keep(grads: tuple, node: Any = node) -> None:
            caught[node] = grads

        handles.append(node.register_prehook(keep))
    try:
        grads = taeda.autograd.grad(
            roots, inputs, seeds, retain_graph=True, allow_unused=True
        )
    finally:
        for handle in handles:
            handle.remove()
    if weights is None:
        return grads, None
    pieces = []
    for node, grads_in in caught.items():
        numbered = [(i, g) for i, g in enumerate(grads_in) if g is not None]
        edges = [GradientEdge(node, i) for i, _ in numbered]
        pieces.append((edges, [g for _, g in numbered], weights[node]))
    return grads, Later(pieces)
