"""Choices among CUDA's libraries, and their caches.

The preferred libraries are the process's; each is one value, written whole.
"""

from __future__ import annotations

from taeda._choice import Choice

__all__ = [
    "blas_workspace_size",
    "cuFFTPlanCache",
    "cuFFTPlanCacheAttrContextProp",
    "cuFFTPlanCacheManager",
    "cublas_workspace_size",
    "cublaslt_workspace_size",
    "cufft_plan_cache",
    "preferred_blas_library",
    "preferred_linalg_library",
    "preferred_rocm_fa_library",
]


class _BlasBackend(Choice):
    """A library of products."""

    __slots__ = ()
    _values = {"Default": 0, "Cublas": 1, "Cublaslt": 2, "Ck": 3}


class _LinalgBackend(Choice):
    """A library of factorizations."""

    __slots__ = ()
    _values = {"Default": 0, "Cusolver": 1, "Magma": 2}


class _ROCmFABackend(Choice):
    """A library of attention on AMD's GPUs."""

    __slots__ = ()
    _values = {"Default": 0, "AOTriton": 1, "Ck": 2}


def _preference(name: str, kind: type, first, words: dict, absent, tell=None):
    """The function that says and changes a preferred library.

    Args:
        name: of the function.
        kind: the class of the choices.
        first: what is preferred at the start.
        words: a program's word -> the choice.
        absent: called: a choice that cannot be made -> the library that is missing.
        tell: called with a new choice, for those whose kernels ask.
    """
    chosen = [first]

    def preferred(backend=None):
        if backend is None:
            return chosen[0]
        if isinstance(backend, str):
            if backend not in words:
                raise RuntimeError(
                    f"Unknown input value. Choose from: {', '.join(words)}."
                )
            backend = words[backend]
        elif not isinstance(backend, kind):
            raise RuntimeError(f"Unknown input value type: {type(backend).__name__}")
        missing = absent().get(backend)
        if missing is not None:
            raise RuntimeError(
                f"Cannot set preferred backend to {missing} if PyTorch has not "
                f"been compiled with {missing}."
            )
        if tell is not None:
            tell(backend)
        chosen[0] = backend
        return backend

    preferred.__name__ = preferred.__qualname__ = name
    preferred.__doc__ = (
        "The library that a GPU is to prefer; with an argument, after setting it.\n\n"
        f"Args:\n    backend: {', '.join(words)}; None asks.\n\nRaises:\n"
        "    RuntimeError: none of these, or one that the build does not have."
    )
    return preferred


preferred_blas_library = _preference(
    "preferred_blas_library",
    _BlasBackend,
    _BlasBackend.Cublas,
    {
        "default": _BlasBackend.Cublas,
        "cublas": _BlasBackend.Cublas,
        "hipblas": _BlasBackend.Cublas,
        "cublaslt": _BlasBackend.Cublaslt,
        "hipblaslt": _BlasBackend.Cublaslt,
        "ck": _BlasBackend.Ck,
    },
    lambda: {_BlasBackend.Cublaslt: "cuBLASLt"},
)


def _absent_linalg() -> dict:
    """There is no MAGMA, and without a GPU nothing that would open cuSOLVER."""
    from taeda.cuda import is_available

    absent = {_LinalgBackend.Magma: "MAGMA"}
    if not is_available():
        absent[_LinalgBackend.Cusolver] = "cuSOLVER"
    return absent


def _tell_linalg(backend: _LinalgBackend) -> None:
    from taeda.cuda import is_available

    if is_available():
        from taeda.cuda._devices import _driver

        _driver().set_linalg_library(int(backend))


preferred_linalg_library = _preference(
    "preferred_linalg_library",
    _LinalgBackend,
    _LinalgBackend.Default,
    {
        "default": _LinalgBackend.Default,
        "cusolver": _LinalgBackend.Cusolver,
        "magma": _LinalgBackend.Magma,
    },
    _absent_linalg,
    _tell_linalg,
)
preferred_rocm_fa_library = _preference(
    "preferred_rocm_fa_library",
    _ROCmFABackend,
    _ROCmFABackend.Default,
    {
        "default": _ROCmFABackend.Default,
        "aotriton": _ROCmFABackend.AOTriton,
        "ck": _ROCmFABackend.Ck,
    },
    dict,
)


def _no_workspace(name: str) -> None:
    from taeda.cuda._devices import _driver

    _driver()
    raise NotImplementedError(f"backends.cuda.{name}: cuBLAS is not used yet")


def blas_workspace_size(size: int | None = None, backend=None) -> int:
    """Bytes that a product may use beside its arguments; sets them where one is given.

    Raises:
        AssertionError: there is no GPU.
        NotImplementedError: there is one; products on it do not use cuBLAS.
    """
    _no_workspace("blas_workspace_size")


def cublas_workspace_size(size: int | None = None) -> int:
    """The same for cuBLAS."""
    _no_workspace("cublas_workspace_size")


def cublaslt_workspace_size(size: int | None = None) -> int:
    """The same for cuBLASLt."""
    _no_workspace("cublaslt_workspace_size")


# Plans of cuFFT -----------------------------------------------------------------


class cuFFTPlanCacheAttrContextProp:
    """An attribute that two functions of a device's number read and write.

    Args:
        getter: called with the number.
        setter: called with the number and a value; or a text, the refusal.
    """

    def __init__(self, getter, setter) -> None:
        self._functions = getter, setter

    def __get__(self, obj, objtype):
        read, _ = self._functions
        return self if obj is None else read(obj.device_index)

    def __set__(self, obj, val) -> None:
        _, write = self._functions
        if not callable(write):
            raise RuntimeError(str(write))
        write(obj.device_index, val)


def _plans(name: str):
    """A function of a device's number, and what else it takes."""

    def call(*args):
        from taeda.cuda._devices import _driver, device_count

        if device_count() == 0:
            raise RuntimeError(
                "Cannot access cuFFT plan cache without ATen_cuda library: there is no "
                "GPU"
            )
        return getattr(_driver(), name)(*args)

    return call


class cuFFTPlanCache:
    """The plans of Fourier transforms that a GPU keeps.

    size: how many there are. max_size: how many there may be; 4096 at first. Those that
    were used longest ago are given up first.
    """

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index

    size = cuFFTPlanCacheAttrContextProp(
        _plans("fourier_plans"),
        ".size is a read-only property showing the number of plans",
    )
    max_size = cuFFTPlanCacheAttrContextProp(
        _plans("most_fourier_plans"), _plans("set_most_fourier_plans")
    )

    def clear(self) -> None:
        """Give the plans up."""
        _plans("clear_fourier_plans")(self.device_index)


class cuFFTPlanCacheManager:
    """The plans of all GPUs by number; its attributes are those of the current one."""

    def __getitem__(self, device) -> cuFFTPlanCache:
        from taeda.cuda._devices import device_count, index_of

        index, count = index_of(device), device_count()
        if not 0 <= index < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got "
                f"device with index {index}"
            )
        return cuFFTPlanCache(index)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        from taeda.cuda import current_device

        return getattr(self[current_device()], name)

    def __setattr__(self, name: str, value) -> None:
        from taeda.cuda import current_device

        setattr(self[current_device()], name, value)


cufft_plan_cache = cuFFTPlanCacheManager()
