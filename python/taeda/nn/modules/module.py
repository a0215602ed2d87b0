"""`Module`, the base of every layer and model."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable

from taeda import Tensor, typename

from ..parameter import Buffer, Parameter
from ._convert import Convert
from ._hooks import (
    CALL_TABLES,
    STATE_TABLES,
    Hooks,
    _add,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _has_any_global_hook,
    _WrappedHook,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX, State, _IncompatibleKeys
from ._tree import Tree

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# Names that programs reach for here, as in torch.nn.modules.module.
_SHARED = (
    _EXTRA_STATE_KEY_SUFFIX,
    _IncompatibleKeys,
    _WrappedHook,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _has_any_global_hook,
)

_TABLES = {
    name: table
    for name, table in globals().items()
    if name.startswith("_global_") and isinstance(table, dict)
}


class _HookTables(types.ModuleType):
    """Programs drop all hooks by assigning `module._global_forward_hooks = {}`, though
    calls of modules read the table itself."""

    def __setattr__(self, name: str, value) -> None:
        table = _TABLES.get(name)
        if table is None:
            super().__setattr__(name, value)
        elif table is not value:
            held = dict(value)
            table.clear()
            table.update(held)


sys.modules[__name__].__class__ = _HookTables

_global_buffer_registration_hooks: dict = OrderedDict()
_global_module_registration_hooks: dict = OrderedDict()
_global_parameter_registration_hooks: dict = OrderedDict()

# Values of these types are never registered: they take the short way below.
_PLAIN = frozenset((bool, int, float, str, tuple, list, type(None)))
_set = object.__setattr__


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` whenever a buffer is registered.

    What it returns, unless None, is registered instead.
    """
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` whenever a module is registered."""
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, parameter)` whenever a parameter is registered."""
    return _add(_global_parameter_registration_hooks, hook)


def _asked(hooks, module, name, value):
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _addindent(text: str, spaces: int) -> str:
    """Indent all lines but the first."""
    if "\n" not in text:
        return text
    first, *rest = text.split("\n")
    pad = " " * spaces
    return "\n".join([first, *(pad + line if line.strip() else "" for line in rest)])


def _forward_unimplemented(self, *input) -> None:
    """Compute the output; every subclass defines it.

    Raises:
        NotImplementedError: the class does not define forward.
    """
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(Hooks, State, Tree, Convert):
    """Base class of layers and models: a tree of parameters and buffers.

    A subclass calls `super().__init__()`, assigns parameters, buffers and other
    modules as attributes, which registers them, and defines `forward`.

    Attributes:
        training (bool): whether the module is in training mode.

    Example:
        >>> class Twice(taeda.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.inner = taeda.nn.Linear(2, 2)
        ...
        ...     def forward(self, x):
        ...         return self.inner(self.inner(x))
        >>> tuple(Twice()(taeda.ones(3, 2)).shape)
        (3, 2)
    """

    dump_patches: bool = False
    call_super_init: bool = False
    training: bool
    _hooked: bool = True  # for classes that restore their state without `super()`
    _parameters: dict
    _buffers: dict
    _modules: dict

    forward: Callable = _forward_unimplemented

    def __init__(self, *args, **kwargs) -> None:
        own = self.__dict__
        own["training"] = True
        own["_hooked"] = False
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_modules"] = {}
        if args or kwargs or self.call_super_init:
            self._init_more(args, kwargs)

    def _init_more(self, args, kwargs) -> None:
        if self.call_super_init:
            super().__init__(*args, **kwargs)
            return
        name = f"{type(self).__name__}.__init__()"
        if kwargs:
            wrong = next(iter(kwargs))
            raise TypeError(f"{name} got an unexpected keyword argument '{wrong}'")
        raise TypeError(
            f"{name} takes 1 positional argument but {len(args) + 1} were given"
        )

    def __getattr__(self, name: str):
        own = self.__dict__
        if "_parameters" in own:
            table = own["_parameters"]
            if name in table:
                return table[name]
            table = own["_modules"]
            if name in table:
                return table[name]
            table = own["_buffers"]
            if name in table:
                return table[name]
            if name in CALL_TABLES:
                own["_hooked"] = True
                return own.setdefault(name, OrderedDict())
            if name in STATE_TABLES:
                return own.setdefault(name, OrderedDict())
            if name == "_non_persistent_buffers_set":
                return own.setdefault(name, set())
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'",
            name=name,
            obj=self,
        )

    def __setattr__(self, name: str, value) -> None:
        if type(value) in _PLAIN:
            own = self.__dict__
            if "_parameters" in own and (
                name in own["_parameters"]
                or name in own["_modules"]
                or name in own["_buffers"]
            ):
                self._replace(name, value)
            else:
                _set(self, name, value)
        elif isinstance(value, Module):
            self._assign_module(name, value)
        elif isinstance(value, Tensor):
            self._assign_tensor(name, value)
        elif not self._replace(name, value):
            if name in CALL_TABLES:
                self.__dict__["_hooked"] = True
            _set(self, name, value)

    def _assign_module(self, name, value) -> None:
        own = self.__dict__
        if "_modules" not in own:
            raise AttributeError("cannot assign module before Module.__init__() call")
        if name in own["_parameters"]:
            self._replace(name, value)
        self._forget(name, "_modules")
        if _global_module_registration_hooks:
            value = _asked(_global_module_registration_hooks, self, name, value)
        own["_modules"][name] = value

    def _assign_tensor(self, name, value) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError(
                    "cannot assign parameters before Module.__init__() call"
                )
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer):
            if not self._replace(name, value):
                self._register_buffer(name, value, value.persistent)
        elif not self._replace(name, value):
            _set(self, name, value)

    def _forget(self, name, kept) -> None:
        """Drop every other entry under `name`, so that the new one is seen."""
        own = self.__dict__
        own.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept and name in own[table]:
                del own[table][name]
        if "_non_persistent_buffers_set" in own:
            own["_non_persistent_buffers_set"].discard(name)

    def _replace(self, name, value) -> bool:
        """Put an unregistrable value where something is registered, or refuse."""
        own = self.__dict__
        if "_parameters" not in own:
            return False
        if name in own["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif name in own["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            hooks = _global_module_registration_hooks
            own["_modules"][name] = _asked(hooks, self, name, value)
        elif name in own["_buffers"]:
            if value is not None and not _tensor_like(value):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                persistent = value.persistent
            else:
                persistent = name not in own.get("_non_persistent_buffers_set", ())
            self._register_buffer(name, value, persistent)
        else:
            return False
        return True

    def _register_buffer(self, name, value, persistent) -> None:
        """`register_buffer`, of a subclass that may not know `persistent`."""
        if type(self).register_buffer is Module.register_buffer:
            self.register_buffer(name, value, persistent)
            return
        import inspect

        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                f"{type(self).__name__}.register_buffer() has no argument "
                f"`persistent`, so the non-persistent buffer '{name}' cannot be "
                "registered"
            )

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)
                return
        # What is made when it is first read may not be there yet.
        getattr(self, name, None)
        object.__delattr__(self, name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None reserves the name.

        Raises:
            TypeError: `param` is no Parameter.
            KeyError: the name is empty, has a dot, or is taken.
            ValueError: `param` was computed from other tensors.
        """
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}': parameters "
                    "are leaves; compute what depends on others in forward()"
                )
            if _global_parameter_registration_hooks:
                hooks = _global_parameter_registration_hooks
                param = _asked(hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Add a tensor that is state but no parameter, under `name`.

        Args:
            name: attribute name.
            tensor: the value, or None to reserve the name.
            persistent: whether `state_dict()` holds it.

        Raises:
            TypeError: `tensor` is no tensor.
            KeyError: the name is empty, has a dot, or is taken.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not _tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        if _global_buffer_registration_hooks:
            tensor = _asked(_global_buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if not persistent:
            self._non_persistent_buffers_set.add(name)
        elif "_non_persistent_buffers_set" in self.__dict__:
            self._non_persistent_buffers_set.discard(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module below this one, under `name`.

        Raises:
            TypeError: `module` is no Module.
            KeyError: the name is empty, has a dot, or is taken.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        if _global_module_registration_hooks:
            module = _asked(_global_module_registration_hooks, self, name, module)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind, name, table) -> None:
        own = self.__dict__
        if table not in own:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if name not in own[table] and _taken(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def __getstate__(self):
        compiled = "_compiled_call_impl"
        return {name: x for name, x in self.__dict__.items() if name != compiled}

    def __setstate__(self, state) -> None:
        own = self.__dict__
        own.update(state)
        # A file has every table, as PyTorch's do: hooks put into one that is there
        # pass by `__getattr__`, which would set the flag.
        if "_hooked" not in state or not CALL_TABLES.isdisjoint(own):
            own["_hooked"] = True

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses of this module's repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        for name, module in self._modules.items():
            lines.append(f"({name}): {_addindent(repr(module), 2)}")
        inner = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inner})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the parts as a tree, with counts of parameters."""
        from taeda._notebook import module_html

        return module_html(self)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__]
        names += [*self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[:1].isdigit())


def _taken(module, name) -> bool:
    """Whether `name` is already something else; the same as hasattr, but quick."""
    own = module.__dict__
    if name in own:
        return True
    if hasattr(type(module), name):  # a property may not have its value yet
        return hasattr(module, name)
    return any(name in own[t] for t in ("_parameters", "_buffers", "_modules"))


def _tensor_like(value) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")
