"""What made a package need what cannot be packaged."""

from __future__ import annotations

from taeda.package.package_exporter import PackagingError


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """For each module that could not be packaged, a way on which it is needed.

    Raises:
        TypeError: the exception is another.
    """
    if not isinstance(exc, PackagingError):
        raise TypeError(
            f"find_first_use_of_broken_modules: expected a PackagingError, got {exc!r}"
        )
    graph = exc.dependency_graph
    return {
        name: graph.first_path(name)
        for name, attributes in graph.nodes.items()
        if attributes.get("error")
    }
