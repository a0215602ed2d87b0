"""Under `taeda.as_torch`, what a module defines says that `torch...` has defined it.

Programs ask for it: `type(m).__module__.startswith("torch.optim")`, printed types,
filters of warnings, whole models in files. `adopt` writes the names into a module once
it has run, and `give_back` undoes that; without as_torch neither is called.
"""

from __future__ import annotations

import sys
from functools import _lru_cache_wrapper
from types import BuiltinFunctionType, FunctionType, ModuleType

from taeda import _C
from taeda._torch_places import PLACES

__all__ = ["adopt", "adopt_loaded", "give_back", "hide_files", "show_files"]

_OURS, _THEIRS = "taeda", "torch"
_FUNCTIONS = frozenset((FunctionType, BuiltinFunctionType, _lru_cache_wrapper))
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its attributes can be set
_members = type.__dict__["__dict__"].__get__  # of a class, whatever its metaclass


def adopt(name: str, module) -> None:
    """Name a module, its classes and its functions as parts of `torch`.

    Args:
        name: by which the module was imported, "taeda.nn". `sys.modules` has it under
            the other name too from now on: pickle, typing and inspect look there.
        module: it has run.
    """
    sys.modules[_THEIRS + name[len(_OURS) :]] = module
    _rename(module, _theirs)


def adopt_loaded() -> None:
    """`adopt` for every module of this package that is there."""
    for name, module in _loaded():
        adopt(name, module)


def give_back() -> None:
    """Undo `adopt` for all modules."""
    for _, module in _loaded():
        _rename(module, _ours)


def show_files(inspect) -> None:
    """Let `inspect` find the files of classes that name another module than their own.

    Args:
        inspect: the module, which looks into the file of the module that a class names.
    """
    known = inspect.getfile
    if hasattr(known, "_of_others"):
        return

    def getfile(object):
        file = _file_of(object) if isinstance(object, type) else None
        return file or known(object)

    getfile._of_others = known
    inspect.getfile = getfile


def _file_of(cls: type) -> str | None:
    """Where a class of this package is defined, as far as its methods tell."""
    path = _moved.get(cls)
    if path is not None:
        return sys.modules[path].__file__
    if not _is_below(cls.__module__, _THEIRS):
        return None
    for name, value in _members(cls).items():
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        if getattr(code, "co_qualname", "") == f"{cls.__qualname__}.{name}":
            return code.co_filename
    return None


def hide_files() -> None:
    """Undo `show_files`, unless another function has taken its place since."""
    inspect = sys.modules.get("inspect")
    if inspect is not None and hasattr(inspect.getfile, "_of_others"):
        inspect.getfile = inspect.getfile._of_others


def _loaded() -> list:
    return [(n, m) for n, m in list(sys.modules.items()) if _is_below(n, _OURS)]


def _is_below(path, root: str) -> bool:
    if not isinstance(path, str) or not path.startswith(root):
        return False
    return path[len(root) : len(root) + 1] in ("", ".")


class _Names(dict):
    """Module -> how the library calls it now, or None for another's module.

    What it holds can be worked out anew, so that any thread may read and fill it.
    """

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def __missing__(self, path):
        new = None
        if _is_below(path, self.old):
            new = self.new + path[len(self.old) :]
        self[path] = new
        return new

    def of(self, value, path: str) -> str:
        """The module that a class or function of `path` is to name."""
        if self.new == _OURS:
            return _moved.pop(value, None) or self[path]
        places = PLACES.get(path[len(_OURS) + 1 :])
        name = value.__name__
        public = places and name[:1] != "_" and places.get(name, places.get(""))
        if not isinstance(public, str):
            return self[path]
        _moved[value] = path
        return f"{self.new}.{public}".rstrip(".")


_theirs, _ours = _Names(_OURS, _THEIRS), _Names(_THEIRS, _OURS)
# Objects that name a public module in place of the private one given here. Only imports
# and `give_back` write to it, under the interpreter's lock.
_moved: dict = {}


def _rename(module, names: _Names) -> None:
    path = names[vars(module).get("__name__")]
    if path is not None:
        module.__name__ = path
    spec = module.__spec__
    if spec is not None and names[spec.name] is not None:
        _rename_spec(module, spec, names)
    for value in list(vars(module).values()):
        kind = type(value)
        if kind in _FUNCTIONS:
            path = value.__module__
            if names[path] is not None:
                value.__module__ = names.of(value, path)
        elif issubclass(kind, type):
            _rename_class(value, names)
        elif kind is ModuleType and value.__spec__ is None:
            if names[value.__name__] is not None:  # the module made it itself
                _rename(value, names)


def _rename_spec(module, spec, names: _Names) -> None:
    """For how modules are printed, and `importlib.util.find_spec`."""
    spec.name = path = names[spec.name]
    if hasattr(spec.loader, "name"):  # it refuses to speak of other modules
        spec.loader.name = path
    package = names[module.__package__]
    if package is not None:  # relative imports ask whether both agree
        module.__package__ = package


def _rename_class(cls: type, names: _Names) -> None:
    members = _members(cls)
    path = members.get("__module__")
    if not isinstance(path, str) or names[path] is None:
        return
    new = names.of(cls, path)
    if cls.__flags__ & _HEAP_TYPE:
        cls.__module__ = new
        _C._name_type(cls, f"{new}.{cls.__qualname__}")
    for value in list(members.values()):
        kind = type(value)
        if kind is classmethod or kind is staticmethod:
            value = value.__func__
            kind = type(value)
        if kind is FunctionType:
            if value.__module__ == path:
                value.__module__ = new
        elif issubclass(kind, type):
            _rename_class(value, names)
