"""Writing packages."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType

from taeda._io.storages import on_cpu, storage_bytes
from taeda._io.writer import Collector, named, pickler_class
from taeda._io.zip import ZipWriter
from taeda._own import is_own_module
from taeda.utils.hooks import RemovableHandle

from ._dependencies import Action, Dependencies, PackagingErrorReason, Rule
from ._mangling import demangle
from ._mocks import MOCK_MODULE, MOCKED_MODULE
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, OrderedImporter, sys_importer

__all__ = [
    "EmptyMatchError",
    "PackageExporter",
    "PackagingError",
    "PackagingErrorReason",
]

_VERSION = b"6\n"


class EmptyMatchError(Exception):
    """A pattern that must match a module matched none."""


class PackagingError(Exception):
    """Modules that a package needs cannot be packaged; the text lists them by reason.

    Args:
        dependency_graph: the modules, with `error` at those.
        debug: whether the text shows how each came to be needed.
    """

    def __init__(self, dependency_graph, debug: bool = False) -> None:
        self.dependency_graph = dependency_graph
        by_reason: dict = {}
        for name, attributes in dependency_graph.nodes.items():
            if attributes.get("error"):
                by_reason.setdefault(attributes["error"], []).append(name)
        lines = [""]
        for reason, broken in by_reason.items():
            lines.append(f"* {reason.value}")
            for name in broken:
                lines.append(f"    {name}")
                context = dependency_graph.nodes[name].get("error_context")
                if context:
                    lines.append(f"      because: {context}")
                if debug:
                    way = " -> ".join(dependency_graph.first_path(name))
                    lines.append(f"      needed by: {way}")
        if not debug:
            lines.append("PackageExporter(debug=True) shows what needs them.")
        super().__init__("\n".join(lines) + "\n")


class PackageExporter:
    """Writes a package: objects, the source of their classes, texts and data.

    Modules of the standard library and of this library are left to the process that
    reads the package. Of every other module that something in the package imports, a
    pattern says what becomes of it: its source is taken (`intern`), it is left to the
    reading process (`extern`), it is replaced by what raises when used (`mock`), or
    it is an error (`deny`). The first pattern that matches counts.

    Args:
        f: path or open file.
        importer: finds modules; several are tried in turn.
        debug: whether errors show what needs a module.

    Raises:
        PackagingError: on closing; a module cannot be packaged.
        EmptyMatchError: on closing; a pattern with allow_empty=False matched nothing.

    Example:
        >>> import io
        >>> with PackageExporter(io.BytesIO()) as exporter:
        ...     exporter.mock("plots.**")
        ...     exporter.save_source_string("run", "import plots.lines")
        ...     exporter.save_text("data", "words.txt", "one two")
        >>> exporter.interned_modules(), exporter.mocked_modules()
        (['run'], ['plots.lines'])
    """

    def __init__(
        self,
        f,
        importer: Importer | Sequence[Importer] = sys_importer,
        debug: bool = False,
    ) -> None:
        self.debug = debug
        if isinstance(importer, (list, tuple)):
            importer = OrderedImporter(*importer)
        self.importer = importer
        self._dependencies = Dependencies(importer)
        self._hooks: dict[Action, OrderedDict] = {
            action: OrderedDict()
            for action in (Action.EXTERN, Action.MOCK, Action.INTERN)
        }
        self._collector = Collector()
        self._written: set[str] = set()
        self._ids = 0
        self._reduced: dict[int, tuple] = {}
        self._closed = False
        by_path = isinstance(f, (str, os.PathLike))
        self._own_file = open(f, "wb") if by_path else None
        write = (self._own_file or f).write
        root = Path(f).stem if by_path else "archive"
        self._zip = ZipWriter(write, root)

    @property
    def dependency_graph(self):
        """The modules and what they need."""
        return self._dependencies.graph

    def get_unique_id(self) -> str:
        """A name that no other call on this exporter gives."""
        self._ids += 1
        return str(self._ids - 1)

    # Modules.

    def save_source_file(
        self, module_name: str, file_or_directory: str, dependencies: bool = True
    ) -> None:
        """Take a module's source from a file, or a package's from a folder.

        Raises:
            ValueError: a folder without modules.
        """
        path = Path(file_or_directory)
        if not path.is_dir():
            text = path.read_text("utf-8")
            is_package = path.name == "__init__.py"
            self.save_source_string(module_name, text, is_package, dependencies)
            return
        files = sorted(path.rglob("*.py"))
        if not files:
            raise ValueError(f"save_source_file: there is no module in {path}")
        for file in files:
            parts = [module_name, *file.relative_to(path).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            text = file.read_text("utf-8")
            self.save_source_string(name, text, is_package, dependencies)

    def save_source_string(
        self,
        module_name: str,
        src: str,
        is_package: bool = False,
        dependencies: bool = True,
    ) -> None:
        """Take a module whose source is given."""
        self._dependencies.add_source(module_name, src, is_package, dependencies)

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Have a module packaged as the patterns say."""
        self._dependencies.add(module_name, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Take the source of a module that can be imported.

        Raises:
            TypeError: the module is given, not its name.
        """
        if not isinstance(module_name, str):
            raise TypeError(
                "save_module: expected the name of a module, got "
                f"{type(module_name).__name__}"
            )
        self._dependencies.intern(module_name, dependencies)

    # Data.

    def save_pickle(
        self,
        package: str,
        resource: str,
        obj,
        dependencies: bool = True,
        pickle_protocol: int = 3,
    ) -> None:
        """Write an object, and package the modules of its classes.

        Args:
            package: the name of the package in which it lies.
            resource: the name of its file there.
            obj: what can be pickled.
            dependencies: whether its modules are packaged.
            pickle_protocol: 3 or 4.

        Raises:
            ObjNotFoundError, ObjMismatchError: a class is not found where it says.
        """
        if pickle_protocol not in (3, 4):
            raise AssertionError(
                f"save_pickle: expected pickle_protocol 3 or 4, got {pickle_protocol}"
            )
        stream = io.BytesIO()
        _pickler(self)(stream, pickle_protocol, self._collector).dump(obj)
        data = stream.getvalue()
        if dependencies:
            self._add_dependencies_of(f"<{package}.{resource}>", data)
        self._write(_path(package, resource), data)

    def _add_dependencies_of(self, name: str, data: bytes) -> None:
        graph = self.dependency_graph
        graph.add_node(name, action=Action.INTERN, provided=True, is_pickle=True)
        for module in _modules_in(data):
            graph.add_edge(name, module)
            self.add_dependency(module)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Write a text, as UTF-8."""
        self.save_binary(package, resource, text.encode())

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Write bytes."""
        self._write(_path(package, resource), binary)

    # Patterns.

    def _add_rule(self, action, include, exclude, allow_empty: bool) -> None:
        rule = Rule(GlobGroup(include, exclude=exclude), action, allow_empty)
        self._dependencies.rules.append(rule)

    def intern(
        self,
        include: GlobPattern,
        *,
        exclude: GlobPattern = (),
        allow_empty: bool = True,
    ) -> None:
        """Take the source of modules of these names, where something needs them."""
        self._add_rule(Action.INTERN, include, exclude, allow_empty)

    def mock(
        self,
        include: GlobPattern,
        *,
        exclude: GlobPattern = (),
        allow_empty: bool = True,
    ) -> None:
        """Replace modules of these names by what raises when it is used."""
        self._add_rule(Action.MOCK, include, exclude, allow_empty)

    def extern(
        self,
        include: GlobPattern,
        *,
        exclude: GlobPattern = (),
        allow_empty: bool = True,
    ) -> None:
        """Leave modules of these names to the process that reads the package."""
        self._add_rule(Action.EXTERN, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Refuse to write a package that needs modules of these names."""
        self._add_rule(Action.DENY, include, exclude, allow_empty=True)

    # Hooks.

    def _register(self, action: Action, hook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def register_extern_hook(self, hook: Callable) -> RemovableHandle:
        """Have `hook(exporter, module_name)` called for every extern module."""
        return self._register(Action.EXTERN, hook)

    def register_mock_hook(self, hook: Callable) -> RemovableHandle:
        """Have `hook(exporter, module_name)` called for every mocked module."""
        return self._register(Action.MOCK, hook)

    def register_intern_hook(self, hook: Callable) -> RemovableHandle:
        """Have `hook(exporter, module_name)` called for every interned module."""
        return self._register(Action.INTERN, hook)

    # The end.

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if exc_type is None:
            self.close()
        else:
            self._finish()

    def close(self) -> None:
        """Check what is needed, and write the modules."""
        if self._closed:
            return
        try:
            self._check()
            self._write_modules()
        finally:
            self._finish()

    def _check(self) -> None:
        for rule in self._dependencies.rules:
            if not rule.allow_empty and not rule.matched:
                raise EmptyMatchError(
                    f"{rule.group} did not match any modules, and has allow_empty=False"
                )
        graph = self.dependency_graph
        for name, about in self._dependencies.broken().items():
            if about["error"] is PackagingErrorReason.NO_ACTION and self._holds(name):
                graph.add_node(name, action=Action.SKIP, error=None)
        for name in self._pickles():
            for module in graph.successors(name):
                if graph.nodes[module].get("action") is Action.MOCK:
                    error = PackagingErrorReason.MOCKED_BUT_STILL_USED
                    graph.add_node(module, error=error, error_context=f"in {name}")
        if self._dependencies.broken():
            raise PackagingError(graph, self.debug)

    def _holds(self, name: str) -> bool:
        """Were data written into a package of that name, which is one by that?"""
        folder = name.replace(".", "/") + "/"
        return any(path.startswith(folder) for path in self._written)

    def _pickles(self) -> list[str]:
        nodes = self.dependency_graph.nodes
        return [name for name, about in nodes.items() if about.get("is_pickle")]

    def _write_modules(self) -> None:
        for action, hooks in self._hooks.items():
            for name in self._dependencies.with_action(action):
                if not self.dependency_graph.nodes[name].get("is_pickle"):
                    for hook in list(hooks.values()):
                        hook(self, name)
        for name in self.interned_modules():
            about = self.dependency_graph.nodes[name]
            self._write_source(name, about["source"], about["is_package"])
        mocked = self.mocked_modules()
        if mocked or "_mock" in self.dependency_graph:
            self._write_source("_mock", MOCK_MODULE, is_package=False)
        for name in mocked:
            module = sys.modules.get(name)
            self._write_source(name, MOCKED_MODULE, hasattr(module, "__path__"))
        externs = "".join(f"{name}\n" for name in self.externed_modules())
        self._write(".data/extern_modules", externs.encode())

    def _write_source(self, name: str, source: str, is_package: bool) -> None:
        end = "/__init__.py" if is_package else ".py"
        self._write(name.replace(".", "/") + end, source.encode())

    def _write(self, path: str, data: bytes) -> None:
        if path in self._written:
            raise AssertionError(f"PackageExporter: there is a record {path!r} already")
        self._written.add(path)
        self._zip.add(path, data)

    def _finish(self) -> None:
        if self._closed:
            return
        self._closed = True
        for key, storage in self._collector.storages.items():
            self._write(f".data/{key}.storage", storage_bytes(on_cpu(storage)))
        self._write(".data/python_version", platform.python_version().encode())
        self._write(".data/version", _VERSION)
        self._write("byteorder", sys.byteorder.encode())
        count, total = len(self._written), self._zip.crc
        self._write(".data/serialization_id", b"%020d%020d" % (count, total))
        self._zip.close()
        if self._own_file is not None:
            self._own_file.close()

    # What is in it.

    def dependency_graph_string(self) -> str:
        """The modules and what they need, as text for GraphViz."""
        return self.dependency_graph.to_dot()

    def externed_modules(self) -> list[str]:
        """Modules that are left to the process that reads the package."""
        return self._dependencies.with_action(Action.EXTERN)

    def interned_modules(self) -> list[str]:
        """Modules whose source is in the package."""
        nodes = self.dependency_graph.nodes
        found = self._dependencies.with_action(Action.INTERN)
        return [name for name in found if not nodes[name].get("is_pickle")]

    def mocked_modules(self) -> list[str]:
        """Modules that are replaced."""
        return self._dependencies.with_action(Action.MOCK)

    def denied_modules(self) -> list[str]:
        """Modules that must not be in it, and are needed."""
        return self._dependencies.with_action(Action.DENY)

    def get_rdeps(self, module_name: str) -> list[str]:
        """What needs a module."""
        if module_name not in self.dependency_graph:
            return []
        return list(self.dependency_graph.predecessors(module_name))

    def all_paths(self, src: str, dst: str) -> str:
        """How one module comes to need another, as text for GraphViz."""
        return self.dependency_graph.all_paths(src, dst)


def _path(package: str, resource: str) -> str:
    return f"{package.replace('.', '/')}/{resource}"


def _pickler(exporter: PackageExporter):
    """A pickler that names classes as the exporter's importer finds them."""
    base = pickler_class(pickle)

    class Writer(base):
        dispatch = dict(base.dispatch)

        def persistent_id(self, obj):
            reduce = getattr(type(obj), "__reduce_package__", None)
            return (
                super().persistent_id(obj) if reduce is None else reduced(obj, reduce)
            )

        def save_global(self, obj, name=None):
            module = getattr(obj, "__module__", None) or ""
            if is_own_module(module):
                super().save_global(obj, name)
                return
            module, path = exporter.importer.get_name(obj, name)
            parent, dot, last = path.rpartition(".")
            if dot and self.proto < 4:
                owner = exporter.importer.import_module(demangle(module))
                for part in parent.split("."):
                    owner = getattr(owner, part)
                self.save_reduce(getattr, (owner, last), obj=obj)
            else:
                self.save(named(demangle(module), path))

    def reduced(obj, reduce) -> tuple:
        if id(obj) not in exporter._reduced:
            # The object is kept, lest its id becomes another's.
            exporter._reduced[id(obj)] = obj, exporter.get_unique_id()
        function, arguments, *_ = reduce(obj, exporter)
        return "reduce_package", exporter._reduced[id(obj)][1], function, arguments

    Writer.dispatch[FunctionType] = Writer.save_global
    return Writer


def _modules_in(data: bytes) -> list[str]:
    """Modules of the global names in a pickle."""
    found: dict[str, None] = {}
    texts: list[str] = []
    memo: dict[int, str] = {}
    for code, argument, _ in pickletools.genops(data):
        if code.name == "GLOBAL":
            found[argument.partition(" ")[0]] = None
        elif code.name == "STACK_GLOBAL":
            found[texts[-2]] = None
        elif "UNICODE" in code.name:
            texts.append(argument)
        elif code.name == "MEMOIZE":
            memo[len(memo)] = texts[-1] if texts else ""
        elif code.name in ("BINGET", "LONG_BINGET"):
            texts.append(memo.get(argument, ""))
    return list(found)
