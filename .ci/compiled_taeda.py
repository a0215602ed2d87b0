"""The library with each module that a program calls compiled, as one graph.

A judge that is given this name instead of the library's (`--lib compiled_taeda`, with
this folder on the path) compares compiled modules with the reference. With
TAEDA_BLOCKING=1 calls wait for kernels: which ones ran then never depends on time.
"""

import os
import sys

import taeda

_call = taeda.nn.Module.__call__
_options = {"blocking": True} if os.environ.get("TAEDA_BLOCKING") else None


def _call_compiled(self, *args, **kwargs):
    if self._compiled_call_impl is None and not taeda.compiler.is_compiling():
        self.compile(fullgraph=True, options=_options)
    return _call(self, *args, **kwargs)


taeda.nn.Module.__call__ = _call_compiled
sys.modules[__name__] = taeda
