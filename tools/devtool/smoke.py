"""The smoke test of an installed wheel.

Runs from any folder in an environment that has the wheel and nothing else: imports,
trains 20 steps, saves and loads, and runs a program that says `import torch`.
"""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import taeda
from taeda import nn

STEPS = 20
PROGRAM = """
import pathlib, sys, torch
model = torch.nn.Linear(4, 2)
model.load_state_dict(torch.load(sys.argv[1]))
print(model(torch.ones(3, 4)).shape, pathlib.Path(torch.__file__).parent.name)
"""


def check_layout() -> None:
    """The package is the installed one, with its libraries, headers and stubs."""
    assert importlib.util.find_spec("numpy") is None, "the environment is not fresh"
    here = pathlib.Path(taeda.__file__).parent
    assert pathlib.Path(sys.prefix) in here.parents, here
    stubs = ("__init__.pyi", "_C/__init__.pyi", "nn/__init__.pyi", "py.typed")
    for part in (*stubs, "share/cmake/Taeda/TaedaConfig.cmake"):
        assert (here / part).is_file(), part
    assert (here / "include/taeda/c10").is_dir()
    print("installed:", here)


def train() -> nn.Module:
    """20 steps of a small model on products that use both libraries of the wheel."""
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    x = taeda.randn(512, 64)
    y = x[:, :1] * x[:, 1:2]
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0], losses
    wide = taeda.randn(200, 200, dtype=taeda.float64)
    identity = taeda.eye(200, dtype=taeda.float64)
    assert taeda.allclose(taeda.linalg.inv(wide) @ wide, identity, atol=1e-6)
    picture = nn.functional.conv2d(taeda.ones(1, 3, 32, 32), taeda.ones(8, 3, 3, 3))
    assert picture.unique().tolist() == [27.0]
    print(f"trained: {losses[0]:.3f} to {losses[-1]:.3f} in {STEPS} steps")
    return model


def keep(model: nn.Module, folder: pathlib.Path) -> None:
    """A saved state loads with the same values."""
    state = model.state_dict()
    taeda.save(state, folder / "model.pt")
    loaded = taeda.load(folder / "model.pt")
    assert list(loaded) == list(state)
    assert all(bool((loaded[name] == state[name]).all()) for name in state)
    print("saved and loaded:", len(state), "tensors")


def run_as_torch(folder: pathlib.Path) -> None:
    """`python -m taeda.as_torch` runs a program that knows PyTorch only."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    state = folder / "linear.pt"
    taeda.save(nn.Linear(4, 2).state_dict(), state)
    command = [sys.executable, "-I", "-m", "taeda.as_torch", program, state]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "torch.Size([3, 2]) taeda", done.stdout
    print("as_torch:", done.stdout.strip())


def main() -> None:
    """Runs all checks; an AssertionError ends the process with a message."""
    check_layout()
    with tempfile.TemporaryDirectory() as folder:
        keep(train(), pathlib.Path(folder))
        run_as_torch(pathlib.Path(folder))


if __name__ == "__main__":
    main()
