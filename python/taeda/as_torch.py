"""Runs a program that says `import torch` on this library.

    python -m taeda.as_torch program.py arguments...

Within the process the names `torch` and `torch.*` mean `taeda` and `taeda.*`, and so
they do in the Pythons that it starts with its environment, workers of multiprocessing
among them. It refuses to start once real PyTorch has been loaded.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from taeda._torch_names import (
    adopt,
    adopt_loaded,
    give_back,
    hide_files,
    show_files,
)

__all__ = ["install", "main", "uninstall"]

# The release of the interface that programs see as torch.__version__.
_INTERFACE = "2.10.0"
# Where programs that this one starts find `torch`.
_CHILDREN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_children")


class _Finder:
    """Answers imports of `torch` and its submodules with this library's modules.

    Those get the other name as soon as they have run (`taeda._torch_names`).
    """

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name.startswith("taeda."):
            return _with(partial(_run, name), name, path, target)
        if name == "inspect":
            return _with(_run_inspect, name, path, target)
        if name == "functorch" or name.startswith("functorch."):
            # The old place of taeda.func.
            own = "taeda._functorch.former_package" + name[len("functorch") :]
        elif name == "torch" or name.startswith("torch."):
            own = "taeda" + name[len("torch") :]
        else:
            return None
        from importlib.machinery import ModuleSpec

        found = _own_spec(own)
        if found is None:
            return None
        spec = ModuleSpec(name, _Loader(own, found), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    @staticmethod
    def find_distributions(context=None):
        """What importlib.metadata says of `torch`: this release of the interface.

        Programs ask it which release they run on. A PyTorch that is installed beside
        this library stays hidden, since `import torch` does not reach it either.
        """
        if (getattr(context, "name", None) or "").lower() == "torch":
            from taeda._distribution import Distribution

            yield Distribution("torch", _INTERFACE)


def _own_spec(own: str):
    """The spec of a module of this package; None where there is no such module."""
    from importlib.machinery import ModuleSpec
    from importlib.util import find_spec

    module = sys.modules.get(own)
    if module is not None:  # some are made without a spec
        return module.__spec__ or ModuleSpec(own, None)
    try:
        return find_spec(own)
    except ModuleNotFoundError:
        return None


def _with(run, name: str, path, target):
    """A module's spec as other finders have it, whose loader runs it by `run`."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is _Finder or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            if isinstance(spec.loader, type):  # has no state: its methods are static
                spec.loader = spec.loader()
            spec.loader.exec_module = partial(run, spec.loader.exec_module)
            return spec
    return None


def _run(name: str, exec_module, module) -> None:
    exec_module(module)
    adopt(name, sys.modules.get(name, module))  # some put another object there


def _run_inspect(exec_module, module) -> None:
    exec_module(module)
    show_files(module)


class _Loader:
    """Hands out a module of this package, which is imported under its own name."""

    def __init__(self, own: str, found) -> None:
        self.own, self.found, self.made = own, found, False

    def create_module(self, spec):
        from importlib import import_module

        module = import_module(self.own)
        # The import system writes its spec into the module; ours comes back below.
        self.found, self.made = getattr(module, "__spec__", None), True
        return module

    def exec_module(self, module) -> None:
        module.__spec__ = self.found
        if not self.made:  # importlib.reload
            module.__loader__ = self.found.loader
            self.found.loader.exec_module(module)
            adopt(self.own, module)

    def get_code(self, name: str):
        """For `-m torch.utils.collect_env`."""
        return self.found.loader.get_code(self.found.name)


def install() -> None:
    """Make `import torch` mean this library.

    Raises:
        RuntimeError: real PyTorch is loaded already.
    """
    import taeda

    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not taeda:
        raise RuntimeError(
            "as_torch: real PyTorch is already loaded in this process; install before "
            "anything imports torch"
        )
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder)
    _show_children()
    _name_library("torch")
    adopt_loaded()
    if "inspect" in sys.modules:
        show_files(sys.modules["inspect"])
    taeda.torch = taeda
    from taeda import optim, version
    from taeda.torch_version import TorchVersion

    for name in optim.__all__:  # libraries look for optimizers in its __dict__
        getattr(optim, name)
    taeda.__version__ = version.__version__ = TorchVersion(_INTERFACE)


def _show_children() -> None:
    """Put the folder first in PYTHONPATH, and into the path that workers are told."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _CHILDREN not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([_CHILDREN, *filter(None, paths)])
    if _CHILDREN not in sys.path:
        sys.path.insert(1, _CHILDREN)


def _hide_children() -> None:
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    rest = os.pathsep.join(p for p in paths if p != _CHILDREN)
    if rest:
        os.environ["PYTHONPATH"] = rest
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.path[:] = [p for p in sys.path if p != _CHILDREN]


def _name_library(name: str) -> None:
    import taeda

    taeda._C._set_library_name(name)


def uninstall() -> None:
    """Undo `install`; modules imported meanwhile keep what they have."""
    import taeda

    sys.meta_path[:] = [f for f in sys.meta_path if f is not _Finder]
    _hide_children()
    give_back()
    hide_files()
    taken = ("torch", "functorch")
    for name in [n for n in sys.modules if n.partition(".")[0] in taken]:
        module = sys.modules[name]
        if getattr(module, "__name__", "").startswith("taeda"):
            del sys.modules[name]
    _name_library("taeda")
    vars(taeda).pop("torch", None)
    from taeda import version

    taeda.__version__ = version.__version__ = taeda._C.__version__


def main(arguments: list[str] | None = None) -> int:
    """The command line: a program's path (or -m module) and its arguments."""
    import runpy

    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments == ["-m"]:
        print("usage: python -m taeda.as_torch program.py [arguments]", file=sys.stderr)
        return 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    from taeda.as_torch import main  # the module that programs import, not a second

    sys.exit(main())
