"""The state of a module while it is exported."""

from __future__ import annotations

import contextlib
import warnings

import taeda
from taeda import nn
from taeda.utils import _pytree as pytree

__all__ = ["State"]


class State:
    """The parameters and buffers of a module, and the stand-ins that took their place.

    Stand-ins are put into the module itself for the time of the trace; another thread
    must not run it meanwhile.
    """

    def __init__(self, mod: nn.Module) -> None:
        self.mod = mod
        named = {"remove_duplicate": False}
        self.parameters = dict(mod.named_parameters(**named))
        self.buffers = dict(mod.named_buffers(**named))
        self.modules = dict(mod.named_modules(**named))
        self.persistent = {
            f"{path}.{name}" if path else name
            for path, module in self.modules.items()
            for name in module._buffers
            if name not in module._non_persistent_buffers_set
        }
        self.attributes = {
            id(value): f"{path}.{name}" if path else name
            for path, module in self.modules.items()
            for name, value in vars(module).items()
            if isinstance(value, taeda.Tensor)
        }
        self.written: dict[str, taeda.Tensor] = {}  # buffer -> what was assigned

    def all(self) -> dict:
        """Path -> parameter or buffer."""
        return {**self.parameters, **self.buffers}

    @contextlib.contextmanager
    def replaced(self, fakes: dict):
        """Inside, the module has these stand-ins; at the end what it had before."""
        before = [
            (m, dict(vars(m)), dict(m._parameters), dict(m._buffers))
            for m in self.mod.modules()
        ]
        try:
            for module, *_ in before:
                for table in (module._parameters, module._buffers):
                    for name, value in table.items():
                        if value is not None:
                            table[name] = fakes[id(value)]
            yield
            self._notice(fakes, before)
        finally:
            for module, attributes, parameters, buffers in before:
                vars(module).clear()
                vars(module).update(attributes)
                for table, old in (
                    (module._parameters, parameters),
                    (module._buffers, buffers),
                ):
                    table.clear()
                    table.update(old)

    def _notice(self, fakes: dict, before: list) -> None:
        """What the program assigned to buffers; it is warned of other new tensors."""
        lost: list[str] = []
        paths = {id(m): path for path, m in reversed(self.modules.items())}
        for module, attributes, parameters, buffers in before:
            prefix = f"{paths[id(module)]}." if paths[id(module)] else ""
            for table, old in (
                (module._parameters, parameters),
                (module._buffers, buffers),
            ):
                for name, value in table.items():
                    seen = old.get(name)
                    stand_in = None if seen is None else fakes[id(seen)]
                    if value is not stand_in:
                        self.written[prefix + name] = value
            lost += [
                f"self.{prefix}{name}"
                for name, value in vars(module).items()
                if attributes.get(name) is not value
                and any(isinstance(v, taeda.Tensor) for v in pytree.tree_leaves(value))
                and name not in ("_parameters", "_buffers", "_modules")
            ]
        if lost:
            few = len(lost) == 1
            warnings.warn(
                f"The tensor {'attribute' if few else 'attributes'} {', '.join(lost)} "
                f"{'was' if few else 'were'} assigned during export. Such attributes "
                "must be registered as buffers using the `register_buffer` API and "
                "must be initialized at model.__init__ "
                "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_buffer).",
                stacklevel=2,
            )
