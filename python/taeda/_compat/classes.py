"""`taeda.classes`: the classes of compiled extensions."""

from __future__ import annotations

__all__ = ["classes"]


class _Namespace:
    """The classes of one extension, of which there are none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attr: str):
        if attr.startswith("__"):
            raise AttributeError(attr)
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! "
            "Ensure that it is registered via torch::class_: no extension can yet"
        )


class _Classes:
    """The registry of such classes: it has any namespace, and no class in one."""

    @property
    def loaded_libraries(self) -> set:
        """The paths that `load_library` was given."""
        from taeda import ops

        return ops.loaded_libraries

    def load_library(self, path) -> None:
        """Loads a shared library, as `taeda.ops.load_library` does."""
        from taeda import ops

        ops.load_library(path)

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return vars(self).setdefault(name, _Namespace(name))


classes = _Classes()
