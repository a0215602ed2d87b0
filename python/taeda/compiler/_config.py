"""Modules of settings, of which unknown names are errors."""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import importlib
import types
import warnings

__all__ = ["Settings", "Together", "settings_module"]


class Settings(types.ModuleType):
    """A module whose attributes are settings.

    Reading and writing is by attribute; the process has one of each setting, and the
    interpreter's lock guards it.

    Raises:
        AttributeError: no setting has this name.
        TypeError: a value of another type.
    """

    def __getattr__(self, name: str):
        own = self.__dict__
        known = own["_aliases"].get(name, name)
        for settings in (own["_values"], own["_fixed"]):
            if known in settings:
                return settings[known]
        raise AttributeError(f"{self.__name__}.{name} does not exist", name=name)

    def __setattr__(self, name: str, value) -> None:
        own = self.__dict__
        if name.startswith("__") or isinstance(value, types.ModuleType):
            own[name] = value
            return
        name = own["_aliases"].get(name, name)
        if name in own["_fixed"]:
            _say_fixed(self, name, value)
            return
        if name not in own["_values"]:
            raise AttributeError(f"{self.__name__}.{name} does not exist", name=name)
        kind = type(own["_values"][name])
        if type(value) is not kind:
            raise TypeError(
                f"{self.__name__}.{name}: expected {kind.__name__}, got {value!r}"
            )
        own["_values"][name] = value
        own["_changed"](name, value)

    def __delattr__(self, name: str) -> None:
        """A setting has its default again: what `unittest.mock.patch` ends with."""
        own = self.__dict__
        known = own["_aliases"].get(name, name)
        if known in own["_values"]:
            setattr(self, known, own["_defaults"][known])
        elif known not in own["_fixed"]:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = self.__dict__
        return sorted({*own, *own["_values"], *own["_aliases"], *own["_fixed"]})

    def patch(self, changes=None, value=None, **more):
        """A context, or decorator, in which settings have other values.

        Args:
            changes: a dict of settings, or the name of one whose value follows.
            more: settings by name.

        Example:
            >>> from taeda._dynamo import config
            >>> with config.patch(recompile_limit=2):
            ...     config.recompile_limit
            2
        """
        if isinstance(changes, str):
            changes = {changes: value}
        return _Patch(self, {**(changes or {}), **more})

    def get_config_copy(self) -> dict:
        """The settings as a dict."""
        return dict(self.__dict__["_values"])

    def load_config(self, values: dict) -> None:
        """Sets what `get_config_copy` returned."""
        for name, value in values.items():
            setattr(self, name, value)


class Together(collections.abc.MutableMapping):
    """A module's own settings, and some of another's.

    Args:
        own: the settings that it has alone.
        home: the other module, which is imported at the first use.
        names: of the other's settings.
    """

    def __init__(self, own: dict, home: str, names: str) -> None:
        self._own, self._home, self._names = own, home, names.split()

    def _of(self, name: str) -> dict:
        if name in self._own:
            return self._own
        if name in self._names:
            return vars(importlib.import_module(self._home))["_values"]
        raise KeyError(name)

    def __getitem__(self, name: str):
        return self._of(name)[name]

    def __setitem__(self, name: str, value) -> None:
        self._of(name)[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name}: settings are not deleted")

    def __iter__(self):
        return iter([*self._own, *self._names])

    def __len__(self) -> int:
        return len(self._own) + len(self._names)


class _Patch(contextlib.ContextDecorator):
    def __init__(self, settings: Settings, changes: dict) -> None:
        self._settings, self._changes = settings, changes
        self._before: list[dict] = []

    def _recreate_cm(self):
        return _Patch(self._settings, self._changes)

    def __enter__(self) -> None:
        self._before.append({n: getattr(self._settings, n) for n in self._changes})
        for name, value in self._changes.items():
            setattr(self._settings, name, value)

    def __exit__(self, *error) -> None:
        for name, value in self._before.pop().items():
            setattr(self._settings, name, value)


@functools.cache
def _say_once(text: str) -> None:
    warnings.warn(text, stacklevel=5)


def _say_fixed(settings: Settings, name: str, value) -> None:
    fixed = settings.__dict__["_fixed"][name]
    if value != fixed:
        _say_once(
            f"{settings.__name__}.{name} is always {fixed!r} here: {value!r}"
            " changes nothing"
        )


def settings_module(module, values, changed, aliases=None, fixed=None) -> None:
    """Makes a module one of settings.

    Args:
        module: as it is in `sys.modules`.
        values: a mapping of the settings to their defaults, which give their types.
        changed: called with the name and value of what was set.
        aliases: other names of settings.
        fixed: names of PyTorch's that have one value here; others are warned of.
    """
    own = vars(module)
    own.update(_values=values, _defaults=dict(values), _changed=changed)
    own.update(_aliases=aliases or {}, _fixed=fixed or {})
    module.__class__ = Settings
