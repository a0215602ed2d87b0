"""What the hooks have in common that compute a weight before every forward."""

from __future__ import annotations

from ..parameter import Parameter, is_lazy

# Where a module keeps the hook itself and what it has to say about checkpoints.
_TABLES = ("_forward_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks")


class WeightHook:
    """A forward pre-hook that computes the tensor `name` of its module from others.

    A subclass has `compute_weight`, the name of the function that users call, for
    messages, and the suffixes of the tensors that stand in for the weight.
    """

    _function: str
    _suffixes: tuple[str, ...]
    name: str

    @classmethod
    def _on(cls, module, name):
        """The hook of this kind that computes `name`, or None."""
        hooks = module.__dict__.get("_forward_pre_hooks", {}).values()
        mine = (hook for hook in hooks if isinstance(hook, cls) and hook.name == name)
        return next(mine, None)

    @classmethod
    def _refuse_second(cls, module, name) -> None:
        if cls._on(module, name) is not None:
            raise RuntimeError(
                f"Cannot register two {cls._function} hooks on the same parameter "
                f"{name}"
            )

    @classmethod
    def _undo(cls, module, name):
        """Take the hook and its methods out of the module's tables."""
        hook = cls._on(module, name)
        if hook is None:
            raise ValueError(f"{cls._function} of '{name}' not found in {module}")
        hook.remove(module)
        for table in _TABLES:
            entries = module.__dict__.get(table, {})
            for key, entry in list(entries.items()):
                called = getattr(entry, "hook", entry)
                if hook in (called, getattr(called, "__self__", None)):
                    del entries[key]
        return module

    def _sized(self, weight):
        """`weight`, unless it has no shape yet."""
        if is_lazy(weight):
            raise ValueError(
                f"The module passed to `{type(self).__name__}` can't have "
                "uninitialized parameters: run its forward once first"
            )
        return weight

    def _parts(self, module):
        """The tensors that the weight is computed from."""
        return [getattr(module, self.name + suffix) for suffix in self._suffixes]

    def _restore(self, module, weight) -> None:
        """Make `weight` an ordinary parameter in place of the parts."""
        for suffix in ("", *self._suffixes):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))
