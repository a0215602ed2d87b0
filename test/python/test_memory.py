"""Training holds no memory from step to step."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import taeda as T
nn, F = T.nn, T.nn.functional

T.set_num_threads(1)
T.manual_seed(0)
kind = {kind!r}
if kind == "transformer":
    model = nn.Sequential(
        nn.Embedding(50, 32),
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
        nn.Linear(32, 50),
    )
    data = T.randint(0, 50, (4, 16))
    loss_of = lambda y: F.cross_entropy(y.flatten(0, 1), data.flatten())
else:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8 * 9, 10),
    )
    data, target = T.rand(4, 3, 8, 8), T.randint(0, 10, (4,))
    loss_of = lambda y: F.cross_entropy(y, target)
optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

for step in range(2001):
    loss = loss_of(model(data))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step == 200:
        before = resident()
print(before, resident())
"""


@pytest.mark.parametrize("kind", ["transformer", "convolution"])
def test_resident_memory_between_steps_200_and_2000(kind):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(kind=kind)],
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = map(int, done.stdout.split())
    assert after <= 1.01 * before, (before, after)
