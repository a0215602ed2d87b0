"""What becomes of every module that a package needs."""

from __future__ import annotations

import linecache
import os
import sys
from enum import Enum

from ._digraph import DiGraph
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup

# Part of Python, but no use in another process: these must be named.
_NEVER_IMPLIED = ("sys", "io")
_ITSELF = "torch_package_importer"  # what code in a package imports to get its importer


class Action(Enum):
    """What an exporter does with a module."""

    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4
    SKIP = 5


class PackagingErrorReason(Enum):
    """Why a module cannot be packaged.

    Example:
        >>> PackagingErrorReason.DENIED.value
        'Module was denied by a pattern.'
    """

    IS_EXTENSION_MODULE = (
        "Module is a C extension module. Only those with Python source can be packaged."
    )
    NO_DUNDER_FILE = "Module has no file, as one that was made by a program."
    SOURCE_FILE_NOT_FOUND = "Module's source was not found."
    DEPENDENCY_RESOLUTION_FAILED = "Module's imports could not be read."
    NO_ACTION = "Module is matched by no pattern. Extern, mock or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but an object that is pickled needs it."
    )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}>"


class Rule:
    """A pattern, and what it asks for.

    Args:
        matched: whether a module was found to be the pattern's.
    """

    def __init__(self, group: GlobGroup, action: Action, allow_empty: bool) -> None:
        self.group, self.action, self.allow_empty = group, action, allow_empty
        self.matched = False


class Dependencies:
    """The graph of modules that are to be packaged, and of those that they import.

    Args:
        importer: finds the modules.
    """

    def __init__(self, importer) -> None:
        self.importer = importer
        self.graph = DiGraph()
        self.rules: list[Rule] = []

    def with_action(self, action: Action) -> list[str]:
        """Names of modules that this is done with."""
        return [n for n, a in self.graph.nodes.items() if a.get("action") is action]

    def broken(self) -> dict[str, dict]:
        """Attributes of what cannot be packaged, by name."""
        return {n: a for n, a in self.graph.nodes.items() if a.get("error")}

    def add(self, name: str, dependencies: bool = True) -> None:
        """Decide what becomes of a module that something needs."""
        graph = self.graph
        if name in graph and graph.nodes[name].get("provided"):
            return
        if name in (_ITSELF, "_mock"):
            graph.add_node(name, action=Action.SKIP, provided=True)
            return
        if _is_implied(name):
            graph.add_node(name, action=Action.EXTERN, provided=True)
            return
        for rule in self.rules:
            if rule.group.matches(name):
                rule.matched = True
                self._obey(name, rule.action, dependencies)
                return
        graph.add_node(name, error=PackagingErrorReason.NO_ACTION)

    def _obey(self, name: str, action: Action, dependencies: bool) -> None:
        if action is Action.INTERN:
            self.intern(name, dependencies)
        elif action is Action.DENY:
            error = PackagingErrorReason.DENIED
            self.graph.add_node(name, action=action, error=error)
        else:
            self.graph.add_node(name, action=action, provided=True)

    def intern(self, name: str, dependencies: bool) -> None:
        """Take a module's source, and what that imports."""
        module = self.importer.import_module(name)
        source, error = _source_of(module, self.importer)
        if error is not None:
            where = getattr(module, "__file__", None)
            self.graph.add_node(
                name, action=Action.INTERN, error=error, error_context=where
            )
            return
        self.add_source(name, source, hasattr(module, "__path__"), dependencies)

    def add_source(
        self, name: str, source: str, is_package: bool, dependencies: bool
    ) -> None:
        """Take a module whose source is given."""
        self.graph.add_node(
            name,
            action=Action.INTERN,
            provided=True,
            source=source,
            is_package=is_package,
            error=None,
        )
        if not dependencies:
            return
        package = name if is_package else name.rpartition(".")[0]
        try:
            imports = find_files_source_depends_on(source, package)
        except (ImportError, SyntaxError) as error:
            self.graph.add_node(
                name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        for needed in dict.fromkeys(self._module_of(*pair) for pair in imports):
            self.graph.add_edge(name, needed)
            self.add(needed)

    def _module_of(self, module: str, name: str | None) -> str:
        """`from a import b` needs a.b if that is a module, else a."""
        if name is not None and not _is_implied(module):
            try:
                self.importer.import_module(f"{module}.{name}")
            except Exception:  # whatever a module's own code raises
                return module
            return f"{module}.{name}"
        return module


def _is_implied(name: str) -> bool:
    """Does every process that reads a package have the module?"""
    top = name.partition(".")[0]
    if top in ("torch", "taeda"):
        return True
    return top in sys.stdlib_module_names and top not in _NEVER_IMPLIED


def _source_of(module, importer) -> tuple[str, PackagingErrorReason | None]:
    getter = getattr(getattr(module, "__loader__", None), "get_source", None)
    file = getattr(module, "__file__", None)
    if file is None and getattr(module, "__path__", None) is None:
        return "", PackagingErrorReason.NO_DUNDER_FILE
    if file is not None and file.endswith((".so", ".pyd", ".dylib")):
        return "", PackagingErrorReason.IS_EXTENSION_MODULE
    try:
        source = getter(module.__spec__.name) if getter is not None else None
    except (ImportError, OSError):
        source = None
    if source is None and file is None:
        return "", None  # a folder of modules
    if source is None:
        source = "".join(linecache.getlines(file or ""))
    if not source and not (file and os.path.exists(file)):
        return "", PackagingErrorReason.SOURCE_FILE_NOT_FOUND
    return source, None
