"""Saving a module's state into a dictionary and loading it back."""

from __future__ import annotations

from collections import OrderedDict

import taeda
from taeda import Tensor

from ..parameter import Parameter, is_lazy
from ._hooks import _add, _WrappedHook

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from typing import Any


_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(tuple):
    """What `load_state_dict` returns: (missing_keys, unexpected_keys)."""

    __slots__ = ()
    _fields = ("missing_keys", "unexpected_keys")

    def __new__(cls, missing_keys, unexpected_keys):
        return tuple.__new__(cls, (missing_keys, unexpected_keys))

    def __getnewargs__(self):
        return tuple(self)

    @property
    def missing_keys(self) -> list[str]:
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def _collect(module, destination, metadata, prefix, keep_vars):
    """Fill `destination` from `module` and below; the hot path of state_dict."""
    own = module.__dict__
    local = {"version": module._version}
    if metadata is not None:
        metadata[prefix[:-1]] = local
    if "_state_dict_pre_hooks" in own:
        for hook in module._state_dict_pre_hooks.values():
            hook(module, prefix, keep_vars)
    kind = type(module)
    if (
        kind._save_to_state_dict is State._save_to_state_dict
        and kind.get_extra_state is State.get_extra_state
        and not own["_buffers"]
        and "_save_to_state_dict" not in own
    ):
        for name, value in own["_parameters"].items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
    else:
        module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in own["_modules"].items():
        if child is None:
            continue
        below = f"{prefix}{name}."
        if type(child).state_dict is State.state_dict and (
            "state_dict" not in child.__dict__
        ):
            _collect(child, destination, metadata, below, keep_vars)
        else:
            child.state_dict(destination=destination, prefix=below, keep_vars=keep_vars)
    if "_state_dict_hooks" in own:
        return _after_collect(module, destination, prefix, local)
    return destination


def _after_collect(module, destination, prefix, local):
    for hook in module._state_dict_hooks.values():
        changed = hook(module, destination, prefix, local)
        if changed is None:
            continue
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("state_dict post-hook must return None")
        destination = changed
    return destination


