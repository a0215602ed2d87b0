"""Names of the top level that exist and say that they are not implemented."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function

_FUNCTIONS = """
sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
sparse_csc_tensor sparse_csr_tensor while_loop _sample_dirichlet _standard_gamma
""".split()
__all__ = ["Event", "PyTorchFileReader", "Stream", "classes", *_FUNCTIONS]

Event = absent_class("Event")
Stream = absent_class("Stream")
PyTorchFileReader = absent_class("PyTorchFileReader")
globals().update((name, absent_function(name)) for name in _FUNCTIONS)


class _Classes:
    """Classes of compiled extensions; none can be loaded."""

    loaded_libraries: set = set()

    def __getattr__(self, name: str):
        raise AttributeError(f"classes: no namespace {name!r} is registered")


classes = _Classes()
