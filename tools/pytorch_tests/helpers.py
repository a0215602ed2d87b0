"""Test helpers of the installed PyTorch, read while `torch` is this library."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path

from . import compiler, custom_ops

__all__ = ["Finder", "Missing", "install", "missing"]

# Of these names, and of what lies below them, the installed files are read.
NAMES = (
    "torch.testing._internal",
    "torch.testing._comparison",
    "torch.testing._utils",
    "torch.utils._import_utils",
)

# What helpers read as attributes, and this library does not have.
STAND_INS = (
    "torch._refs",
    "torch._prims",
    "torch._subclasses.CrossRefFakeMode",
    "torch._C.ScriptFunction",
    "torch._C.ScriptMethod",
    "torch._C._get_cpu_capability()",
    "torch._C._get_torch_function_state()",
    "torch._C._debug_only_are_vmap_fallback_warnings_enabled()",
    "torch._C._debug_only_display_vmap_fallback_warnings()",
    "torch._C._functorch._is_vmap_fallback_enabled()",
    "torch._C._functorch._set_vmap_fallback_enabled()",
    "torch._native_batch_norm_legit",
    "torch._batch_norm_with_update",
    "torch.ops.mkldnn._is_mkldnn_bf16_supported()",
    "torch.ops.mkldnn._is_mkldnn_fp16_supported()",
    "torch.ao.nn",
    "torch._opaque_base",
    "torch.jit.TracerWarning.ignore_lib_warnings()",
    "torch.jit._recursive",
    "torch.jit._recursive.ConcreteTypeStore()",
    "torch.jit._state",
    "torch.jit._state._clear_class_state()",
    "torch._C._jit_set_emit_hooks()",
    "torch._C._jit_clear_class_registry()",
    "torch.ScriptObject",
    "torch.utils._pytree._cxx_pytree_dynamo_traceable",
    "torch.backends.python_native",
    "torch.ops.aten._batch_norm_with_update",
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
)

# Dtypes of quantized tensors, which tests are parametrized by, and what such tests get:
# others that seldom stand beside them, since a test's name must stay its own.
DTYPES = {
    "quint2x4": "uint32",
    "quint4x2": "uint16",
    "quint8": "float8_e5m2fnuz",
    "qint8": "float8_e4m3fnuz",
    "qint32": "uint64",
}
# Decorators that only mark what they decorate.
MARKS = ("torch._export.wrappers.mark_subclass_constructor_exportable_experimental",)

# What PyTorch carries within itself.
VENDORED = "packaging"


def _is_helper(name: str) -> bool:
    return any(name == known or name.startswith(known + ".") for known in NAMES)


class Missing:
    """Stands for a name that this library lacks, until it is used.

    Args:
        name: with its module, for the error.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Missing:
        if name == "__all__":
            return []
        # Who asks for the latter asks whether this is a test of many.
        if name.startswith("__") or name == "parametrize_fn":
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __instancecheck__(self, instance) -> bool:
        return False

    def __iter__(self):
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __call__(self, *args, **kwargs):
        if self._name.rpartition(".")[2].startswith("skipIf") and args:
            return args[0]  # nothing says that this test is to be left out
        raise NotImplementedError(f"{self._name} is not in this library")

    def __mro_entries__(self, bases):
        return (object,)

    def __or__(self, other):
        return object  # in annotations

    __ror__ = __or__

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Missing({self._name!r})"


def _stand_in(name: str):
    """Classes have methods that helpers patch; functions know nothing."""
    if name.endswith("()"):
        return lambda *args: None
    last = name.rpartition(".")[2]
    return type(last, (Missing,), {}) if last[0].isupper() else Missing(name)


def missing(module: str, name: str) -> Missing:
    """A placeholder; MISSING_NAMES=1 tells of it."""
    if os.environ.get("MISSING_NAMES"):
        print(f"missing: {module}.{name}", file=sys.stderr)
    if f"{module}.{name}" in MARKS:
        return lambda marked: marked
    return Missing(f"{module}.{name}")


def plain(decorator):
    """What decorates and is not there leaves alone what it decorates."""
    return (
        (lambda decorated: decorated) if isinstance(decorator, Missing) else decorator
    )


_IMPORT = "from tools.pytorch_tests.helpers import missing as _missing\n"


