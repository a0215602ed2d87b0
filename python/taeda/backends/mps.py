"""Apple's GPUs, which this build does not use."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of at least this version."""
    import platform

    version = platform.mac_ver()[0]
    return bool(version) and tuple(map(int, version.split(".")[:2])) >= (major, minor)


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 of at least this minor version."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """The GPU's name; RuntimeError, there is none."""
    raise RuntimeError("Cannot execute get_name() without MPS backend.")


def get_core_count() -> int:
    """The number of its cores; RuntimeError, there is none."""
    raise RuntimeError("Cannot execute get_core_count() without MPS backend.")
