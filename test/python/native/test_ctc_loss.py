"""Connectionist temporal classification."""

from __future__ import annotations

import numpy as np
import pytest
import taeda

TARGETS = np.array([[1, 2, 2, 3], [3, 1, 4, 4], [2, 0, 0, 0]])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("line", [False, True], ids=["rows", "line"])
def test_values_and_gradients(same, values, reduction, line):
    lengths = [4, 2, 1]

    def program(T, x, targets):
        return T.nn.functional.ctc_loss(
            x.log_softmax(2), targets, (7, 5, 3), tuple(lengths), reduction=reduction
        )

    rows = [row[:n] for row, n in zip(TARGETS, lengths, strict=True)]
    same(program, values(7, 3, 5), np.concatenate(rows) if line else TARGETS)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_impossible_and_empty_sequences(same, values, zero_infinity):
    """Repeated labels need a blank between: four steps cannot hold 1 2 2 3 and it."""

    def program(T, x, targets):
        steps, labels = T.tensor([4, 0, 4]), T.tensor([4, 0, 0])
        return T.nn.functional.ctc_loss(
            x.log_softmax(2), targets, steps, labels, zero_infinity=zero_infinity
        )

    same(program, values(4, 3, 5), TARGETS)


def test_one_sequence_without_batch(same, values):
    def program(T, x, targets):
        length = T.tensor(6), T.tensor(3)
        return T.nn.functional.ctc_loss(x.log_softmax(1), targets, *length, blank=4)

    same(program, values(6, 5), np.array([1, 0, 3]))


def test_errors():
    loss, x = taeda.nn.functional.ctc_loss, taeda.zeros(4, 2, 3)
    with pytest.raises(RuntimeError, match="blank must be in label range, got 3"):
        loss(x, taeda.ones(2, 2).long(), (4, 4), (2, 2), blank=3)
    with pytest.raises(RuntimeError, match="at most 4, but got value 5"):
        loss(x, taeda.ones(2, 2).long(), (4, 5), (2, 2))
    with pytest.raises(RuntimeError, match="target 3 out of range"):
        loss(x, taeda.full((2, 2), 3), (4, 4), (2, 2))
