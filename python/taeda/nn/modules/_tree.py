"""Walking a module tree, and what is done to every module of it."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import warn
from ..parameter import Parameter

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from .module import Module


def _members(root, table, prefix, recurse, remove_duplicate):
    """(dotted name, value) of `table` in all modules, without a second sight."""
    seen = set()
    if recurse:
        modules = root.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    else:
        modules = ((prefix, root),)
    for path, module in modules:
        dot = path + "." if path else ""
        for name, value in getattr(module, table).items():
            if value is None or id(value) in seen:
                continue
            if remove_duplicate:
                seen.add(id(value))
            yield dot + name, value


def _values(pairs):
    for _, value in pairs:
        yield value


class Tree:
    """The part of `Module` that walks the tree."""

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over all parameters, each once, in order of registration.

        Args:
            recurse: those of the modules below as well.

        Example:
            >>> sum(p.numel() for p in taeda.nn.Linear(3, 2).parameters())
            8
        """
        if type(self).named_parameters is not Tree.named_parameters:
            yield from _values(self.named_parameters(recurse=recurse))
            return
        seen, stack = set(), [self]
        while stack:
            module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            for value in module._parameters.values():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield value
            if recurse and module._modules:
                for child in reversed(module._modules.values()):
                    if child is not None:
                        stack.append(child)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over (dotted name, parameter).

        Args:
            prefix: put before every name.
            recurse: those of the modules below as well.
            remove_duplicate: a shared parameter comes under its first name only.
        """
        return _members(self, "_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over all buffers, each once."""
        return _values(self.named_buffers(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over (dotted name, buffer); arguments as `named_parameters`."""
        return _members(self, "_buffers", prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterate over the modules directly below, each once."""
        return _values(self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over (name, module) of the modules directly below."""
        seen = {None}
        for name, module in self._modules.items():
            if module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below, parents first."""
        return _values(self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo=None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over (dotted name, module); this module's name is `prefix`.

        Args:
            memo: set of modules to leave out; those visited are added.
            prefix: put before every name.
            remove_duplicate: a shared module comes under its first name only.

        Example:
            >>> net = taeda.nn.Sequential(taeda.nn.ReLU())
            >>> [name for name, _ in net.named_modules()]
            ['', '0']
        """
        memo = set() if memo is None else memo
        stack = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if module in memo:
                continue
            if type(module).named_modules is not Tree.named_modules and (
                module is not self
            ):
                yield from module.named_modules(memo, path, remove_duplicate)
                continue
            if remove_duplicate:
                memo.add(module)
            yield path, module
            if module._modules:
                dot = path + "." if path else ""
                for name, child in reversed(module._modules.items()):
                    if child is not None:
                        stack.append((dot + name, child))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path below this one; "" is this one.

        Raises:
            AttributeError: there is none, or the path leads to something else.
        """
        module = self
        for name in target.split(".") if target else ():
            module = _step(module, name)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module, strict: bool = False) -> None:
        """Put `module` at a dotted path, in place of what is there.

        Args:
            target: path below this module.
            module: the new module.
            strict: the path must already lead to a module.

        Raises:
            ValueError: the path is empty or `module` is no module.
            AttributeError: a part of the path is missing or no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            if not isinstance(_step(parent, name), Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        Raises:
            AttributeError: there is none, or it is no Parameter.
        """
        path, _, name = target.rpartition(".")
        value = _step(self.get_submodule(path), name)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path.

        Raises:
            AttributeError: there is none, or it is no buffer.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value = _step(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn(module)` for all modules below, then for this one.

        Example:
            >>> net = taeda.nn.Sequential(taeda.nn.ReLU())
            >>> _ = net.apply(lambda m: print(type(m).__name__))
            ReLU
            Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below (dropout, batch norm obey it).

        Raises:
            ValueError: `mode` is no bool.
        """
        if type(mode) is not bool:
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self._modules.values():
            if child is not None:
                child.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of every parameter."""
        for value in self.parameters():
            value.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zero.

        Args:
            set_to_none: drop; cheaper, and the next backward need not add.
        """
        if self.__dict__.get("_is_replica"):
            warn(
                "zero_grad() has no effect on a replica made by nn.DataParallel: its "
                "parameters are not leaves and collect no gradient"
            )
        for value in self.parameters():
            grad = value.grad
            if grad is not None:
                value.grad = None if set_to_none else _emptied(grad)

    def share_memory(self) -> Self:
        """Move all tensors to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def _replicate_for_data_parallel(self):
        own = self.__dict__
        cls = type(self)
        replica = cls.__new__(cls)
        tables = {name: dict(own[name]) for name in ("_buffers", "_modules")}
        replica.__dict__ = {**own, **tables, "_parameters": {}, "_is_replica": True}
        return replica


def _emptied(grad):
    """The gradient itself, of zeros and without the graph that computed it."""
    if grad.grad_fn is None:
        grad.requires_grad_(False)  # detach_ would refuse a view
    else:
        grad.detach_()
    return grad.zero_()


def _step(module, name):
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


_KINDS = {
    "device": (taeda.device, str, int),
    "dtype": (taeda.dtype, type),
    "tensor": Tensor,
    "memory_format": taeda.memory_format,
    "non_blocking": bool,
    "copy": bool,
}


def conversion(args, kwargs):
    """(device, dtype, non_blocking, memory_format) of a call of `to`."""
    names = ["device", "dtype", "non_blocking", "copy"]
    if args and isinstance(args[0], (taeda.dtype, type)):
        names = names[1:]
    elif args and isinstance(args[0], Tensor):
        names = ["tensor", *names[2:]]
    given = dict(zip(names, args, strict=False)) | kwargs
    wrong = [name for name in given if name not in _KINDS]
    for name, value in given.items():
        optional = value is None and _KINDS.get(name) is not bool
        if name in _KINDS and not (optional or isinstance(value, _KINDS[name])):
            wrong.append(f"{name}={value!r}")
    if wrong or len(given) != len(args) + len(kwargs):
        raise TypeError(
            "to() received an invalid combination of arguments: expected (device, "
            "dtype, non_blocking), (dtype, non_blocking) or (tensor, non_blocking), "
            f"got {', '.join(wrong) or 'too many'}"
        )
    if given.get("copy"):
        raise RuntimeError("Module.to: .to() does not accept copy argument")
    device, dtype = given.get("device"), given.get("dtype")
    if (like := given.get("tensor")) is not None:
        device, dtype = like.device, like.dtype
    if isinstance(dtype, type):
        dtype = taeda.empty(0, dtype=dtype).dtype
    if device is not None:
        device = taeda.device(device)
    return device, dtype, given.get("non_blocking", False), given.get("memory_format")
