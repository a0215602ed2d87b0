"""Losses of logits whose classes are cut over ranks."""

from __future__ import annotations

from contextlib import contextmanager

from .. import _losses

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel():
    """Within, `cross_entropy` computes on logits that are cut along their classes.

    Each rank keeps its classes; ranks exchange a maximum, a sum and the target's logit
    for each row. Without it the logits are gathered. The backward pass belongs into it
    as well. Targets are class numbers; weights of classes are replicas.
    """
    before = _losses.cuts_classes[0]
    _losses.cuts_classes[0] = True
    try:
        yield
    finally:
        _losses.cuts_classes[0] = before
