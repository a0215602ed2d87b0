#!/usr/bin/env python3
"""Runs a judge's command line: `judge.py opcheck run --lib taeda ...`.

As `python -m opcheck`, but from a file: PyTorch's samples look for the running test in
the stack each time, and where a frame has no source file (`-m` leaves two) Python
searches all modules for it, which made the judges ten times slower.
"""

import importlib
import sys

if __name__ == "__main__":
    sys.argv[:2] = [sys.argv[1]]
    sys.exit(importlib.import_module(f"{sys.argv[0]}.cli").main())
