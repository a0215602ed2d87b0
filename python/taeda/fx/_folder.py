"""Writes a GraphModule as a package of Python text and saved state."""

from __future__ import annotations

import warnings
from pathlib import Path

import taeda
from taeda import nn
from taeda.nn.modules.module import _addindent

from ._names import known_globals

__all__ = ["write"]

# Modules whose repr is the call that makes them.
_SPOKEN = (
    *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
)


def write(gm, folder, name: str) -> None:
    """Writes `folder/module.py` with a class of this name, and its state.

    Submodules that cannot be written as a call are saved whole beside it, with a
    warning; loading them runs pickled code.
    """
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    taeda.save(gm.state_dict(), folder / "state_dict.pt")
    library, saved, made = taeda.__name__, [], []
    for child, module in gm.named_children():
        if type(module) in _SPOKEN:
            made.append(f"self.{child} = {module!r}")
            continue
        saved.append(child)
        path = folder / f"{child}.pt"
        taeda.save(module, path)
        call = f"{library}.load({str(path)!r}, weights_only=False)"
        made.append(f"setattr(self, {child!r}, {call})  # {type(module).__name__}")
    for key, value in gm._buffers.items():
        if value is not None:
            made.append(f"self.register_buffer({key!r}, {_empty(value)})")
    for key, value in gm._parameters.items():
        if value is not None:
            made.append(f"self.{key} = {library}.nn.Parameter({_empty(value)})")
    state = f"{library}.load({str(folder / 'state_dict.pt')!r})"
    made.append(f"self.load_state_dict({state})")
    lines = [how for how, _ in known_globals().values()]
    lines += [f"from {library}.nn import *", "", f"class {name}({library}.nn.Module):"]
    lines += ["    def __init__(self):", "        super().__init__()"]
    lines += [f"        {line}" for line in made]
    text = "\n".join(lines) + "\n" + _addindent(gm.code, 4) + "\n"
    (folder / "module.py").write_text(text)
    (folder / "__init__.py").write_text("from .module import *")
    if saved:
        warnings.warn(
            f"to_folder: these children could not be written as text and are saved as "
            f"pickled files instead: {saved}",
            stacklevel=3,
        )


def _empty(value) -> str:
    return f"{taeda.__name__}.empty({list(value.shape)}, dtype={value.dtype})"
