"""Runs the examples that the site shows: docstrings, and the blocks of the guides.

    python -m docsite.examples EXAMPLES.json

The table, which `docsite.build` writes, maps a public name to the text that has its
example.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import warnings

# What examples count on; the site's table of contents shows it.
PRELUDE = """\
import taeda
from taeda import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
x, y = taeda.ones(3, 4), taeda.zeros(3, 1)
loss = nn.functional.mse_loss(model(x), y)
optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
dataset = taeda.utils.data.TensorDataset(x, y)
state = {"model": model.state_dict(), "step": 1}
"""
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_docstring(name: str, text: str) -> tuple[int, str]:
    """How many examples a text has, and what the failing ones print."""
    space = _beside(name, text)
    exec(PRELUDE, space)
    test = doctest.DocTestParser().get_doctest(text, space, name, None, 0)
    out = io.StringIO()
    runner = doctest.DocTestRunner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.run(test, out=out.write)
    return runner.summarize(verbose=False).attempted, out.getvalue()


def _beside(name: str, text: str) -> dict[str, object]:
    """What a text names of the module of its object, without saying the module."""
    module = name.rpartition(".")[0]
    while module not in sys.modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:  # of a member of a class
            module = module.rpartition(".")[0]
    if module == "taeda":
        return {}
    found = sys.modules[module]
    words = {word for word in re.findall(r"[A-Za-z_]\w*", text) if hasattr(found, word)}
    return {word: getattr(found, word) for word in words}


def run_guide(path: pathlib.Path) -> int:
    """Runs the Python blocks of a page as one program; the number of blocks.

    Blocks that are marked `py` are excerpts and do not run by themselves.
    """
    blocks = BLOCK.findall(path.read_text())
    space = {"__name__": f"guide_{path.stem}"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{path.name}, block {number}", "exec"), space)
    return len(blocks)


def main(table: pathlib.Path) -> int:
    """Prints what fails and how many examples ran; 1 where something failed."""
    total, failures = 0, []
    rows = json.loads(table.read_text())
    # Some write files.
    os.chdir(tempfile.mkdtemp())
    for name, text in rows.items():
        with contextlib.redirect_stderr(io.StringIO()):
            attempted, failed = run_docstring(name, text)
        total += attempted
        if failed:
            failures.append(failed)
    print("\n".join(failures))
    print(f"{total} examples, {len(failures)} names fail")
    return int(bool(failures) or not total)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
