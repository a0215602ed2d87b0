"""What tests of functionalize share: a log of operators, and trees of tensors."""

from __future__ import annotations

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode

REMOVE = ("mutations", "mutations_and_views")


def writes(schema) -> bool:
    return any(a.alias_info is not None and a.alias_info.is_write for a in schema)


class Log(TorchDispatchMode):
    """Names of the operators below, and which of them write to which tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.written, self.views = [], [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        out = func(*args, **(kwargs or {}))
        if writes(func._schema.arguments):
            self.written.append((str(func), args[0]))
        self.views += func.is_view and isinstance(out, taeda.Tensor)
        return out


def close(a, b) -> bool:
    return all(
        taeda.allclose(x, y, equal_nan=True)
        for x, y in zip(flat(a), flat(b), strict=True)
    )


def flat(tree) -> list:
    return taeda.utils._pytree.tree_flatten(tree)[0]


def copies(tree):
    return taeda.utils._pytree.tree_map(lambda t: t.clone(), tree)


def state_of(module) -> dict:
    both = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {name: t.detach().clone() for name, t in both.items()}
