"""Where parameters are registered, and the modules that a unit manages."""

from __future__ import annotations

from typing import Any

__all__ = ["Slot", "managed_modules", "plain_name", "slots_of", "unit_of"]


class Slot:
    """A parameter by its places: (module, name) pairs, the first of which names it.

    Attributes:
        name: dotted, from the unit's module.
        parameter: what was registered when the unit was made, then this rank's part of
            it, or None where a flat parameter stands for it.
        shape: of the whole parameter.
    """

    __slots__ = ("name", "numel", "parameter", "places", "shape")

    def __init__(self, name: str, place, parameter) -> None:
        self.name, self.places, self.parameter = name, [place], parameter
        self.shape, self.numel = parameter.shape, parameter.numel()

    def registered(self):
        """What the module has now under the parameter's name."""
        module, name = self.places[0]
        found = module._parameters.get(name)
        return module.__dict__.get(name) if found is None else found

    def put(self, tensor) -> None:
        """Registers a parameter at all places, where in the order it always was."""
        for module, name in self.places:
            module.__dict__.pop(name, None)
            module._parameters[name] = tensor

    def show(self, tensor) -> None:
        """Makes a tensor an attribute that is no parameter."""
        for module, name in self.places:
            module._parameters.pop(name, None)
            module.__dict__[name] = tensor


def plain_name(name: str) -> str:
    """A name without the parts of wrappers."""
    for part in ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod"):
        name = name.replace(f"{part}.", "")
    return name


def unit_of(module) -> Any:
    """The unit whose forward pass is this module's, or None."""
    return module.__dict__.get("_fsdp_unit")


def managed_modules(roots, ignored=frozenset()):
    """(dotted name, module) of the roots and below, short of other units' modules."""
    seen = set()
    todo = [("", root) for root in reversed(roots)]
    while todo:
        path, module = todo.pop()
        if id(module) in seen or module in ignored:
            continue
        seen.add(id(module))
        yield path, module
        for name, child in reversed(module._modules.items()):
            if child is not None and unit_of(child) is None:
                todo.append((f"{path}.{name}" if path else name, child))


def slots_of(roots, ignored_modules=frozenset(), ignored=frozenset()) -> list[Slot]:
    """The parameters of a unit, each once, in the order of `named_parameters`.

    Args:
        roots: the unit's modules.
        ignored_modules: whose parameters are left out.
        ignored: ids of further parameters that are left out.
    """
    found: dict[int, Slot] = {}
    for path, module in managed_modules(roots, ignored_modules):
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in ignored:
                continue
            slot = found.get(id(parameter))
            if slot is not None:
                slot.places.append((module, name))
                continue
            full = f"{path}.{name}" if path else name
            found[id(parameter)] = Slot(full, (module, name), parameter)
    return list(found.values())
