"""Reading packages."""

from __future__ import annotations

import builtins
import importlib
import io
import linecache
import os
import pickle
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, resolve_name
from types import ModuleType

import taeda
from taeda._io.full_pickle import unpickler_class
from taeda._io.location import restorer
from taeda._io.reader import parse_id, typed
from taeda._io.storages import byte_width, storage_bytes, swap_bytes

from ._mangling import PackageMangler, demangle
from ._records import opened
from .file_structure_representation import Directory, tree_of
from .glob_group import GlobPattern
from .importer import Importer

__all__ = ["PackageImporter"]

_ITSELF = "torch_package_importer"
_OURS = ".data/"


class PackageImporter(Importer):
    """Reads a package. Its modules are apart from those of the process.

    Code in the package runs when a module of it is imported and when an object is
    unpickled: read packages that one trusts. There, `import torch_package_importer`
    gives the importer.

    Args:
        file_or_buffer: a path, also of a folder with the records, or an open file.
        module_allowed: says of the name of each module that is left to this process
            whether the package may use it.

    Raises:
        ImportError: the package needs a module that is not allowed.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> with PackageExporter(file) as exporter:
        ...     exporter.save_source_string("one", "value = 1")
        >>> importer = PackageImporter(io.BytesIO(file.getvalue()))
        >>> importer.import_module("one").value
        1
    """

    modules: dict[str, ModuleType]

    def __init__(
        self, file_or_buffer, module_allowed: Callable[[str], bool] = lambda name: True
    ) -> None:
        self._records = opened(file_or_buffer)
        is_path = isinstance(file_or_buffer, (str, os.PathLike))
        self.filename = str(file_or_buffer) if is_path else "<binary>"
        self._paths = set(self._records.paths())
        self.modules = {}
        self._mangler = PackageMangler()
        self.extern_modules = self._text(_OURS + "extern_modules").split()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"PackageImporter: {self.filename} needs the module {name!r}, "
                    "which is not allowed"
                )
        self._builtins = {**vars(builtins), "__import__": self.__import__}
        self._storages: dict = {}
        self._reduced: dict = {}

    def __repr__(self) -> str:
        return f"PackageImporter({self.filename!r})"

    def id(self) -> str:
        """What the names of the package's modules begin with, unique in the process."""
        return self._mangler.parent_name()

    def python_version(self) -> str | None:
        """The version of Python that wrote the package."""
        path = _OURS + "python_version"
        return self._text(path) if path in self._paths else None

    def file_structure(
        self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
    ) -> Directory:
        """The files in it, as a tree.

        Args:
            include: patterns of paths, with `/` between segments.
            exclude: patterns of those to leave out.
        """
        return tree_of(self.filename, sorted(self._paths), include, exclude)

    def _text(self, path: str) -> str:
        return self._records.read(path).decode()

    # Modules.

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """A module of the package, or one that it leaves to this process.

        Args:
            name: of the module; with leading dots relative to `package`.

        Raises:
            ModuleNotFoundError: the package has no such module.
        """
        name = demangle(name)
        if name.startswith("."):
            name = resolve_name(name, demangle(package or ""))
        return self._module(name)

    def _module(self, name: str) -> ModuleType:
        known = self.modules.get(name)
        if known is not None:
            return known
        if name == _ITSELF:
            return self._itself()
        if self._is_extern(name):
            module = self.modules[name] = importlib.import_module(name)
            self._bind(name, module)
            return module
        parent = name.rpartition(".")[0]
        if parent:
            self._module(parent)
            if name in self.modules:  # the parent's code has imported it
                return self.modules[name]
        return self._run(name)

    def _itself(self) -> ModuleType:
        module = ModuleType(_ITSELF)
        vars(module).update(
            {n: getattr(self, n) for n in dir(self) if not n.startswith("__")}
        )
        return module

    def _is_extern(self, name: str) -> bool:
        place = name.replace(".", "/")
        if f"{place}.py" in self._paths or f"{place}/__init__.py" in self._paths:
            return False
        parts = name.split(".")
        above = [".".join(parts[: i + 1]) for i in range(len(parts))]
        if any(n in self.extern_modules for n in above):
            return True
        return parts[0] in ("torch", "taeda")

    def _bind(self, name: str, module: ModuleType) -> None:
        parent, _, last = name.rpartition(".")
        if parent and not self._is_extern(parent):
            setattr(self._module(parent), last, module)

    def _run(self, name: str) -> ModuleType:
        path, is_package = self._source_path(name)
        spec = ModuleSpec(
            name, self, origin="<package_importer>", is_package=is_package
        )
        module = module_from_spec(spec)
        self.modules[name] = module
        file = self._mangler.mangle(path or name)
        module.__name__ = self._mangler.mangle(name)
        vars(module).update(
            __file__=file if path else None,
            __cached__=None,
            __builtins__=self._builtins,
            __torch_package__=True,
        )
        if path is not None:
            source = self._text(path)
            lines = source.splitlines(keepends=True)
            linecache.cache[file] = (len(source), None, lines, file)
            try:
                exec(compile(source, file, "exec", dont_inherit=True), vars(module))
            except BaseException:
                self.modules.pop(name, None)
                raise
        self._bind(name, module)
        return self.modules[name]

    def _source_path(self, name: str) -> tuple[str | None, bool]:
        """(where a module's source lies, whether it is a package)."""
        place = name.replace(".", "/")
        if f"{place}/__init__.py" in self._paths:
            return f"{place}/__init__.py", True
        if f"{place}.py" in self._paths:
            return f"{place}.py", False
        inside = [n for n in self.extern_modules if n.startswith(name + ".")]
        if inside or any(p.startswith(place + "/") for p in self._paths):
            return None, True
        raise ModuleNotFoundError(
            f"No module named {name!r} in {self!r}, and the package does not leave it "
            "to this process",
            name=name,
        )

    def __import__(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level:
            package = demangle((globals or {})["__package__"])
            name = resolve_name("." * level + name, package)
        module = self._module(demangle(name))
        if not fromlist:
            return module if level else self._module(demangle(name).partition(".")[0])
        for item in self._all(module) if "*" in fromlist else fromlist:
            if not hasattr(module, item) and hasattr(module, "__path__"):
                inner = f"{demangle(module.__name__)}.{item}"
                try:
                    self._module(inner)
                except ModuleNotFoundError as error:
                    if error.name != inner:
                        raise
        return module

    @staticmethod
    def _all(module: ModuleType) -> list[str]:
        return list(getattr(module, "__all__", ()))

    def get_source(self, module_name: str) -> str:
        """The source of a module of the package."""
        path, _ = self._source_path(demangle(module_name))
        return "" if path is None else self._text(path)

    # Data.

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a file in a package."""
        return self._records.read(self._place(package, resource))

    def load_text(
        self,
        package: str,
        resource: str,
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> str:
        """The text of a file in a package."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def _place(self, package: str, resource: str) -> str:
        name = demangle(getattr(package, "__name__", package))
        path = f"{name.replace('.', '/')}/{resource}"
        if path not in self._paths:
            raise OSError(f"{self!r} has no {resource!r} in {name!r}")
        return path

    def load_pickle(self, package: str, resource: str, map_location=None):
        """The object of a pickle, with classes of the package's modules.

        Args:
            map_location: where its tensors go, as for `taeda.load`.
        """
        data = self.load_binary(package, resource)
        restore = restorer(map_location)
        importer, storages = self, {}

        class Reader(unpickler_class(pickle)):
            def find_class(self, module, name):
                if module.partition(".")[0] in ("torch", "taeda"):
                    return super().find_class(module, name)
                found = importer.import_module(module)
                for part in name.split("."):
                    found = getattr(found, part)
                return found

            def persistent_load(self, pid):
                if pid[0] == "reduce_package":
                    return importer._made(*pid[1:])
                return importer._storage(pid, storages, restore)

        return Reader(io.BytesIO(data)).load()

    def _made(self, key: str, function, arguments):
        if key not in self._reduced:
            self._reduced[key] = function(self, *arguments)
        return self._reduced[key]

    def _storage(self, pid, storages: dict, restore):
        # PyTorch numbers the storages of packages.
        pid = *pid[:2], str(pid[2]), *pid[3:]
        dtype, untyped, key, location, nbytes = parse_id(pid)
        if key not in storages:
            data = self._records.read(f"{_OURS}{key}.storage")
            if len(data) != nbytes:
                raise RuntimeError(
                    f"load_pickle: storage {key} has {len(data)} bytes, and {nbytes} "
                    "are needed"
                )
            storage = taeda.UntypedStorage(nbytes)
            view = storage_bytes(storage)
            view[:] = data
            if self._byte_order() != sys.byteorder:
                swap_bytes(view, byte_width(dtype))
            storages[key] = restore(storage, location)
        return storages[key] if untyped else typed(storages[key], dtype)

    def _byte_order(self) -> str:
        return self._text("byteorder") if "byteorder" in self._paths else "little"

    def get_resource_reader(self, fullname: str):
        """What `importlib.resources` reads with; None for a module."""
        name = demangle(fullname)
        try:
            _, is_package = self._source_path(name)
        except ModuleNotFoundError:
            return None
        return _Resources(self, name) if is_package else None


class _Resources:
    """The files of one package."""

    def __init__(self, importer: PackageImporter, package: str) -> None:
        self._importer, self._package = importer, package

    def open_resource(self, resource: str):
        """A file, to be read."""
        try:
            return io.BytesIO(self._importer.load_binary(self._package, resource))
        except OSError as error:
            raise FileNotFoundError(str(error)) from None

    def resource_path(self, resource: str) -> str:
        """Where a file lies; FileNotFoundError for those within a package's file."""
        path = self._importer._records.path(self._root() + resource)
        if path is None:
            raise FileNotFoundError(f"{resource!r} of {self._package!r} has no path")
        return path

    def is_resource(self, name: str) -> bool:
        """Is there a file of that name?"""
        return name in self._inside() and not self._is_folder(name)

    def contents(self):
        """Names of files and folders in it."""
        yield from self._inside()

    def _root(self) -> str:
        return self._package.replace(".", "/") + "/"

    def _inside(self) -> dict[str, None]:
        root = self._root()
        paths = sorted(self._importer._paths)
        return {
            p.removeprefix(root).partition("/")[0]: None
            for p in paths
            if p.startswith(root)
        }

    def _is_folder(self, name: str) -> bool:
        start = f"{self._root()}{name}/"
        return any(p.startswith(start) for p in self._importer._paths)
