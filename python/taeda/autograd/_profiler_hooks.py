"""What names calls in profiles from outside of csrc: modules, optimizers' steps."""

from __future__ import annotations

import threading

from taeda import _profiler


class ModulePaths:
    """The path of a module from the outermost module that was called, by thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    def enter(self, module) -> str:
        """The path of a module that is about to run."""
        local = self._local
        if not getattr(local, "open", None):
            local.open = []
            root = type(module).__name__
            local.paths = {
                id(child): f"{root}.{name}" if name else root
                for name, child in module.named_modules()
            }
        path = local.paths.get(id(module))
        if path is None:  # not among its children: held otherwise
            path = f"{local.open[-1]}.{type(module).__name__}"
        local.open.append(path)
        return path

    def leave(self) -> None:
        """The module has ended."""
        self._local.open.pop()


class Hooks:
    """Those of a recording.

    Args:
        modules: whether modules are events.
    """

    def __init__(self, modules: bool) -> None:
        self._local = threading.local()
        self._paths = ModulePaths()
        self._handles: list = []
        self._add_optimizers()
        if modules:
            self._add_modules()

    def _begin(self, name: str, is_module: bool) -> None:
        local = self._local
        if not hasattr(local, "tokens"):
            local.tokens = []
        local.tokens.append(_profiler.begin(name, is_module))

    def _end(self) -> None:
        # None where the block began before the recording.
        if getattr(self._local, "tokens", None):
            _profiler.end(self._local.tokens.pop())

    def _add_optimizers(self) -> None:
        from taeda.optim import optimizer

        def begins(own, args, kwargs):
            name = type(own).__name__
            self._begin(f"Optimizer.step#{name}.step", False)

        def ends(own, args, kwargs):
            self._end()

        self._handles.append(optimizer.register_optimizer_step_pre_hook(begins))
        self._handles.append(optimizer.register_optimizer_step_post_hook(ends))

    def _add_modules(self) -> None:
        from taeda.nn.modules import module

        def begins(own, args):
            self._begin(self._paths.enter(own), True)

        def ends(own, args, output):
            if getattr(self._local, "tokens", None):
                self._end()
                self._paths.leave()

        self._handles.append(module.register_module_forward_pre_hook(begins))
        self._handles.append(
            module.register_module_forward_hook(ends, always_call=True)
        )

    def remove(self) -> None:
        """Takes them away."""
        for handle in self._handles:
            handle.remove()
