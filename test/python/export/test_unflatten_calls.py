"""Submodules that keep the arguments and results that the program wrote."""

from __future__ import annotations

import io

import pytest
import taeda
from taeda import export


class Inner(taeda.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = taeda.nn.Linear(3, 3)

    def forward(self, pair, *, input):
        return {"r": self.lin(pair[0]) * input, "n": pair[1]}


class Outer(taeda.nn.Module):
    """Calls one module twice, with other constants each time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.act = Inner(), taeda.nn.ReLU()

    def forward(self, x, y):
        first = self.inner((x, y), input=2.0)
        second = self.inner((first["r"], first["n"].cos()), input=x)
        return self.act(second["r"]) + second["n"]


class Doubled(taeda.nn.Module):
    """What takes the place of `Inner`."""

    def forward(self, pair, *, input):
        return {"r": pair[0] * 2 * input, "n": pair[1] * 3}


def reloaded(program):
    data = io.BytesIO()
    export.save(program, data)
    data.seek(0)
    return export.load(data)


PROGRAMS = {
    "program": lambda ep: ep,
    "parts": lambda ep: ep.run_decompositions(),
    "file": reloaded,
}


@pytest.mark.parametrize("of", PROGRAMS.values(), ids=PROGRAMS)
def test_a_submodule_is_exchanged_for_all_of_its_calls(of):
    net, x, y = Outer(), taeda.randn(2, 3), taeda.randn(2, 3)
    kept = ("inner", "act")
    ep = of(export.export(net, (x, y), preserve_module_call_signature=kept))
    assert [e.fqn for e in ep.module_call_graph if e.signature is not None] == [
        "",
        "inner",
        "act",
        "inner@1",
    ]
    flat = export.unflatten(ep)
    assert {n for n, _ in flat.named_children()} == {"inner", "act"}
    for _ in range(2):  # a call of the whole ends where the next one begins
        taeda.testing.assert_close(flat(x, y), net(x, y))
    assert dict(flat.named_parameters()).keys() == dict(net.named_parameters()).keys()
    flat.inner = net.inner = Doubled()
    taeda.testing.assert_close(flat(x, y), net(x, y))


def test_calls_that_use_other_values_keep_the_plain_form():
    class Sharing(taeda.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = taeda.nn.Identity()
            self.lin = taeda.nn.Linear(3, 3)
            self.inner.forward = lambda x: self.lin(x) + self.seen
            self.seen = None

        def forward(self, x):
            self.seen = x.sin()
            found = self.inner(x)
            self.seen = None
            return found

    net, x = Sharing(), taeda.randn(2, 3)
    kept = ("inner",)
    ep = export.export(net, (x,), preserve_module_call_signature=kept)
    taeda.testing.assert_close(export.unflatten(ep)(x), net(x))
