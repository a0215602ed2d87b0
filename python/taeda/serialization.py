"""Saving and loading objects in PyTorch's checkpoint format.

`load` builds data and runs nothing unless told otherwise. `save` leaves an old file
in place until the new one is complete and on the disk.
"""

from __future__ import annotations

import os
from _pickle import UnpicklingError
from functools import cache

import taeda
from taeda._io import names
from taeda._io.location import (
    default_restore_location,
    location_tag,
    register_package,
)
from taeda._io.skipping import skipping as _serialization_tls

__all__ = [
    "LoadEndianness",  # noqa: F822 (made on first use)
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION = FILE_LIKE = object  # for annotations
_YES = ("1", "y", "yes", "true")
# Settings of the process, whatever the thread: each is read once per save or load.
_options = {"endianness": None, "mmap_flags": None, "crc32": True}


class SourceChangeWarning(Warning):
    """The source of a pickled class has changed."""


class StorageType(names.StorageKind):
    """A storage class by name; `dtype` is that of its elements."""


@cache
def _load_endianness():
    from enum import Enum

    class LoadEndianness(Enum):
        """Byte order of files that do not say theirs."""

        NATIVE = 1
        LITTLE = 2
        BIG = 3

    LoadEndianness.__module__ = __name__
    LoadEndianness.__qualname__ = "LoadEndianness"
    return LoadEndianness


def __getattr__(name: str):
    if name == "LoadEndianness":
        return _load_endianness()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object, with its tensors, to a file.

    Tensors that share a storage share it in the file. PyTorch reads the file. A path
    is written under a temporary name, synced and renamed, so that an error or a crash
    leaves the old file, and what is saved is on the disk when this returns.

    Args:
        obj: tensors, containers of them, a state_dict, anything that pickles.
        f: path, or an object with `write`.
        pickle_module: with a `Pickler`; the standard one by default.
        pickle_protocol (int): 2 unless there is a reason.

    Raises:
        RuntimeError: one storage under two dtypes. OSError: from the file system.
        NotImplementedError: quantized tensors.

    Example:
        >>> taeda.save(model.state_dict(), "model.pt")
    """
    import pickle

    from taeda._io.writer import dump

    module = pickle if pickle_module is None else pickle_module
    legacy = not _use_new_zipfile_serialization
    empty = _serialization_tls.skip_data
    if legacy and empty:
        raise RuntimeError(
            "Cannot use skip_data=True with _use_new_zipfile_serialization=False"
        )
    pickled, collector = dump(obj, pickle_protocol, module, legacy)

    def emit(write, root: str) -> None:
        if legacy:
            from taeda._io.legacy import write_legacy

            write_legacy(write, pickled, collector.storages, collector.dtypes)
            return
        from taeda._io.reader import write_zip

        tells = not _disable_byteorder_record
        sums = _options["crc32"]
        write_zip(write, root, pickled, collector.storages, sums, tells, empty)

    if isinstance(f, (str, os.PathLike)):
        _save_to_path(f, emit)
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be a path or a file-like object with 'write', got "
            f"{type(f).__name__}"
        )
    emit(_writes_all(f.write), "archive")
    if hasattr(f, "flush"):  # others may read it by its name while it is open here
        f.flush()


def _save_to_path(path, emit) -> None:
    from taeda._io.atomic import AtomicFile

    stem, _ = os.path.splitext(os.path.basename(os.fspath(path)))
    try:
        target = AtomicFile(path)
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(path))
        raise RuntimeError(f"Parent directory {folder} does not exist.") from None
    with target as file:
        emit(file.write, stem or "archive")


def _writes_all(write):
    """Around unbuffered files, whose write may take a part only."""

    def call(data) -> None:
        view = memoryview(data)
        while len(view):
            count = write(view)
            view = view[len(view) if count is None else count :]

    return call


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args,
):
    """Read what `save`, or PyTorch, wrote.

    Args:
        f: path, or an object with `read`, `seek` and `tell`.
        map_location: where storages go: a device, a dict of tags, or a function
            (storage, tag) -> storage. None: where they were.
        pickle_module: with an `Unpickler`; it runs whatever the file contains.
        weights_only (bool): build data and run nothing (the default without a
            pickle_module); names beyond those of tensors and containers must have been
            trusted with `add_safe_globals`, and memory is bounded by the file's size.
            False runs whatever the file contains. As in PyTorch, the environment's
            TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 turns False into True, and
            TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 changes the default to False.
        mmap (bool): map the file and read pages when they are used; a path only.

    Raises:
        UnpicklingError: the file names something untrusted, is damaged, or would take
            far more memory than its size.
        RuntimeError: the file is truncated or damaged, or names a missing device.
        ValueError: it names an unknown byte order. EOFError: it is empty.
        NotImplementedError: it holds what is not there yet.

    Example:
        >>> taeda.save(taeda.ones(2), "x.pt")
        >>> taeda.load("x.pt", map_location="cpu")
        tensor([1., 1.])
    """
    data_only = _data_only(weights_only, pickle_module)
    encoding = pickle_load_args.setdefault("encoding", "utf-8")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path to use mmap=True")
    from taeda._io.limits import Allowance
    from taeda._io.source import Source

    with Source(f) as source:
        allowance = Allowance(source.size, trusted=not data_only)
        if data_only:
            machine = _data_machine(encoding, allowance)
        else:
            machine = _full_machine(pickle_module, pickle_load_args)
        try:
            return _load(source, f if mmap else None, map_location, machine, allowance)
        except UnpicklingError as error:
            if data_only:
                error.args = (f"Weights only load failed. {error}",)
            raise


def _data_only(weights_only: bool | None, pickle_module) -> bool:
    """What `load`'s arguments and the environment ask for."""
    force, free = (
        os.environ.get(f"TORCH_FORCE_{what}WEIGHTS_ONLY_LOAD", "0").lower() in _YES
        for what in ("", "NO_")
    )
    if force and free:
        raise RuntimeError(
            "TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD are "
            "both set"
        )
    data_only = pickle_module is None if weights_only is None else weights_only
    if force:
        data_only = True
    elif free and weights_only is None:
        import warnings

        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the "
            f"`weights_only` argument was not given to {taeda.__name__}.load: forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        data_only = False
    if data_only and pickle_module is not None:
        raise RuntimeError(
            "a pickle_module runs code: give weights_only=False with it, and only for "
            "files that you trust"
        )
    return bool(data_only)


def _load(source, mapped_path, map_location, machine, allowance):
    if source.size == 0:
        raise EOFError("Ran out of input: the file is empty")
    if source.read(0, min(4, source.size)) == b"PK\3\4":
        return _load_zip(source, mapped_path, map_location, machine, allowance)
    if mapped_path is not None:
        raise RuntimeError(
            "mmap=True needs a file in the zip format; this one is older"
        )
    from taeda._io.legacy import load_legacy

    empty = _serialization_tls.skip_data
    return load_legacy(source, map_location, machine, allowance, empty)


def _data_machine(encoding: str, allowance):
    """(bytes, persistent_load) -> what builds the data in them."""
    from taeda._io.machine import Machine

    return lambda data, keep: Machine(data, keep, encoding, allowance=allowance)


def _full_machine(pickle_module, options: dict):
    """(bytes, persistent_load) -> what runs the pickles in them."""
    import pickle

    from taeda._io.full_pickle import Sequence

    return lambda data, keep: Sequence(data, keep, pickle_module or pickle, options)


def _load_zip(source, mapped_path, map_location, machine, allowance):
    from taeda._io.reader import CheckpointArchive, StorageLoader
    from taeda._io.rebuild import Loading

    archive = CheckpointArchive(source, allowance)
    order = archive.byte_order(_default_order())
    mapping = None
    if mapped_path is not None:
        mapping = _map(mapped_path)
    empty = _serialization_tls.skip_data
    loader = StorageLoader(
        archive.zip, archive.root, map_location, mapping, order, empty
    )
    # Code that runs while the pickle is read must see the tensors' values.
    loader.later = loader.later and not allowance.trusted and not names.current()
    with Loading(allowance, loader.finish):
        result = machine(archive.pickle(), loader).run()
        loader.finish()
    return result


def _map(path):
    import mmap

    shared = _options["mmap_flags"] == getattr(mmap, "MAP_SHARED", 1)
    with open(path, "r+b" if shared else "rb") as file:
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return mmap.mmap(file.fileno(), 0, access=access)


def _default_order() -> str:
    import sys

    chosen = _options["endianness"]
    if chosen is None or chosen.name == "NATIVE":
        return sys.byteorder
    return chosen.name.lower()


def add_safe_globals(safe_globals: list) -> None:
    """Trust functions or classes in data-only loads.

    Args:
        safe_globals: functions or classes, or (function, "module.name") pairs.

    Example:
        >>> from fractions import Fraction
        >>> add_safe_globals([Fraction])
    """
    names.add(safe_globals)


def get_safe_globals() -> list:
    """What `add_safe_globals` has added."""
    return names.current()


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has added."""
    names.clear()


class safe_globals:
    """Trust functions or classes while a block runs, in every thread.

    Example:
        >>> from fractions import Fraction
        >>> taeda.save({"rate": Fraction(1, 3)}, "rate.pt")
        >>> with safe_globals([Fraction]):
        ...     taeda.load("rate.pt")
        {'rate': Fraction(1, 3)}
    """

    def __init__(self, safe_globals: list) -> None:
        self.entries, self.blocks = safe_globals, []

    def __enter__(self) -> None:
        self.blocks.append(names.enter(self.entries))

    def __exit__(self, type, value, tb) -> None:
        names.leave(self.blocks.pop())


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """The names in a checkpoint that a data-only load would refuse.

    Raises:
        ValueError: the file is not in the zip format.
        UnpicklingError: its pickle is damaged.
    """
    from taeda._io.limits import Allowance
    from taeda._io.reader import CheckpointArchive
    from taeda._io.scan import global_names
    from taeda._io.source import Source

    with Source(f) as source:
        if source.size < 4 or source.read(0, 4) != b"PK\3\4":
            raise ValueError("expected a checkpoint in the zip format")
        data = CheckpointArchive(source, Allowance(source.size)).pickle()
    refused = []
    for module, name in global_names(data):
        try:
            names.resolve(module, name)
        except UnpicklingError:
            refused.append(f"{module}.{name}")
    return list(dict.fromkeys(refused))


def normalize_storage_type(storage_type):
    """The present name of an old storage class."""
    from taeda import storage

    return getattr(storage, storage_type.__name__)


def set_default_load_endianness(endianness) -> None:
    """Choose the byte order of files that do not say theirs (None: this machine's)."""
    if endianness is not None and not isinstance(endianness, _load_endianness()):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options["endianness"] = endianness


def get_default_load_endianness():
    """The byte order of files that do not say theirs, or None."""
    return _options["endianness"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` computes checksums of what it writes, as it does by default.

    Without them it is quicker. `load` reads such files but cannot tell whether they
    were damaged, and programs that unpack zip files take them for damaged.

    Example:
        >>> set_crc32_options(False)
    """
    _options["crc32"] = compute_crc32


def get_crc32_options() -> bool:
    """Whether `save` computes checksums."""
    return _options["crc32"]


def get_default_mmap_options() -> int:
    """MAP_PRIVATE or MAP_SHARED, for load(mmap=True)."""
    import mmap

    flags = _options["mmap_flags"]
    return getattr(mmap, "MAP_PRIVATE", 2) if flags is None else flags


class set_default_mmap_options:
    """Choose how load(mmap=True) maps: writes stay private, or go to the file.

    Example:
        >>> import mmap
        >>> taeda.save(taeda.ones(2), "x.pt")
        >>> with set_default_mmap_options(mmap.MAP_SHARED):
        ...     taeda.load("x.pt", mmap=True)
        tensor([1., 1.])
    """

    def __init__(self, flags: int) -> None:
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(f"expected MAP_PRIVATE or MAP_SHARED, got {flags}")
        self.before = _options["mmap_flags"]
        _options["mmap_flags"] = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _options["mmap_flags"] = self.before


class skip_data:
    """In which `save` leaves space for storages in place of writing them, and `load`
    makes storages without reading them: both are to be filled by other means.

    Holds for the thread that enters it.

    Args:
        materialize_fake_tensors: whether fake tensors are written as tensors of the
            devices that they say they are on.

    Example:
        >>> taeda.save({"x": taeda.ones(2)}, "x.pt")
        >>> with skip_data():
        ...     shapes = taeda.load("x.pt")
        >>> list(shapes["x"].shape)
        [2]
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        local = _serialization_tls
        self._before = local.skip_data, local.materialize_fake_tensors
        local.skip_data = True
        local.materialize_fake_tensors = self.materialize_fake_tensors

    def __exit__(self, type, value, tb) -> None:
        local = _serialization_tls
        local.skip_data, local.materialize_fake_tensors = self._before


def _open_file_like(name_or_buffer, mode: str):
    """A context that gives the file of a path, which it closes, or the object given."""
    from contextlib import nullcontext

    if _is_path(name_or_buffer):
        return open(name_or_buffer, mode)
    return nullcontext(name_or_buffer)


def _open_zipfile_reader(name_or_buffer):
    """A context that gives the records of a checkpoint."""
    from contextlib import nullcontext

    return nullcontext(taeda.PyTorchFileReader(name_or_buffer))


class _open_zipfile_writer:
    """A context that gives a writer of records and ends the file."""

    def __init__(self, name_or_buffer) -> None:
        self.file_like = taeda.PyTorchFileWriter(name_or_buffer, _options["crc32"])

    def __enter__(self):
        return self.file_like

    def __exit__(self, *error) -> None:
        self.file_like.write_end_of_file()


def _is_zipfile(f) -> bool:
    """Whether a file, from where it stands, begins as a zip container."""
    at = f.tell()
    start = f.read(4)
    f.seek(at)
    return start == b"PK\3\4"


def mkdtemp():
    """A folder for the length of a `with` block, which gets its path."""
    from tempfile import TemporaryDirectory

    return TemporaryDirectory()


def validate_cuda_device(location) -> int:
    """The number of the GPU that a storage goes to.

    Raises:
        ValueError: the location is no GPU.
        RuntimeError: there is no such GPU.
    """
    from taeda.cuda import device_count, is_available

    device = taeda.device(location) if isinstance(location, str) else location
    if isinstance(device, taeda.device) and device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    index = device if isinstance(device, int) else (device.index or 0)
    if not is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but "
            f"{taeda.__name__}.cuda.is_available() is False. On a machine without a "
            "GPU load(..., map_location='cpu') puts storages on the CPU."
        )
    if index >= device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"{taeda.__name__}.cuda.device_count() is {device_count()}. "
            "load(..., map_location=) "
            "puts storages elsewhere."
        )
    return index


def validate_hpu_device(location) -> int:
    """The same for Habana's devices; RuntimeError, this build knows none."""
    raise RuntimeError(
        "The HPU device module is not registered: load(..., map_location='cpu') puts "
        "storages on the CPU."
    )


def storage_to_tensor_type(storage):
    """The old type of tensors over a storage: `taeda.FloatTensor` for FloatStorage."""

    name = storage.type().rpartition(".")[2]
    return getattr(taeda, name.replace("Storage", "Tensor"))


def _is_path(name_or_buffer) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


def check_module_version_greater_or_equal(
    module, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Is `module.__version__` at least the given one?"""
    try:
        parts = module.__version__.split(".")
        found = tuple(
            type(want)(have)
            for want, have in zip(req_version_tuple, parts, strict=False)
        )
    except (AttributeError, ValueError) as error:
        text = f"{module!r} has no version of numbers and dots"
        if error_if_malformed:
            raise RuntimeError(text) from error
        import warnings

        warnings.warn(text + "; taken to be new enough", stacklevel=2)
        return True
    return found >= tuple(req_version_tuple)
