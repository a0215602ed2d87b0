"""What `import functorch.experimental` means under `as_torch`."""

from __future__ import annotations

from taeda._functorch.apis import chunk_vmap
from taeda.func import (
    functionalize,
    hessian,
    jacfwd,
    jvp,
    replace_all_batch_norm_modules_,
)

__all__ = [
    "chunk_vmap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]
