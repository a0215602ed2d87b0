"""Passes over exported programs."""

from __future__ import annotations

import taeda
from taeda import nn
from taeda.export import export
from taeda.export.passes import move_to_device_pass


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("shift", taeda.ones(2))
        self.table = taeda.arange(2.0)

    def forward(self, x):
        made = taeda.zeros(2, device=x.device) + self.table
        return self.linear(x) + self.shift + made.to(x.device)


def _devices(program) -> set[str]:
    tensors = [*program.state_dict.values(), *program.constants.values()]
    tensors += [n.meta["val"] for n in program.graph.nodes if n.op != "output"]
    given = [n.kwargs["device"] for n in program.graph.nodes if "device" in n.kwargs]
    return {t.device.type for t in tensors} | {d.type for d in given if d is not None}


def test_a_program_moves_as_a_whole():
    program = export(Model(), (taeda.ones(1, 3),))
    moved = move_to_device_pass(program, "meta")
    assert _devices(moved) == {"meta"} and _devices(program) == {"cpu"}
    assert moved.module()(taeda.ones(1, 3, device="meta")).shape == (1, 2)
    assert all(isinstance(p, nn.Parameter) for p in moved.parameters())
    assert moved.example_inputs[0][0].device.type == "meta"


def test_devices_that_are_not_named_stay():
    program = export(Model(), (taeda.ones(1, 3),))
    assert _devices(move_to_device_pass(program, {"cuda": "meta"})) == {"cpu"}
    assert _devices(move_to_device_pass(program, {"cpu": "meta"})) == {"meta"}