class _Soft(ast.NodeTransformer):
    """`from torch.x import y` becomes a placeholder where `y` is not there."""

    def visit_Module(self, node):
        self.generic_visit(node)
        node.body = [_softened(statement) for statement in node.body]
        return node

    _within = 0  # functions around the one that is visited

    def visit_FunctionDef(self, node):
        self._within += 1
        self.generic_visit(node)
        self._within -= 1
        if self._within == 0:  # what a test itself decorates is what it tests
            node.decorator_list = [_decorating(d) for d in node.decorator_list]
        return node

    def visit_ClassDef(self, node):
        self.generic_visit(node)
        if self._within == 0:
            node.decorator_list = [_decorating(d) for d in node.decorator_list]
        kinds = (ast.Assign, ast.FunctionDef)
        node.body = [_softened(s) if isinstance(s, kinds) else s for s in node.body]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom):
        ours = (node.module or "").startswith(("torch", "functorch"))
        if not node.level and not ours:
            return node
        if not node.level and _is_helper(node.module):
            return node
        if any(alias.name == "*" for alias in node.names) or not node.module:
            return node
        found = []
        for alias in node.names:
            single = ast.ImportFrom(node.module, [alias], node.level)
            bound = alias.asname or alias.name
            lines = _IMPORT + f"{bound} = _missing({node.module!r}, {alias.name!r})"
            found.append(_tried(ast.copy_location(single, node), lines))
        return found

    def visit_Import(self, node: ast.Import):
        found = []
        for alias in node.names:
            single = ast.copy_location(ast.Import([alias]), node)
            if not alias.name.startswith("torch.") or _is_helper(alias.name):
                found.append(single)
                continue
            bound = f"{alias.asname} = _missing({alias.name!r}, '')"
            found.append(_tried(single, _IMPORT + bound if alias.asname else "pass"))
        return found


def _decorating(decorator: ast.expr) -> ast.expr:
    if not isinstance(decorator, ast.Name):
        return decorator
    text = f"__import__({__name__!r}, fromlist=['plain']).plain({decorator.id})"
    return ast.copy_location(ast.parse(text, mode="eval").body, decorator)


def _softened(statement: ast.stmt) -> ast.stmt:
    """`NAME = value` at the top of a module, whose value may not be there.

    Classes and functions too, and what is called for its effect.
    """
    if isinstance(statement, (ast.Expr, ast.If)):
        constant = isinstance(getattr(statement, "value", None), ast.Constant)
        return statement if constant else _tried(statement, "pass")
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
        value = f"_missing(__name__, {statement.name!r})"
        if isinstance(statement, ast.FunctionDef):  # pytest asks more of it
            value = f"lambda *args, lacking={value}, **kwargs: lacking()"
        lines = f"{statement.name} = {value}"
        return _tried(statement, _IMPORT + lines)
    if not isinstance(statement, ast.Assign):
        return statement
    name = statement.targets[0]
    if not isinstance(name, ast.Name) or isinstance(statement.value, ast.Constant):
        return statement
    lines = f"{name.id} = _missing(__name__, {name.id!r})"
    return _tried(statement, _IMPORT + lines)


_NOT_THERE = "ImportError, AttributeError, NotImplementedError, TypeError, ValueError"


def _tried(statement: ast.stmt, otherwise: str) -> ast.stmt:
    kinds = ast.parse(f"({_NOT_THERE})").body[0]
    handler = ast.ExceptHandler(kinds.value, None, ast.parse(otherwise).body)
    return ast.copy_location(ast.Try([statement], [handler], [], []), statement)


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
        if not _is_helper(fullname):
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
    import taeda
    from taeda import as_torch

    as_torch.install()
    for name in NAMES:  # else they would get PyTorch's names when they are loaded
        with contextlib.suppress(ImportError):
            importlib.import_module(name.replace("torch", "taeda", 1))
    for name in [name for name in sys.modules if _is_helper(name)]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(site, tests))
    packaging = importlib.import_module(VENDORED)  # pytest has brought it
    vendor = types.ModuleType("torch._vendor")
    vendor.packaging = packaging
    sys.modules["torch._vendor"] = taeda._vendor = vendor
    sys.modules["torch._vendor.packaging"] = packaging
    version = importlib.import_module(f"{VENDORED}.version")
    sys.modules["torch._vendor.packaging.version"] = version
    taeda._lazy.ts_backend = types.SimpleNamespace(init=lambda: None)
    compiler.install(site, _Loader)
    custom_ops.install()
    for name, other in DTYPES.items():
        if not isinstance(getattr(taeda, name, None), taeda.dtype):
            setattr(taeda, name, getattr(taeda, other))
    importlib.import_module("torch.testing._utils")  # PyTorch's package has done so
    # Tests restore random numbers in it, outside of transforms.
    taeda._C._DisableFuncTorch = contextlib.nullcontext
    for name in STAND_INS:
        path = name.rstrip("()").split(".")[1:]
        place = functools.reduce(getattr, path[:-1], taeda)
        attribute = path[-1]
        if isinstance(getattr(place, attribute, None), (Missing, type(None))):
            setattr(place, attribute, _stand_in(name))
