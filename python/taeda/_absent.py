"""Names of the interface that exist so that programs can be imported, and that say
what is missing when they are used."""

from __future__ import annotations

__all__ = ["absent_class", "absent_function"]


def absent_function(name: str):
    """A function that raises NotImplementedError with its full name."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{name} is not implemented")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__module__ = "taeda." + name.rpartition(".")[0]
    refuse.__doc__ = "Not there yet; raises NotImplementedError."
    return refuse


def absent_class(name: str, *bases: type) -> type:
    """A class of which no instance can be made; isinstance answers False."""

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{name} is not implemented")

    module, _, short = name.rpartition(".")
    space = {
        "__init__": refuse,
        "__module__": f"taeda.{module}".rstrip("."),
        "__doc__": "Not there yet; making one raises NotImplementedError.",
    }
    return type(short, bases or (object,), space)
