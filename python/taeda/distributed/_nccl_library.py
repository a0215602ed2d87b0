"""NCCL's functions, from a library that is opened when a program asks for them.

Types and numbers are those of NCCL's documented interface; no header is needed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

import taeda
from taeda._distributed import DistBackendError

__all__ = ["Communicator", "Config", "NcclLibrary", "UniqueId", "library"]

_IN_PROGRESS = 7
# Where the fields of a configuration end that we know of: NCCL 2.18.
_CONFIG_VERSION = 21800
_UNDEFINED = -(1 << 31)

# The numbers of ncclDataType_t and ncclRedOp_t.
DTYPES = {
    taeda.int8: 0,
    taeda.uint8: 1,
    taeda.int32: 2,
    taeda.uint32: 3,
    taeda.int64: 4,
    taeda.uint64: 5,
    taeda.float16: 6,
    taeda.float32: 7,
    taeda.float64: 8,
    taeda.bfloat16: 9,
    taeda.float8_e4m3fn: 10,
    taeda.float8_e5m2: 11,
}
BYTES = 1  # ncclUint8
OPERATIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": 4}


class UniqueId(ctypes.Structure):
    """What ranks agree on to make a communicator."""

    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """How a communicator is made; fields that are not set are NCCL's choice."""

    _fields_ = [
        ("size", c_size_t),
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("blocking", c_int),
        ("cga_cluster_size", c_int),
        ("min_ctas", c_int),
        ("max_ctas", c_int),
        ("net_name", c_char_p),
        ("split_share", c_int),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Config), 0xCAFEBEEF, _CONFIG_VERSION)
        for name in "blocking cga_cluster_size min_ctas max_ctas split_share".split():
            setattr(self, name, _UNDEFINED)


_BUFFERS = [c_void_p, c_void_p, c_size_t, c_int]
_PLACE = [c_void_p, c_void_p]
_SIGNATURES = {
    "ncclGetVersion": [POINTER(c_int)],
    "ncclGetUniqueId": [POINTER(UniqueId)],
    "ncclCommInitRankConfig": [
        POINTER(c_void_p),
        c_int,
        UniqueId,
        c_int,
        POINTER(Config),
    ],
    "ncclCommSplit": [c_void_p, c_int, c_int, POINTER(c_void_p), POINTER(Config)],
    "ncclCommFinalize": [c_void_p],
    "ncclCommDestroy": [c_void_p],
    "ncclCommAbort": [c_void_p],
    "ncclCommGetAsyncError": [c_void_p, POINTER(c_int)],
    "ncclRedOpCreatePreMulSum": [POINTER(c_int), c_void_p, c_int, c_int, c_void_p],
    "ncclRedOpDestroy": [c_int, c_void_p],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclAllReduce": [*_BUFFERS, c_int, *_PLACE],
    "ncclBroadcast": [*_BUFFERS, c_int, *_PLACE],
    "ncclReduce": [*_BUFFERS, c_int, c_int, *_PLACE],
    "ncclAllGather": [*_BUFFERS, *_PLACE],
    "ncclReduceScatter": [*_BUFFERS, c_int, *_PLACE],
    "ncclSend": [c_void_p, c_size_t, c_int, c_int, *_PLACE],
    "ncclRecv": [c_void_p, c_size_t, c_int, c_int, *_PLACE],
}


def _candidates() -> list[str]:
    """Where the library may be: what is named, the packages', the system's."""
    named = os.environ.get("TAEDA_NCCL_LIBRARY")
    if named:
        return [named]
    own = [os.path.join(p, "nvidia", "nccl", "lib", "libnccl.so.2") for p in sys.path]
    return [*filter(os.path.exists, own), "libnccl.so.2"]


class NcclLibrary:
    """The functions, by their names; errors of a call become exceptions."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        for name, arguments in _SIGNATURES.items():
            function = getattr(handle, name)
            function.argtypes, function.restype = arguments, c_int
            setattr(self, name, function)
        self._text = handle.ncclGetErrorString
        self._text.argtypes, self._text.restype = [c_int], c_char_p
        self._last = handle.ncclGetLastError
        self._last.argtypes, self._last.restype = [c_void_p], c_char_p

    def __getattr__(self, name: str) -> Any:
        # Type checkers learn of the functions here; all that are there were set.
        raise AttributeError(f"NCCL: {name} is not among the functions that are used")

    def version(self) -> tuple[int, int, int]:
        """The library's version."""
        number = c_int()
        self.check("ncclGetVersion", self.ncclGetVersion(byref(number)))
        return number.value // 10000, number.value // 100 % 100, number.value % 100

    def check(self, what: str, status: int) -> None:
        """Raises what a function returned, unless it is success or goes on."""
        if status in (0, _IN_PROGRESS):
            return
        text = self._text(status).decode()
        more = (self._last(None) or b"").decode()
        raise DistBackendError(f"NCCL error in {what}: {text}. {more}".rstrip(". "))


