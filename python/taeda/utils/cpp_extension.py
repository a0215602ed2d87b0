"""Building operators and modules in C++ against this package.

`load` and `load_inline` compile when a program runs, `CppExtension` with
`BuildExtension` in a `setup.py`. Sources written for PyTorch's `<torch/extension.h>`
find headers of that name here (`docs/guides/cpp_extension.md`).
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

from taeda._lazy import attributes

from . import _extension_build as _build

__all__ = [
    "BuildExtension",  # noqa: F822  (imported on first use)
    "CUDAExtension",
    "CppExtension",
    "SyclExtension",
    "check_compiler_is_gcc",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "remove_extension_h_precompiler_headers",
    "verify_ninja_availability",
]

__getattr__ = attributes(__name__, {"BuildExtension": "._build_extension"})


def _find_cuda_home() -> str | None:
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if named:
        return named
    nvcc = shutil.which("nvcc")
    if nvcc:
        return str(Path(nvcc).resolve().parents[1])
    return "/usr/local/cuda" if os.path.exists("/usr/local/cuda") else None


CUDA_HOME = _find_cuda_home()
ROCM_HOME = CUDNN_HOME = None
IS_LINUX = sys.platform == "linux"
IS_MACOS = sys.platform == "darwin"
IS_WINDOWS = sys.platform == "win32"
IS_HIP_EXTENSION = False
MINIMUM_GCC_VERSION = (12, 0, 0)  # C++20 as the headers use it

# Names given to modules whose sources changed while the program runs: the loader
# keeps a library of one path for ever. Name -> (what it was built of, count).
_versions: dict[str, tuple[int, int]] = {}
_versions_lock = threading.Lock()


def _refuse_cuda() -> None:
    if CUDA_HOME is None:
        raise OSError(
            "CUDA_HOME environment variable is not set: extensions with CUDA sources "
            "need the CUDA toolkit"
        )
    raise NotImplementedError(
        "extensions with CUDA sources: this build of taeda has no CUDA library"
    )


def _check_sources(sources, with_cuda, with_sycl, device_type: str = "cpu") -> None:
    kinds = {os.path.splitext(source)[1] for source in sources}
    if with_cuda or device_type == "cuda" or kinds & {".cu", ".cuh"}:
        _refuse_cuda()
    if with_sycl or device_type == "xpu" or ".sycl" in kinds:
        raise NotImplementedError("extensions with SYCL sources")


def get_cxx_compiler() -> str:
    """The compiler's command: the environment's CXX, or c++."""
    return os.environ.get("CXX", "c++")


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a command is GCC's C++ compiler, by what it defines."""
    found = _defined(compiler)
    return "__GNUC__" in found and "__clang__" not in found


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a command is a compiler whose libraries fit this package's: GCC, or
    clang over GCC's libstdc++."""
    return "__GNUC__" in _defined(compiler)


def get_compiler_abi_compatibility_and_version(compiler: str):
    """(whether the compiler can build extensions, its version)."""
    from taeda.torch_version import TorchVersion

    found = _defined(compiler)
    parts = ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")
    version = tuple(int(found.get(part, 0)) for part in parts)
    good = "__clang__" in found or version >= MINIMUM_GCC_VERSION
    return bool(found) and good, TorchVersion(".".join(map(str, version)))


def _defined(compiler: str) -> dict[str, str]:
    """The macros that a compiler defines by itself; empty for what is none."""
    import shlex
    import subprocess

    command = [*shlex.split(compiler), "-dM", "-E", "-x", "c++", os.devnull]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    words = [line.split(maxsplit=2) for line in text.stdout.splitlines()]
    return {word[1]: word[2] if len(word) > 2 else "" for word in words}


