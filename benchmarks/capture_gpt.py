#!/usr/bin/env python3
"""Capture of a GPT of 12 layers, 256 wide: its time beside PyTorch's, and its guards'.

    python benchmarks/capture_gpt.py [--repeats 3]

Each library runs in processes of its own, in turn. What is reported is the first call
of the captured forward less a later one. The compiler is imported by then: another
function was captured before.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time


def model(L):
    """The module and its argument."""
    nn, F = L.nn, L.nn.functional

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            b, t, c = x.shape
            shape = (b, t, self.heads, c // self.heads)
            parts = self.qkv(x).split(c, dim=2)
            q, k, v = [part.view(shape).transpose(1, 2) for part in parts]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.drop(self.proj(y.transpose(1, 2).reshape(b, t, c)))

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = Attention(width, heads)
            wide = 4 * width
            self.mlp = nn.Sequential(
                nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width), nn.Dropout()
            )

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self, layers=12, width=256, heads=8, words=1000, length=64):
            super().__init__()
            self.wte = nn.Embedding(words, width)
            self.wpe = nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
            self.ln = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)

        def forward(self, index):
            places = L.arange(0, index.shape[1], device=index.device)
            x = self.wte(index) + self.wpe(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln(x))

    return GPT().eval(), L.randint(0, 1000, (1, 16))


def compiler(L):
    """What captures a function and runs its graph eagerly."""
    if L.__name__ == "torch":
        return lambda f: L.compile(f, backend="eager", fullgraph=True)
    from taeda.compiler._frames import capture

    return lambda f: capture(f, fullgraph=True)


def measure(name: str) -> dict:
    """Seconds, in this process."""
    L = importlib.import_module(name)
    capture = compiler(L)
    module, index = model(L)
    found: dict = {}

    def forward(i):
        return module(i)

    def timed(f, *args) -> float:
        begin = time.perf_counter()
        f(*args)
        return time.perf_counter() - begin

    with L.no_grad():
        capture(lambda x: x + 1)(L.ones(1))
        wanted = forward(index)
        captured = capture(forward)
        first = timed(captured, index)
        assert bool((captured(index) == wanted).all())
        later = [timed(captured, index) for _ in range(30)]
        eager = [timed(forward, index) for _ in range(30)]
    found["capture"] = first - statistics.median(later)
    found["call"], found["eager"] = statistics.median(later), statistics.median(eager)
    if name == "taeda":
        found["guards"] = captured.time_guards((index,), 5000)
        found["parts"] = captured.explain()["parts"]
    return found


def main() -> None:
    """Print both libraries' figures and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="measure one library and print JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only)))
        return
    runs: dict = {"torch": [], "taeda": []}
    for _ in range(options.repeats):
        for name, found in runs.items():
            command = [sys.executable, __file__, "--only", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout))
    middle = {
        name: {k: statistics.median(r[k] for r in found) for k in ("capture", "call")}
        for name, found in runs.items()
    }
    for name, values in middle.items():
        print(name, {k: round(v * 1e3, 2) for k, v in values.items()}, "ms")
    ratio = middle["taeda"]["capture"] / middle["torch"]["capture"]
    print("capture, taeda / torch:", round(ratio, 4))
    print("guards:", round(runs["taeda"][0]["guards"] * 1e6, 2), "us")
    print("parts:", runs["taeda"][0]["parts"])


if __name__ == "__main__":
    main()
