"""The C and C++ frames of the calling thread."""

from __future__ import annotations

import ctypes

__all__ = ["get_cpp_backtrace"]


def get_cpp_backtrace(
    frames_to_skip: int = 0, maximum_number_of_frames: int = 64
) -> str:
    """What called this function, by the C library, the innermost first.

    Args:
        frames_to_skip: of the innermost ones.
        maximum_number_of_frames: how many follow.

    Returns:
        A line for each frame: "frame #0: name + 0x12 (0x7f... in library)".

    Raises:
        NotImplementedError: the C library has no `backtrace`.

    Example:
        >>> taeda.utils.get_cpp_backtrace(maximum_number_of_frames=1)[:9]
        'frame #0:'
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "backtrace"):
        raise NotImplementedError("utils.get_cpp_backtrace needs glibc's backtrace()")
    room = frames_to_skip + maximum_number_of_frames
    addresses = (ctypes.c_void_p * max(room, 1))()
    count = library.backtrace(addresses, room)
    shown = addresses[frames_to_skip:count]
    lines = (
        f"frame #{i}: {_place(library, address)}"
        for i, address in enumerate(shown)
        if address
    )
    return "".join(f"{line}\n" for line in lines)


class _Found(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("start", ctypes.c_void_p),
    )


def _place(library, address: int) -> str:
    from taeda._compat.native_names import _demangle

    found = _Found()
    known = library.dladdr(ctypes.c_void_p(address), ctypes.byref(found))
    if not known:
        return f"<unknown function> ({address:#x})"
    start = found.start or found.base
    name = _demangle(found.name.decode()) if found.name else "<unknown function>"
    return f"{name} + {address - start:#x} ({address:#x} in {found.file.decode()})"
