"""Trains without end; says when steps are running, and what state Ctrl-C leaves."""

from __future__ import annotations

import sys

import taeda


def main() -> int:
    net = taeda.nn.Sequential(
        taeda.nn.Linear(256, 512), taeda.nn.ReLU(), taeda.nn.Linear(512, 256)
    )
    optimizer = taeda.optim.AdamW(net.parameters(), lr=1e-3)
    x = taeda.randn(256, 256)
    steps = 0
    try:
        while True:
            optimizer.zero_grad()
            (net(x) - x).square().mean().backward()
            optimizer.step()
            steps += 1
            if steps == 3:
                print("running", flush=True)
    except KeyboardInterrupt:
        finite = all(bool(p.isfinite().all()) for p in net.parameters())
        print("interrupted", finite, len(optimizer.state), flush=True)
        raise


if __name__ == "__main__":
    sys.exit(main())