class State:
    """The part of `Module` that saves and loads."""

    _version: int = 1

    def state_dict(
        self, *args, destination=None, prefix="", keep_vars=False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers, by dotted name, in order.

        Args:
            destination: a dictionary to add to; default a new OrderedDict.
            prefix: put before every name.
            keep_vars: the tensors themselves, with their autograd history,
                instead of detached ones (both share memory).

        Returns:
            OrderedDict: its attribute `_metadata` holds each module's version.

        Example:
            >>> list(taeda.nn.Linear(2, 1).state_dict())
            ['weight', 'bias']
        """
        if args:
            _warn_positional()
            given = (destination, prefix, keep_vars)
            destination, prefix, keep_vars = _positional(args, given)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = getattr(destination, "_metadata", None)
        return _collect(self, destination, metadata, prefix, keep_vars)

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        buffers = self._buffers
        hidden = self.__dict__.get("_non_persistent_buffers_set")
        if hidden:
            buffers = {n: b for n, b in buffers.items() if n not in hidden}
        for table in (self._parameters, buffers):
            for name, value in table.items():
                if value is not None:
                    destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def get_extra_state(self):
        """Further state to save; a subclass returns anything that pickles.

        Raises:
            RuntimeError: called on a class that does not override it.
        """
        raise RuntimeError(f"{type(self).__name__} defines no get_extra_state()")

    def set_extra_state(self, state) -> None:
        """Take back what `get_extra_state` returned; a subclass defines it.

        Raises:
            RuntimeError: called on a class that does not override it.
        """
        raise RuntimeError(f"{type(self).__name__} defines no set_extra_state()")

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """Copy the values of `state_dict` into this module and those below.

        Args:
            state_dict: as `state_dict()` returns it; not changed.
            strict: raise unless the names agree exactly.
            assign: take the tensors themselves, with their dtype and device,
                instead of copying into the present ones.

        Returns:
            A named tuple of the lists `missing_keys` and `unexpected_keys`.

        Raises:
            TypeError: `state_dict` is no mapping.
            RuntimeError: names (when strict) or shapes differ; all are listed.

        Example:
            >>> layer = taeda.nn.Linear(2, 1)
            >>> layer.load_state_dict(layer.state_dict())
            <All keys matched successfully>
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        loader = _Loader(metadata or {}, assign)
        loader.load(self, state_dict, "")
        errors = loader.errors
        if strict:
            for index, (kind, keys) in enumerate(
                (("Missing", loader.missing), ("Unexpected", loader.unexpected))
            ):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    text = f"{kind} key(s) in state_dict: {names}. "
                    errors.insert(index if loader.missing else 0, text)
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return _IncompatibleKeys(loader.missing, loader.unexpected)

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ) -> None:
        own = self.__dict__
        for hook in own.get("_load_state_dict_pre_hooks", {}).values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        hidden = own.get("_non_persistent_buffers_set", ())
        expected = {n: p for n, p in self._parameters.items() if p is not None}
        for name, value in self._buffers.items():
            if value is not None and name not in hidden:
                expected[name] = value
        assign = local_metadata.get("assign_to_params_buffers", False)
        swap = _future("get_swap_module_params_on_conversion")
        with taeda.no_grad():
            for name, present in expected.items():
                key = prefix + name
                if key in state_dict:
                    how = (present, state_dict[key], assign, swap)
                    error = _load_one(self, name, key, *how)
                    if error:
                        error_msgs.append(error)
                elif strict:
                    missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if head not in (self._modules if dot else expected):
                        unexpected_keys.append(key)

    def register_state_dict_pre_hook(self, hook):
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata)` afterwards.

        The hook changes `state_dict` in place and returns None.
        """
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that "
                "was previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        wrapped = _WrappedHook(hook, self if with_module else None)
        return _add(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, ...)` before a module loads.

        The hook's other arguments are those of `_load_from_state_dict`.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after a module has loaded.

        The two lists of `incompatible_keys` may be changed in place.
        """
        return _add(self._load_state_dict_post_hooks, hook)


class _Loader:
    """One run of `load_state_dict`: what it knows and what it found."""

    def __init__(self, metadata, assign) -> None:
        self.metadata, self.assign = metadata, assign
        self.missing, self.unexpected, self.errors = [], [], []

    def load(self, module, state, prefix) -> None:
        local = self.metadata.get(prefix[:-1], {})
        if self.assign:
            local["assign_to_params_buffers"] = self.assign
        found = self.missing, self.unexpected, self.errors
        module._load_from_state_dict(state, prefix, local, True, *found)
        if module._modules:
            parts: dict = {}  # the state of each child, in one pass over the keys
            start = len(prefix)
            for key, value in state.items():
                if key.startswith(prefix):
                    at = key.find(".", start)
                    if at >= 0:
                        parts.setdefault(key[start:at], {})[key] = value
            for name, child in module._modules.items():
                if child is not None:
                    self.load(child, parts.get(name, {}), f"{prefix}{name}.")
        if "_load_state_dict_post_hooks" in module.__dict__:
            keys = _IncompatibleKeys(self.missing, self.unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` "
                        "must change incompatible_keys in place and return None"
                    )


def _load_one(module, name, key, present, value, assign, swap):
    """Load one tensor; returns what is wrong with it, or None."""
    if not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or '
            f"Tensor-like object from checkpoint but received {type(value)}"
        )
    if not is_lazy(present):
        shape = present.shape
        if value.shape != shape:
            if len(shape) == 0 and tuple(value.shape) == (1,):
                value = value[0]  # 0-d values were saved so before version 0.4
            else:
                return (
                    f"size mismatch for {key}: copying a param with shape "
                    f"{value.shape} from checkpoint, the shape in current model is "
                    f"{shape}."
                )
        if present.is_meta and not value.is_meta and not assign:
            import warnings

            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a "
                "meta parameter in the current model, which is a no-op (pass "
                "`assign=True` to take the checkpoint's tensors instead)",
                stacklevel=5,
            )
    try:
        if swap:
            _swap_in(present, value, assign)
        elif assign:
            setattr(module, name, _as_parameter(present, value))
        else:
            present.copy_(value)
    except Exception as error:
        return (
            f'While {"swapping" if swap else "copying"} the parameter named "{key}" '
            f"of size {present.size()} with one of size {value.size()}, an exception "
            f"occurred: {error.args}"
        )
    return None


def _as_parameter(present, value):
    """`value`, made a Parameter where `present` is one."""
    if not isinstance(present, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(present.requires_grad)
    return Parameter(value, requires_grad=present.requires_grad)


def _swap_in(present, value, assign) -> None:
    new = present.module_load(value, assign=assign)
    if new is value or new is present:
        raise RuntimeError(
            "module_load returned one of self or other: return a tensor of its own, "
            "such as other.detach()"
        )
    taeda.utils.swap_tensors(present, _as_parameter(present, new))


def _future(switch) -> bool:
    """A switch of `taeda.__future__`; off where that module does not exist."""
    getter = getattr(getattr(taeda, "__future__", None), switch, None)
    return bool(getter and getter())


def _warn_positional() -> None:
    import warnings

    warnings.warn(
        "positional arguments of Module.state_dict are deprecated, pass "
        "destination=, prefix= and keep_vars= by name",
        FutureWarning,
        stacklevel=3,
    )


def _positional(args, given):
    """Old positional arguments, where the named ones keep their defaults."""
    defaults = (None, "", False)
    pairs = zip(given, (*args, *defaults[len(args) :])[:3], defaults, strict=False)
    return tuple(new if old == default else old for old, new, default in pairs)
