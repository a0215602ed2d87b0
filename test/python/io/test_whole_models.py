"""Models and optimizers that are saved as they are, from here to PyTorch and back."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import pickle
import subprocess
import sys

import pytest
import taeda
import torch
from taeda import nn

MODELS = {
    "layers": lambda n: n.Sequential(
        n.Conv1d(3, 4, 3), n.BatchNorm1d(4), n.GELU(), n.Flatten(), n.Linear(24, 2)
    ),
    "lstm": lambda n: n.LSTM(8, 3, num_layers=2, bidirectional=True, batch_first=True),
    "encoder": lambda n: n.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
}
PROGRAM = """
import sys, torch
model, optimizer, schedule, x, expected = torch.load(sys.argv[1], weights_only=False)
result = model(x)
result = result[0] if isinstance(result, tuple) else result
torch.testing.assert_close(result, expected)
heard = []
handle = model.register_forward_hook(lambda *given: heard.append(1))
model(x)
handle.remove()
optimizer.param_groups[0]["params"] = list(model.parameters())
optimizer.zero_grad()
result.sum().backward()
optimizer.step()
schedule.step()
torch.save((model, optimizer), sys.argv[1])
print(len(heard), type(optimizer.state).__name__, len(model.state_dict()))
"""


def _result(model, x):
    result = model(x)
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", MODELS)
def test_pytorch_runs_what_is_saved_here(tmp_path, name):
    taeda.manual_seed(0)
    model, x = MODELS[name](nn).eval(), taeda.randn(2, 3, 8)
    optimizer = taeda.optim.Adam(model.parameters(), lr=0.1)
    schedule = taeda.optim.lr_scheduler.StepLR(optimizer, 2)
    _result(model, x).sum().backward()
    optimizer.step()
    path = tmp_path / "model.pt"
    expected = _result(model, x).detach()
    taeda.save((model, optimizer, schedule, x, expected), path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path], capture_output=True, text=True
    )
    count = len(model.state_dict())
    assert done.stdout == f"1 defaultdict {count}\n", done.stderr
    again, optimizer = taeda.load(path, weights_only=False)
    assert type(again) is type(model) and len(optimizer.state) > 0
    assert _result(again, x).shape == expected.shape


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_here_is_read_here(tmp_path, name):
    model, x = MODELS[name](nn).eval(), taeda.randn(2, 3, 8)
    model.register_buffer("kept_out", taeda.ones(1), persistent=False)
    taeda.save(model, tmp_path / "model.pt")
    again = taeda.load(tmp_path / "model.pt", weights_only=False)
    assert taeda.equal(_result(again, x), _result(model, x))
    assert taeda.equal(_result(copy.deepcopy(again), x), _result(model, x))
    assert list(again.state_dict()) == list(model.state_dict())
    assert set(MODELS[name](torch.nn).__dict__) - set(vars(again)) <= {
        "_flat_weights",
        "_flat_weight_refs",
    }


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_of_cycles_is_left_as_it_was(collects: bool) -> None:
    buffer = io.BytesIO()
    taeda.save([{str(i): i} for i in range(40_000)], buffer)
    assert buffer.tell() > 100_000
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        for data in (buffer.getvalue(), buffer.getvalue()[: buffer.tell() // 2]):
            with contextlib.suppress(Exception):
                taeda.load(io.BytesIO(data))
            assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


class Slotted(taeda.Tensor):
    __slots__ = ["inner"]


class Telling(taeda.Tensor):
    __slots__ = ["inner"]

    def __getstate__(self):
        return "told", getattr(self, "inner", None), self.__dict__

    def __setstate__(self, state):
        told, self.inner, self.__dict__ = state
        self.told = told


@pytest.mark.parametrize("kind", [Slotted, Telling])
@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_what_slots_of_tensor_classes_hold_goes_along(kind, way) -> None:
    made = taeda.ones(2).as_subclass(kind)
    made.inner, made.name_of_it = taeda.ones(3), "it"
    if way == "file":
        file = io.BytesIO()
        taeda.save(made, file)
        file.seek(0)
        with taeda.serialization.safe_globals([kind]):
            again = taeda.load(file)
    elif way == "pickle":
        again = pickle.loads(pickle.dumps(made))
    else:
        again = copy.deepcopy(made)
    assert type(again) is kind and again.inner.tolist() == [1, 1, 1]
    assert again.name_of_it == "it"
    assert getattr(again, "told", None) == ("told" if kind is Telling else None)
