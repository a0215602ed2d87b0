"""One parameter that stands for all of a unit."""

from __future__ import annotations

from taeda.nn import Parameter

__all__ = ["FlatParameter"]


class _Kind(type(Parameter)):  # type: ignore[misc]
    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Parameter) and getattr(
            instance, "_is_flat_param", False
        )


class FlatParameter(Parameter, metaclass=_Kind):
    """This rank's part of a unit's parameters, in one dimension.

    Instances are plain parameters, which `isinstance` tells from others.
    """
