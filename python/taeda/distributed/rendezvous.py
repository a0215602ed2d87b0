"""How ranks find each other; the module can be called like its function.

`taeda.distributed.rendezvous` is a function, until a program imports this module, which
then has that name in the package.
"""

from __future__ import annotations

import sys
from types import ModuleType

from ._rendezvous import register_rendezvous_handler, rendezvous

__all__ = ["register_rendezvous_handler", "rendezvous"]


class _Callable(ModuleType):
    def __call__(self, *args, **kwargs):
        return rendezvous(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