# The library that was opened, or why there is none.
_found: list[NcclLibrary | str] = []


def library() -> NcclLibrary:
    """The library, opened by the first call.

    Raises:
        RuntimeError: it is not there; the text names the packages that bring it.
    """
    if not _found:
        _found.append(_open())
    if isinstance(_found[0], str):
        raise RuntimeError(_found[0])
    return _found[0]


def _open() -> NcclLibrary | str:
    problems = []
    for path in _candidates():
        try:
            return NcclLibrary(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            problems.append(str(error))
    return (
        "Distributed package doesn't have NCCL built in: it is opened when it is "
        "needed. Install the package nvidia-nccl-cu12 (nvidia-nccl-cu13 with CUDA 13), "
        f"or name a libnccl.so.2 in TAEDA_NCCL_LIBRARY. Tried: {'; '.join(problems)}"
    )


class Communicator:
    """Ranks that NCCL knows, on one device each, and the stream that they use.

    Args:
        handle: NCCL's.
        rank, size: this process's place.
        stream: where its collectives run.
    """

    def __init__(self, handle, rank: int, size: int, stream) -> None:
        self.handle, self.rank, self.size, self.stream = handle, rank, size, stream
        self.place = handle, stream.cuda_stream
        self.aborted = False

    @classmethod
    def join(cls, unique: bytes, rank: int, size: int, config, limit: float, stream):
        """Made when all ranks call it; `limit` seconds hold where it does not block."""
        nccl, handle, key = library(), c_void_p(), UniqueId()
        ctypes.memmove(byref(key), unique, ctypes.sizeof(key))
        status = nccl.ncclCommInitRankConfig(
            byref(handle), size, key, rank, byref(config)
        )
        nccl.check("ncclCommInitRankConfig", status)
        made = cls(handle, rank, size, stream)
        made._settle("ncclCommInitRankConfig", status, limit)
        return made

    def split(self, color: int, key: int, rank: int, size: int, config, limit, stream):
        """A part of it, of those who give the same color; None for a negative one."""
        nccl, handle = library(), c_void_p()
        status = nccl.ncclCommSplit(
            self.handle, color, key, byref(handle), byref(config)
        )
        nccl.check("ncclCommSplit", status)
        self._settle("ncclCommSplit", status, limit)
        return Communicator(handle, rank, size, stream) if color >= 0 else None

    def _settle(self, what: str, status: int, limit: float) -> None:
        end = time.monotonic() + limit
        while status == _IN_PROGRESS:
            if time.monotonic() > end:
                self.abort()
                raise DistBackendError(f"{what}: timed out after {limit:g} s")
            time.sleep(0.001)
            status = self._state()
        library().check(what, status)

    def _state(self) -> int:
        state = c_int()
        library().ncclCommGetAsyncError(self.handle, byref(state))
        return state.value

    def error(self) -> str | None:
        """What went wrong while work ran, or None."""
        try:
            library().check("a collective", self._state())
        except DistBackendError as error:
            return str(error)
        return None

    def abort(self) -> None:
        """Ends what runs; it is of no use afterwards."""
        if not self.aborted:
            self.aborted = True
            library().ncclCommAbort(self.handle)

    def close(self) -> None:
        """Gives back what it holds, after its work has ended."""
        if not self.aborted:
            library().ncclCommFinalize(self.handle)
            library().ncclCommDestroy(self.handle)
            self.aborted = True

    def scaled_sum(self, factor: float, dtype) -> int:
        """The number of an operation: a sum of values times a factor."""
        number, scalar = c_int(), taeda.tensor([factor], dtype=dtype)
        nccl = library()
        status = nccl.ncclRedOpCreatePreMulSum(
            byref(number), scalar.data_ptr(), DTYPES[dtype], 1, self.handle
        )
        nccl.check("ncclRedOpCreatePreMulSum", status)
        return number.value
