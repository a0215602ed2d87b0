"""Modules whose shapes the first call decides."""

from __future__ import annotations

import taeda

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Base, before a module class, of its lazy form.

    A subclass holds uninitialized parameters and defines `initialize_parameters`,
    which gives them shapes from the first call's arguments. After that call the
    object's class becomes `cls_to_become`.

    Raises:
        RuntimeError: a parameter is still uninitialized after the first call.
        NotImplementedError: `initialize_parameters` is not defined.

    Example:
        >>> layer = taeda.nn.LazyLinear(2)
        >>> _ = layer(taeda.ones(1, 3))
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        load = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        first = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        self._load_hook, self._initialize_hook = load, first

    def _tensors(self):
        for table in (self._parameters, self._buffers):
            for name, value in table.items():
                if value is not None:
                    yield name, value

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        for name, value in self._tensors():
            if name in self._buffers and name in self._non_persistent_buffers_set:
                continue
            kept = keep_vars or is_lazy(value)
            destination[prefix + name] = value if kept else value.detach()

    def _lazy_load_hook(self, state_dict, prefix, *rest) -> None:
        """A checkpoint of an initialized module gives the shapes as well."""
        for name, value in self._tensors():
            saved = state_dict.get(prefix + name)
            if saved is not None and is_lazy(value) and not is_lazy(saved):
                with taeda.no_grad():
                    value.materialize(saved.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Give every parameter its shape, from the arguments of forward."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still has no shape."""
        return any(is_lazy(value) for _, value in self._tensors())

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized"
            )
        for hook in ("_initialize_hook", "_load_hook"):
            getattr(module, hook).remove()
            delattr(module, hook)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`: "
            "run forward once first"
        )