def is_ninja_available() -> bool:
    """Whether the program ninja can be run. Builds here do not need it."""
    import subprocess

    try:
        subprocess.run(["ninja", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def verify_ninja_availability() -> None:
    """
    Raises:
        RuntimeError: the program ninja cannot be run.
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required: pip install ninja")


def include_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True
) -> list[str]:
    """Folders for the compiler's `-I`.

    Args:
        device_type: "cpu".
        torch_include_dirs: whether this package's own folders are among them.

    Raises:
        OSError: device_type "cuda" and no CUDA toolkit is installed.
        NotImplementedError: another device.
    """
    _check_sources((), False, False, device_type)
    return _build.include_folders() if torch_include_dirs else []


def library_paths(
    device_type: str = "cpu",
    torch_include_dirs: bool = True,
    cross_target_platform: str | None = None,
) -> list[str]:
    """Folders for the linker's `-L`; arguments and errors as for `include_paths`.

    Raises:
        NotImplementedError: `cross_target_platform` is given.

    Example:
        >>> len(taeda.utils.cpp_extension.library_paths())
        1
    """
    _check_sources((), False, False, device_type)
    if cross_target_platform is not None:
        raise NotImplementedError("library_paths: cross_target_platform")
    return [str(_build.home() / "lib")] if torch_include_dirs else []


def get_default_build_root() -> str:
    """Where `load` keeps what it builds, a folder for each name.

    TAEDA_EXTENSIONS_DIR; or the folder "taeda" in TORCH_EXTENSIONS_DIR; or in the
    user's cache.
    """
    own = os.environ.get("TAEDA_EXTENSIONS_DIR")
    if own:
        return os.path.realpath(own)
    shared = os.environ.get("TORCH_EXTENSIONS_DIR")
    if shared:
        return os.path.realpath(os.path.join(shared, "taeda"))
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.realpath(os.path.join(cache, "taeda_extensions"))


def _build_directory(name: str, given: str | None) -> Path:
    if given is not None:
        if not os.path.isdir(given):
            raise RuntimeError(f"build_directory {given!r} does not exist")
        return Path(given).resolve()
    python = f"py{sys.version_info.major}{sys.version_info.minor}_cpu"
    folder = Path(get_default_build_root()) / python / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _listed(value) -> list:
    if value is None:
        return []
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


def compile_flags(name: str, given, folders) -> list[str]:
    """What each source of a module is compiled with."""
    import sysconfig

    flags = [f"-DTORCH_EXTENSION_NAME={name}", "-DTAEDA_EXTENSION", "-fPIC"]
    python = sysconfig.get_path("include")
    paths = [*include_paths(), _build.pybind11_include(), python]
    flags += [f"-I{Path(path).resolve()}" for path in _listed(folders)]
    flags += [f"-I{path}" for path in paths]
    given = _listed(given)
    if not any(flag.startswith("-std=") for flag in given):
        flags.append("-std=c++20")
    return [*flags, *given]


def link_flags(given) -> list[str]:
    """What a module or a program is linked with."""
    paths = library_paths()
    found = [f"-L{path}" for path in paths] + ["-ltaeda"]
    return [*_listed(given), *found, *(f"-Wl,-rpath,{path}" for path in paths)]


def _versioned(name: str, state: int) -> str:
    """The name of what is built: another one for each state of the sources."""
    with _versions_lock:
        known, count = _versions.get(name, (state, 0))
        count += known != state
        _versions[name] = (state, count)
    return f"{name}_v{count}" if count else name


def _state_of(sources, *settings) -> int:
    return hash((*(Path(s).read_bytes() for s in sources), repr(settings)))


def load(
    name: str,
    sources: str | list[str],
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
):
    """Builds C++ sources, unless an earlier call built the same, and loads the result.

    Args:
        name: the module's name; in the sources TORCH_EXTENSION_NAME stands for it.
        sources: paths of C++ files.
        extra_cflags, extra_ldflags: words for compiler and linker; C++20 unless
            the former name another standard.
        extra_cuda_cflags, extra_sycl_cflags: refused unless empty.
        extra_include_paths: further folders of headers.
        build_directory: an existing folder in place of the one that
            `get_default_build_root` tells.
        verbose: prints the commands and what they say.
        with_cuda, with_sycl: refused when true, as are sources of these kinds.
        is_python_module: whether Python can import the library; else it is loaded for
            the operators that it registers.
        is_standalone: builds a program instead.
        keep_intermediates: False builds in a folder that is removed after loading.

    Returns:
        The module; the library's path if it is none; the program's path.

    Raises:
        RuntimeError: a build failed (with the compiler's text), or there is no
            pybind11.
        OSError, NotImplementedError: CUDA or SYCL are asked for.
    """
    paths = [os.path.abspath(source) for source in _listed(sources)]
    with_cuda, with_sycl = (
        with_cuda or extra_cuda_cflags,
        with_sycl or extra_sycl_cflags,
    )
    _check_sources(paths, with_cuda, with_sycl)
    settings = (extra_cflags, extra_ldflags, extra_include_paths, build_directory)
    name = _versioned(name, _state_of(paths, *settings))

    def made(folder: Path):
        build = _build.Build(
            name,
            paths,
            folder,
            get_cxx_compiler(),
            compile_flags(name, extra_cflags, extra_include_paths),
            link_flags(extra_ldflags),
            is_standalone,
            verbose,
        )
        return _loaded(name, build.run(), is_python_module, is_standalone)

    if keep_intermediates or is_standalone:
        return made(_build_directory(name, build_directory))
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return made(Path(folder))


def _loaded(name: str, path: Path, is_module: bool, is_program: bool):
    if is_program:
        return str(path)
    if not is_module:
        import taeda

        taeda.ops.load_library(str(path))
        return str(path)
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_inline(
    name: str,
    cpp_sources: str | list[str],
    cuda_sources=None,
    sycl_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
):
    """`load` for sources that are texts; arguments that both have mean the same.

    Args:
        cpp_sources: texts, which are joined.
        cuda_sources, sycl_sources: refused unless empty.
        functions: functions of the sources that the module shall have: a name, names,
            or a dict of names and docstrings.
        with_pytorch_error_handling: whether errors of the library keep their type in
            Python; else all are RuntimeErrors.
        use_pch: refused.
        no_implicit_headers: leaves `#include <torch/extension.h>` out.

    Raises:
        NotImplementedError: `use_pch`.
    """
    if use_pch:
        raise NotImplementedError("load_inline: use_pch")
    with_cuda, with_sycl = with_cuda or cuda_sources, with_sycl or sycl_sources
    _check_sources((), with_cuda, with_sycl)
    parts = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    if not with_pytorch_error_handling:
        parts.insert(0, "#define TAEDA_PLAIN_ERRORS")
    parts += _listed(cpp_sources)
    if functions is not None:
        parts.append(_bindings(functions))
    folder = _build_directory(name, build_directory)
    source = folder / "main.cpp"
    text = "\n".join(parts) + "\n"
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return load(
        name,
        [str(source)],
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_sycl_cflags=extra_sycl_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=str(folder),
        verbose=verbose,
        is_python_module=is_python_module,
        keep_intermediates=keep_intermediates,
    )


def remove_extension_h_precompiler_headers() -> None:
    """Takes the precompiled `torch/extension.h` away that `use_pch` makes in PyTorch.

    None is made here (`load_inline` refuses `use_pch`), so that nothing is there.
    """


def _bindings(functions) -> str:
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, dict):
        functions = {name: name for name in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, doc in functions.items():
        lines.append(f'm.def("{name}", &{name}, R"taeda({doc})taeda");')
    return "\n".join([*lines, "}"])


def CppExtension(name: str, sources, *args, **kwargs):
    """A setuptools.Extension of C++ sources that use this package.

    Args:
        name, sources, *args, **kwargs: as setuptools has them; folders and libraries
            are added to those given. `BuildExtension` builds it.
    """
    import setuptools

    kwargs["language"] = "c++"
    for key, more in (
        ("include_dirs", [*include_paths(), _build.pybind11_include()]),
        ("library_dirs", library_paths()),
        ("libraries", ["taeda"]),
    ):
        kwargs[key] = [*kwargs.get(key, []), *more]
    return setuptools.Extension(name, sources, *args, **kwargs)


def CUDAExtension(name: str, sources, *args, **kwargs):
    """
    Raises:
        OSError: there is no CUDA toolkit.
        NotImplementedError: there is; this package uses none.
    """
    _refuse_cuda()


def SyclExtension(name: str, sources, *args, **kwargs):
    """
    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("SyclExtension")
