"""The package itself: names, cheap import, examples in docstrings."""

from __future__ import annotations

import ast
import doctest
import pathlib
import pickle
import subprocess
import sys

import pytest
import taeda

ROOT = pathlib.Path(taeda.nn.__file__).resolve().parent
FILES = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py"))
HEAVY = ("dataclasses", "enum", "inspect", "logging", "re", "typing")


def test_all_names_exist():
    for space in (taeda.nn, taeda.nn.functional, taeda.nn.init, taeda.nn.utils):
        missing = [name for name in space.__all__ if not hasattr(space, name)]
        assert not missing, space.__name__
        assert set(space.__all__) <= set(dir(space))
    assert not hasattr(taeda.nn, "no_such_layer")


def test_public_functions_pickle_by_name():
    for name in ("relu", "cross_entropy", "pad"):
        function = getattr(taeda.nn.functional, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__module__.endswith("nn.functional")


def test_layer_files_are_read_on_demand():
    code = (
        "import sys, taeda; import taeda.nn; "
        "read = [m for m in sys.modules if m.startswith('taeda.nn.modules.')]; "
        "print(sorted(m.rpartition('.')[2] for m in read))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    read = ast.literal_eval(run.stdout)
    assert "transformer" not in read and "rnn" not in read


def test_no_heavy_standard_modules_at_import():
    for file in FILES:
        tree = ast.parse((ROOT / file).read_text())
        for node in tree.body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            assert not set(names) & set(HEAVY), file


def docstrings(file):
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text and ">>>" in text:
                yield node.name, text


@pytest.mark.parametrize("file", [f for f in FILES if any(docstrings(f))])
@pytest.mark.filterwarnings("ignore")
def test_examples(file):
    parser, failed, count = doctest.DocTestParser(), [], 0
    for name, text in docstrings(file):
        test = parser.get_doctest(text, {"taeda": taeda}, name, file, 0)
        runner, out = doctest.DocTestRunner(), []
        runner.run(test, out=out.append)
        count += runner.summarize(verbose=False).attempted
        if runner.summarize(verbose=False).failed:
            failed.append("".join(out))
    assert count > 0
    assert not failed, "\n".join(failed)


def test_every_public_layer_and_function_is_documented():
    for space in (taeda.nn, taeda.nn.functional, taeda.nn.init):
        for name in space.__all__:
            shown = getattr(space, name)
            if callable(shown) and not name.startswith("Broadcasting"):
                assert shown.__doc__, f"{space.__name__}.{name}"


def test_the_functions_show_the_gradients():
    functions = taeda.nn.functional
    assert functions.grad is taeda.nn.grad
    found = functions.grad.conv1d_weight(
        taeda.ones(1, 1, 3), (1, 1, 2), taeda.ones(1, 1, 2)
    )
    assert found.tolist() == [[[2, 2]]]
