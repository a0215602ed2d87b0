"""Test helpers of the installed PyTorch, read while `torch` is this library."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

__all__ = ["Finder", "Missing", "install", "missing"]

# Of these names, and of what lies below them, the installed files are read.
NAMES = (
    "torch.testing._internal",
    "torch.testing._comparison",
    "torch.testing._utils",
    "torch.utils._import_utils",
)


class Missing:
    """Stands for a name that this library lacks, until it is used.

    Args:
        name: with its module, for the error.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self._name} is not in this library")

    def __mro_entries__(self, bases):
        return (object,)

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Missing({self._name!r})"


def missing(module: str, name: str) -> Missing:
    """A placeholder; MISSING_NAMES=1 tells of it."""
    if os.environ.get("MISSING_NAMES"):
        print(f"missing: {module}.{name}", file=sys.stderr)
    return Missing(f"{module}.{name}")


class _Soft(ast.NodeTransformer):
    """`from torch.x import y` becomes a placeholder where `y` is not there."""

    def visit_ImportFrom(self, node: ast.ImportFrom):
        if node.level or not (node.module or "").startswith("torch"):
            return node
        if any(alias.name == "*" for alias in node.names):
            return node
        found = []
        for alias in node.names:
            line = f"from {node.module} import {alias.name} as {alias.asname or alias.name}"
            text = (
                f"try:\n    {line}\n"
                "except (ImportError, AttributeError, NotImplementedError):\n"
                "    from tools.pytorch_tests.helpers import missing as _missing\n"
                f"    {alias.asname or alias.name} = "
                f"_missing({node.module!r}, {alias.name!r})\n"
            )
            for made in ast.parse(text).body:
                found.append(ast.copy_location(made, node))
        return found

    def visit_Import(self, node: ast.Import):
        found = []
        for alias in node.names:
            single = ast.copy_location(ast.Import([alias]), node)
            if not alias.name.startswith("torch."):
                found.append(single)
                continue
            bound = alias.asname or None
            handler = ast.parse(
                "from tools.pytorch_tests.helpers import missing as _missing\n"
                f"{bound} = _missing({alias.name!r}, '')"
                if bound
                else "pass"
            ).body
            kinds = ast.parse("(ImportError, AttributeError, NotImplementedError)")
            tried = ast.Try(
                [single],
                [ast.ExceptHandler(kinds.body[0].value, None, handler)],
                [],
                [],
            )
            found.append(ast.copy_location(tried, node))
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, *, _optimize=-1):
        tree = _Soft().visit(ast.parse(data, path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def set_data(self, path, data, *, _mode=0o666):
        pass  # bytecode beside the installed files is PyTorch's

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Finder(importlib.abc.MetaPathFinder):
    """Answers for the helpers, and softens imports of test files.

    Args:
        site: the folder that holds the installed `torch`.
        tests: PyTorch's folder `test`.
    """

    def __init__(self, site: Path, tests: Path) -> None:
        self._site, self._tests = site, tests

    def find_spec(self, fullname, path=None, target=None):
        if not any(fullname == n or fullname.startswith(n + ".") for n in NAMES):
            return self._of_tests(fullname, path)
        return self._spec(fullname, self._site.joinpath(*fullname.split(".")))

    def _of_tests(self, fullname, path):
        for folder in path or [str(self._tests), *sys.path]:
            place = Path(folder) / fullname.rpartition(".")[2]
            if self._tests not in (place, *place.parents):
                continue
            spec = self._spec(fullname, place)
            if spec is not None:
                return spec
        return None

    def _spec(self, fullname: str, place: Path):
        package = place / "__init__.py"
        if package.exists():
            return importlib.util.spec_from_file_location(
                fullname,
                package,
                loader=_Loader(fullname, str(package)),
                submodule_search_locations=[str(place)],
            )
        file = place.with_suffix(".py")
        if not file.exists():
            return None
        loader = _Loader(fullname, str(file))
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def install(tests: Path) -> None:
    """Makes `torch` this library, with PyTorch's test helpers."""
    installed = importlib.util.find_spec("torch")
    assert installed and installed.origin, "PyTorch is not installed"
    site = Path(installed.origin).parents[1]
    from taeda import as_torch

    as_torch.install()
    for name in [n for n in sys.modules if n.startswith(NAMES)]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(site, tests))
