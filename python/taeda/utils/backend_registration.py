"""The name of the device that an extension may add: there can be none yet."""

from __future__ import annotations

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]

_NAME = "privateuseone"


def rename_privateuse1_backend(backend_name: str) -> None:
    """Names the device of an extension.

    Args:
        backend_name: "privateuseone" changes nothing.

    Raises:
        NotImplementedError: another name; devices cannot be added.
    """
    if backend_name != _NAME:
        raise NotImplementedError(
            f"rename_privateuse1_backend({backend_name!r}): no device can be added"
        )


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype=None,
) -> None:
    """Gives classes methods such as `Tensor.NAME()` for that device.

    Args:
        for_tensor, for_module, for_packed_sequence, for_storage: to which.
        unsupported_dtype: dtypes that storages of the device cannot have.

    Raises:
        NotImplementedError: always; there is no such device.
    """
    raise NotImplementedError(
        "generate_methods_for_privateuse1_backend: no device can be added"
    )
