"""What PyTorch's tests of custom operators ask of private modules."""

from __future__ import annotations

import sys
import types
from pathlib import Path

__all__ = ["install"]


def install() -> None:
    """Puts the modules there."""
    import taeda

    old = _module("_custom_op.impl")
    # What the old decorators registered; this library has none of them.
    old.global_registry = {}
    old.get_op = _lookup
    old.infer_schema = taeda.library.infer_schema
    utils = _module("_library.utils")
    utils.lookup_op = _lookup
    custom = _module("_library.custom_ops")
    custom.CustomOpDef = taeda.library.CustomOpDef
    taeda._library.infer_schema = taeda.library.infer_schema
    _leave_out_libraries(type(taeda.ops))


def _leave_out_libraries(ops: type) -> None:
    """Libraries of PyTorch's own tests are not there, and few tests need them."""
    load = ops.load_library

    def load_library(self, path: str) -> None:
        if Path(path).exists() or not Path(path).name.startswith("libtorchbind"):
            load(self, path)

    ops.load_library = load_library


def _module(path: str) -> types.ModuleType:
    import taeda

    place = taeda
    parts = path.split(".")
    for depth, name in enumerate(parts, start=1):
        full = ".".join(parts[:depth])
        module = sys.modules.get(f"torch.{full}")
        if module is None:
            module = types.ModuleType(f"torch.{full}")
            module.__path__ = []
            sys.modules[f"torch.{full}"] = sys.modules[f"taeda.{full}"] = module
            setattr(place, name, module)
        place = module
    return place


def _lookup(qualname: str):
    """The overload of a name such as "space::operator"."""
    import taeda

    space, _, name = qualname.partition("::")
    name, _, overload = name.partition(".")
    packet = getattr(getattr(taeda.ops, space), name)
    return getattr(packet, overload or "default")
