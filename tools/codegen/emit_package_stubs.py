"""Prints the type stubs of packages whose names are loaded when first used.

Such a package has a table of names in its `__init__.py`; the stub says the same in
imports, which type checkers understand. The table is read, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .emit_stubs import STUBS
from .model import Operator
from .python_signature import all_names, python_functions
from .writer import Output

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "taeda"

# What `taeda` shows of `_C`, beside the functions of the records.
_NATIVES = (
    "OutOfMemoryError Size UntypedStorage as_tensor "
    "default_generator device dtype from_numpy frombuffer get_default_dtype "
    "get_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled "
    "is_grad_enabled is_inference_mode_enabled is_warn_always_enabled "
    "layout memory_format "
    "set_default_dtype set_num_threads tensor"
)
_ROOT = """from typing import Any

from taeda._functions import *
from taeda._tensor import Tensor as Tensor
"""
_ANY = "from typing import Any\n"
# What a package defines itself, beside its table.
_NN = (
    _ANY
    + """
from taeda.nn.parallel import DataParallel as DataParallel
from taeda.nn.parameter import Buffer as Buffer
from taeda.nn.parameter import Parameter as Parameter
from taeda.nn.parameter import UninitializedBuffer as UninitializedBuffer
from taeda.nn.parameter import UninitializedParameter as UninitializedParameter

def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]: ...
"""
)
_DEVICES = ("_compat/table.py", "DEVICES")
_LINALG = "class LinAlgError(RuntimeError): ..."


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Writes `python/taeda/**.pyi` of the packages."""
    operators = list(operators)
    root = (STUBS / "_root.pyi").read_text(encoding="utf-8")
    lazy = _table("__init__.py", "_LAZY_NAMES")
    # A wrapper is shown in place of the native that has its name.
    wrapped = {name for names in lazy.values() for name in names.split()}
    natives = _natives(operators, "", wrapped)
    table = {**lazy, "_C": f"{_NATIVES} {lazy.get('_C', '')}"}
    table["_C._native"] = "Generator"
    names = [*natives, *_reexports("taeda", table)]
    modules = _submodules("taeda", _words("__init__.py", "_SUBMODULES"))
    _write(out, "__init__", root, _ROOT, *names, *modules)

    layers = "nn/modules/__init__.py"
    files = _table(layers, "_FILES")
    _write(out, "nn/modules/__init__", *_reexports("taeda.nn.modules", files))
    layer_names = [name for names in files.values() for name in names.split()]
    lines = _reexports("taeda.nn", {"modules": " ".join(layer_names)})
    modules = _submodules("taeda.nn", _words("nn/__init__.py", "_PACKAGES"))
    _write(out, "nn/__init__", _NN, *lines, *modules)

    _functional(operators, out)
    data = (STUBS / "_data.pyi").read_text(encoding="utf-8")
    _write(out, "utils/data/_types", data)
    classes = {n.name for n in ast.parse(data).body if hasattr(n, "name")}
    for package in ("optim", "utils/data"):
        dotted = "taeda." + package.replace("/", ".")
        homes = _homes(f"{package}/__init__.py", "_HOME", classes)
        lines = _reexports(dotted, homes)
        modules = _submodules(dotted, _words(f"{package}/__init__.py", "_MODULES"))
        _write(out, f"{package}/__init__", *lines, *modules)

    _write(out, "return_types", "from taeda._C._return_types import *")
    _devices(out)
    for space, extra in (("linalg", _LINALG), ("special", "")):
        _write(out, space, *_natives(operators, space), extra)


def _functional(operators: list[Operator], out: Output) -> None:
    """nn.functional: wrappers in Python, and natives as they are."""
    functions = _table("nn/functional/__init__.py", "_FILES")
    private = _homes("nn/functional/__init__.py", "_PRIVATE")
    spaces = _native_spaces(operators)
    shown = _shown_natives(functions) & set(spaces)
    wrappers = {
        file: " ".join(name for name in names.split() if name not in shown)
        for file, names in functions.items()
    }
    lines = _reexports("taeda.nn.functional", wrappers)
    lines += [_import(spaces[name], name) for name in sorted(shown)]
    lines += _reexports("taeda.nn.functional", private)
    _write(out, "nn/functional/__init__", *lines)


