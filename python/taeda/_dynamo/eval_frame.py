"""What wraps compiled modules."""

from __future__ import annotations

import functools

from taeda.nn import Module

__all__ = ["OptimizedModule", "is_dynamo_supported", "unsupported"]


def is_dynamo_supported() -> bool:
    """Whether programs can be captured on this Python."""
    from importlib.util import find_spec

    return find_spec("taeda._capture") is not None


def unsupported(a, b):
    """Ends a graph, in tests of what does; returns `b`.

    Example:
        >>> taeda._dynamo.eval_frame.unsupported(1, 2)
        2
    """
    return _disabled()(b)


@functools.cache
def _disabled():
    from taeda.compiler import disable

    return disable(lambda value: value, reason="it is unsupported")


class OptimizedModule(Module):
    """A compiled module: it calls the module that it holds as `_orig_mod`.

    Its parameters are those of that module, under names that begin with `_orig_mod.`;
    all other attributes are read from and written to that module.

    Args:
        mod: the module.
        settings: those of `taeda.compile`, under which copies are compiled too.
    """

    def __init__(self, mod: Module, settings: dict | None = None) -> None:
        super().__init__()
        del self.__dict__["training"]  # the module's own is the one
        self.__dict__["_settings"] = settings or {}
        self._orig_mod = mod

    def _compile_again(self) -> None:
        from taeda.compiler._entry import call_of

        self.__dict__["_compiled"] = call_of(self._orig_mod, **self._settings)

    @property
    def dynamo_ctx(self):
        """A decorator that compiles functions as this module is."""
        import taeda

        return functools.partial(taeda.compile, **self._settings)

    def __getstate__(self) -> dict:
        return {k: v for k, v in super().__getstate__().items() if k != "_compiled"}

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self._compile_again()

    def forward(self, *args, **kwargs):
        """Call the module."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str):
        held = self.__dict__["_modules"]["_orig_mod"]
        return held if name == "_orig_mod" else getattr(held, name)

    def __setattr__(self, name: str, value) -> None:
        if name == "_orig_mod":  # packages that wrap modules put theirs in its place
            self._modules[name] = value
            self._compile_again()
        elif "_modules" in self.__dict__ and "_orig_mod" in self._modules:
            setattr(self._modules["_orig_mod"], name, value)
        else:
            super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def train(self, mode: bool = True) -> OptimizedModule:
        """Set the training mode of the module."""
        self._orig_mod.train(mode)
        return self

    @property
    def training(self) -> bool:
        """Whether the module trains."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._orig_mod.training = mode
