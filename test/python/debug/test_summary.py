"""The table of a model."""

from __future__ import annotations

import pytest
import taeda
from taeda.debug import summary

nn = taeda.nn


def test_lines_shapes_and_sums() -> None:
    model = nn.Sequential(nn.Linear(4, 2), nn.Sequential(nn.BatchNorm1d(2), nn.ReLU()))
    model[0].bias.requires_grad_(False)
    model[1].eval()
    lines = summary(model, taeda.ones(3, 4)).splitlines()
    rows = {line.split()[0]: line.split() for line in lines[1:-2]}
    assert list(rows) == ["(model)", "0", "1", "1.0", "1.1"]
    assert rows["0"][1:] == ["Linear", "[3,", "2]", "10", "8", "40", "B"]
    assert rows["1.0"][4:6] == ["4", "4"]
    # 14 parameters of float32, two means of two and one count of 8 bytes
    assert lines[-1].split() == ["Sum", "14", "12", str(14 * 4 + 16 + 8), "B"]
    assert model.training and not model[1].training
    assert not model[0]._forward_hooks


def test_shared_parameters_count_once_and_depth_limits() -> None:
    layer = nn.Linear(3, 3)
    other = nn.Linear(3, 3)
    other.weight = layer.weight
    model = nn.Sequential(layer, nn.Sequential(other))
    lines = summary(model).splitlines()
    assert lines[-1].split()[1] == "15"
    assert len(summary(model, depth=1).splitlines()) == len(lines) - 1
    assert "(model)" in summary(model, depth=0)


def test_a_failing_call_leaves_the_model_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    with pytest.raises(RuntimeError):
        summary(model, taeda.ones(3, 5))
    assert model.training and not model[0]._forward_hooks