def _devices(out: Output) -> None:
    """The modules of devices that a build does not use: see `_compat/device.py`."""
    devices = _table(*_DEVICES)
    for module, (_, line) in devices.items():
        if "." in module:
            continue  # modules within one: anything
        lines = ["from typing import Any, NoReturn", ""]
        lines += [
            f"{inner.rpartition('.')[2]}: Any"
            for inner in devices
            if inner.startswith(f"{module}.")
        ]
        entries = [e.partition("!")[0].partition("=") for e in line.split()]
        sources = [same or name for name, _, same in entries]
        made = _made_on_demand("taeda._compat.device", sources)
        for entry in line.split():
            name, refuses, _ = entry.partition("!")
            name, _, same = name.partition("=")
            if refuses:
                lines.append(f"def {name}(*args: Any, **kwargs: Any) -> NoReturn: ...")
            elif (same or name) in made:
                lines.append(f"{name}: Any")
            else:
                source = same or name
                lines.append(f"from taeda._compat.device import {source} as {name}")
        _write(out, module, *lines)


def _write(out: Output, name: str, *lines: str) -> None:
    out.write(f"python/taeda/{name}.pyi", "\n".join([*lines, ""]))


def _assigned(path: str, variable: str) -> ast.expr:
    """The expression that a module assigns to a variable."""
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"), path)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            if [ast.unparse(target) for target in node.targets] == [variable]:
                return node.value
    raise ValueError(f"codegen: {path} assigns nothing to {variable}")


def _table(path: str, variable: str) -> dict[str, Any]:
    """A table {module: "names, separated by spaces"}."""
    found = ast.literal_eval(_assigned(path, variable))
    assert isinstance(found, dict)
    return found


def _homes(path: str, variable: str, described: Iterable[str] = ()) -> dict[str, str]:
    """A table {name: module}, turned around; names described elsewhere in `_types`."""
    turned: dict[str, str] = {}
    for name, module in _table(path, variable).items():
        module = "_types" if name in described else module
        turned[module] = f"{turned.get(module, '')} {name}".strip()
    return turned


def _words(path: str, variable: str) -> list[str]:
    """All words of the texts in an expression."""
    expression = _assigned(path, variable)
    texts = [n.value for n in ast.walk(expression) if isinstance(n, ast.Constant)]
    return sorted({word for text in texts for word in str(text).split()})


def _reexports(package: str, table: dict[str, str]) -> list[str]:
    """`from package.module import name as name` for each name of a table; names that
    a module makes when it is asked for them can be anything."""
    lines = []
    for module, names in sorted(table.items()):
        made = _made_on_demand(f"{package}.{module}", names.split())
        for name in names.split():
            found = f"from {package}.{module} import {name} as {name}"
            lines.append(f"{name}: Any" if name in made else found)
    return lines


def _made_on_demand(module: str, names: list[str]) -> set[str]:
    """Those of the names that a module's text does not define. A package's table says
    where its own are, so they are all taken to be there."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    path = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {getattr(n, "name", "") for n in tree.body}
    defined |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    aliases = [n.names for n in tree.body if isinstance(n, ast.ImportFrom)]
    defined |= {a.asname or a.name for names in aliases for a in names}
    return set(names) - defined


def _submodules(package: str, names: Iterable[str]) -> list[str]:
    """`from package import name as name` for each submodule that there is."""
    folder = PACKAGE.joinpath(*package.split(".")[1:])
    devices = _table(*_DEVICES) if package == "taeda" else {}
    there = [
        name
        for name in names
        if (folder / f"{name}.py").is_file()
        or (folder / name).is_dir()
        or name in devices
    ]
    return [f"from {package} import {name} as {name}" for name in there]


def _natives(
    operators: Iterable[Operator], space: str, hidden: Iterable[str] = ()
) -> list[str]:
    """A namespace's functions under their short names."""
    lines = [f"from taeda._C import _{space} as _natives"] if space else []
    for function in python_functions(list(operators)):
        if not function.is_function or (function.record.python.module or "") != space:
            continue
        for name in all_names(function):
            short = name.removeprefix(f"{space}_")
            if name.startswith("_") or short in hidden:
                continue
            if space:
                lines.append(f"{short} = _natives.{name}")
            else:
                lines.append(_import("_C._VariableFunctions", name))
    return lines


def _import(module: str, name: str) -> str:
    return f"from taeda.{module} import {name} as {name}"


def _native_spaces(operators: Iterable[Operator]) -> dict[str, str]:
    """Native name to the stub that describes it."""
    spaces = {}
    for function in python_functions(list(operators)):
        if function.is_function:
            space = function.record.python.module or "VariableFunctions"
            spaces |= dict.fromkeys(all_names(function), f"_C._{space}")
    return spaces


def _shown_natives(table: dict[str, str]) -> set[str]:
    """Names that the files of nn/functional define as `name = native("name")`."""
    found = set()
    for file in table:
        text = (PACKAGE / "nn" / "functional" / f"{file}.py").read_text("utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                name = ast.unparse(node.targets[0])
                if ast.unparse(node.value) == f"native({name!r})":
                    found.add(name)
    return found
