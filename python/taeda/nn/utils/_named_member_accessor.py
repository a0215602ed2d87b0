"""A module's parameters and buffers, taken out and put back by name.

Packages that run modules with other tensors ask for these by PyTorch's private names.
A tensor is put where the old one was, registered or a plain attribute, without the
checks and hooks of an assignment.
"""

from __future__ import annotations

from collections.abc import Iterable

from taeda import Tensor

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

# Stands for a tensor that is not there; to put it somewhere deletes what is there.
_MISSING = object()


def _registry(module, name: str) -> dict | None:
    """The dictionary that holds a name; None for a plain attribute."""
    for registry in (module._parameters, module._buffers):
        if name in registry:
            return registry
    return None


def _checked_name(name: str) -> None:
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def swap_tensor(module, name: str, tensor, allow_missing: bool = False):
    """Puts a tensor in the place of one of a module's; returns what was there.

    Args:
        name: without dots.
        tensor: None where a registered name is to be empty.
        allow_missing: whether the name may be absent; a mark is returned then, which
            deletes the tensor when it is put back.

    Raises:
        KeyError: a name that no member can have.
        AttributeError: there is none of that name.
        TypeError: `tensor` or what was there is no tensor.
    """
    _checked_name(name)
    if tensor is not _MISSING and not isinstance(tensor, (Tensor, type(None))):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    registry = _registry(module, name)
    if registry is not None:
        old = registry[name]
        if tensor is _MISSING:
            del registry[name]
        else:
            registry[name] = tensor
        return old
    old = getattr(module, name, _MISSING)
    if old is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if old is not _MISSING and not isinstance(old, (Tensor, type(None))):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif old is not _MISSING:
        delattr(module, name)
    return old


def set_tensor(module, name: str, tensor) -> None:
    """`swap_tensor` of a name that may be absent, without its result."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_submodule(module, name: str, submodule):
    """Puts a module in the place of a child of that name; returns the child.

    Raises:
        KeyError: a name that no child can have, or no child has.
        TypeError: `submodule` is no module.
    """
    from taeda.nn import Module

    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if "." in name or name == "":
        raise KeyError(f"submodule name can't be {name!r}")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    old = module._modules[name]
    module._modules[name] = submodule
    return old


class NamedMemberAccessor:
    """The members of a module and of those inside it, by dotted names.

    A path that no module is at raises AttributeError, as the functions above do for
    the rest.
    """

    def __init__(self, module) -> None:
        self.module = module

    def _place(self, name: str) -> tuple:
        path, _, short = name.rpartition(".")
        return self.get_submodule(path), short

    def get_submodule(self, name: str):
        """The module at a path, this one for "".

        Raises:
            AttributeError: a part of the path is not there.
            TypeError: a part of the path is no module.
        """
        from taeda.nn import Module

        module, parts = self.module, name.split(".") if name else []
        for end, part in enumerate(parts, 1):
            inside = getattr(module, part, _MISSING)
            if inside is _MISSING:
                owner = type(module).__name__
                raise AttributeError(f"{owner} has no attribute `{part}`")
            if not isinstance(inside, Module):
                raise TypeError(
                    f"submodule `{'.'.join(parts[:end])}`: {inside} is not an instance "
                    "of torch.nn.Module"
                )
            module = inside
        return module

    def swap_submodule(self, path: str, value):
        """See the function of this name."""
        module, short = self._place(path)
        return swap_submodule(module, short, value)

    def get_tensor(self, name: str):
        """The tensor of a name; AttributeError and TypeError as `swap_tensor`."""
        module, short = self._place(name)
        found = getattr(module, short)
        if not isinstance(found, Tensor):
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value) -> None:
        """See the function of this name."""
        self.swap_tensor(name, value, allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Takes a tensor out."""
        self.swap_tensor(name, _MISSING)

    def swap_tensor(self, name: str, value, allow_missing: bool = False):
        """See the function of this name."""
        module, short = self._place(name)
        return swap_tensor(module, short, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list:
        """`get_tensor` of each."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable) -> None:
        """`set_tensor` of each; ValueError for more of one than of the other."""
        self.swap_tensors(names, values, allow_missing=True)

    def set_tensors_dict(self, named_tensors: dict) -> None:
        """`set_tensor` of each."""
        self.swap_tensors_dict(named_tensors, allow_missing=True)

    def del_tensors(self, names: Iterable[str]) -> None:
        """`del_tensor` of each."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable, allow_missing: bool = False
    ) -> list:
        """`swap_tensor` of each; ValueError for more of one than of the other."""
        pairs = zip(names, values, strict=True)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def swap_tensors_dict(
        self, named_tensors: dict, allow_missing: bool = False
    ) -> tuple[dict, list[str]]:
        """What was there, and the names of which nothing was; all or none is swapped.

        Raises:
            RuntimeError: names are absent that may not be.
        """
        before, missing = {}, []
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
        except Exception:
            self._restore(before)
            raise
        if missing and not allow_missing:
            self._restore(before)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def _restore(self, before: dict) -> None:
        for name, tensor in before.items():
            self.swap_tensor(name, tensor, allow_missing=True)

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """(names of the module that are not among these, names that it lacks)."""
        keys = set(keys)
        own = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - keys), sorted(keys - own)

    def named_parameters(self, remove_duplicate: bool = True):
        """The module's parameters with their names."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True):
        """The module's buffers with their names."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True):
        """Its parameters, then its buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True):
        """The modules inside, and itself, with their paths."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)
