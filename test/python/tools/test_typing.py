"""Type stubs say what is there: same names and parameters as at run time."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib

import pytest
import taeda
from devtool.cmake import PACKAGE
from devtool.shell import ROOT
from taeda import _C, _compat
from taeda.utils import data

PROGRAM = ROOT / "test" / "typing" / "program.py"


def stub(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text())


def names(body: list[ast.stmt]) -> set[str]:
    """What the statements of a stub define or import."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found.update(a.asname for a in node.names if a.asname)
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            found.update(ast.unparse(target) for target in node.targets)
    return found


def members(name: str, cls: str) -> set[str]:
    body = next(n.body for n in stub(name).body if getattr(n, "name", "") == cls)
    return names(body)


def test_the_typed_program_runs() -> None:
    spec = importlib.util.spec_from_file_location("typed_program", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()


def test_the_typed_program_has_wrong_uses_too() -> None:
    text = PROGRAM.read_text()
    assert len(text.splitlines()) >= 300
    assert text.count("# type: ignore[") >= 40
    assert text.count("assert_type(") >= 150


def test_root_stub_has_the_names_of_the_package() -> None:
    shown = names(stub("__init__.pyi").body)
    # `from taeda._functions import *`
    shown |= set(taeda._functions.__all__)
    # Placeholders stay in the module once they were used; types do not offer them.
    placeholders = set(_compat.entries("taeda"))
    assert all(hasattr(taeda, name) for name in placeholders)
    missing = {n for n in dir(taeda) if not n.startswith("_")} - shown - placeholders
    # Other tests may have imported further submodules.
    missing = {n for n in missing if not inspect.ismodule(getattr(taeda, n))}
    assert missing <= {"annotations"}
    public = {n for n in shown if not n.startswith("_")}
    assert {n for n in public if not hasattr(taeda, n)} <= {"Any"}


@pytest.mark.parametrize("name", ["nn", "nn.functional", "nn.modules", "optim"])
def test_package_stubs_have_the_names_of_the_packages(name: str) -> None:
    module = importlib.import_module(f"taeda.{name}")
    shown = names(stub(name.replace(".", "/") + "/__init__.pyi").body)
    assert set(module.__all__) <= shown
    assert {n for n in shown - {"Any"} if not hasattr(module, n)} == set()


@pytest.mark.parametrize("name", ["linalg", "special"])
def test_namespaces_have_the_names_of_the_records(name: str) -> None:
    module = importlib.import_module(f"taeda.{name}")
    shown = names(stub(f"{name}.pyi").body)
    assert set(module.__all__) == shown - {"_natives"}


def test_tensor_members_are_all_described() -> None:
    shown = members("_C/__init__.pyi", "TensorBase")
    shown |= members("_C/_native.pyi", "TensorMembers")
    shown |= set(vars(taeda.Tensor)) | set(dir(object)) | {"__dict__"}
    assert set(dir(_C.TensorBase)) - shown == set()
    absent = {n for n in shown if not hasattr(taeda.Tensor, n)}
    assert absent == set()


@pytest.mark.parametrize(
    "name", [n for n in data.__all__ if inspect.isclass(getattr(data, n))]
)
def test_data_classes_take_the_stub_s_parameters(name: str) -> None:
    if name not in names(stub("utils/data/_types.pyi").body):
        # What is not in the stub is annotated in place.
        home = getattr(data, name).__module__
        in_place = home.startswith("taeda.utils.data.datapipes")
        assert in_place or name in {"DistributedSampler", "_DatasetKind"}
        return
    body = next(
        n.body
        for n in stub("utils/data/_types.pyi").body
        if getattr(n, "name", "") == name
    )
    inits = [n for n in body if getattr(n, "name", "") == "__init__"]
    if inits:
        given = inits[0].args
        stated = [a.arg for a in [*given.args, *given.kwonlyargs]]
        stated += [a.arg for a in (given.vararg, given.kwarg) if a]
        actual = inspect.signature(getattr(data, name).__init__).parameters
        assert set(stated) == set(actual)


def test_marker_of_typed_packages_ships() -> None:
    assert pathlib.Path(taeda.__file__).with_name("py.typed").is_file()
