"""The machine and what is installed on it, for bug reports.

python -m taeda.utils.collect_env
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "run"]

_PACKAGES = ("taeda", "numpy", "pybind11", "mypy", "optree", "onnx", "torch", "triton")


class SystemEnv(NamedTuple):
    """What was found; None where a program was not there to ask."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: str
    is_xnnpack_available: str
    cpu_info: str | None


def run(command: str | list[str]) -> tuple[int, str, str]:
    """(exit status, output, errors) of a program; status 127 where there is none."""
    shell = isinstance(command, str)
    try:
        done = subprocess.run(
            command, shell=shell, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return 127, "", "Command not found"
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _said(*command: str, pattern: str | None = None) -> str | None:
    status, output, _ = run(list(command))
    if status != 0:
        return None
    if pattern is None:
        return output or None
    found = re.search(pattern, output)
    return found.group(1) if found else None


def _os_name() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.platform()
    return f"{name} ({platform.machine()})"


def _packages() -> str:
    from importlib.metadata import distributions

    found = {d.metadata["Name"]: d.version for d in distributions()}
    wanted = sorted(n for n in found if n and n.lower().startswith(_PACKAGES))
    return "\n".join(f"{name}=={found[name]}" for name in wanted)


def _cudnn_version() -> str | None:
    from taeda.backends import cudnn

    version = cudnn.version()
    return None if version is None else str(version)


def get_env_info() -> SystemEnv:
    """Asks the machine, which takes a second or so."""
    import taeda

    bits = sys.maxsize.bit_length() + 1
    version = sys.version.replace("\n", " ")
    conda = _said("conda", "list") if shutil.which("conda") else None
    return SystemEnv(
        torch_version=taeda.__version__,
        is_debug_build=str(False),
        cuda_compiled_version="None",
        gcc_version=_said("gcc", "--version", pattern=r"gcc (.*)"),
        clang_version=_said("clang", "--version", pattern=r"clang version (.*)"),
        cmake_version=_said("cmake", "--version", pattern=r"cmake (.*)"),
        os=_os_name(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{version} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(taeda.cuda.is_available()),
        cuda_runtime_version=_said("nvcc", "--version", pattern=r"release .+ V(.*)"),
        cuda_module_loading="N/A",
        nvidia_driver_version=_said("nvidia-smi", pattern=r"Driver Version: (.*?) "),
        nvidia_gpu_models=_said("nvidia-smi", "-L"),
        cudnn_version=_cudnn_version(),
        is_xpu_available=str(taeda.xpu.is_available()),
        pip_version=f"pip{sys.version_info.major}",
        pip_packages=_packages(),
        conda_packages=conda,
        hip_compiled_version="N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config="N/A",
        is_xnnpack_available=str(False),
        cpu_info=_said("lscpu") or platform.processor() or None,
    )


_SHOWN = (  # paragraphs of (what a line is called, the field)
    {
        "torch_version": "Taeda version",
        "is_debug_build": "Is debug build",
        "cuda_compiled_version": "CUDA used to build Taeda",
        "hip_compiled_version": "ROCM used to build Taeda",
    },
    {
        "os": "OS",
        "gcc_version": "GCC version",
        "clang_version": "Clang version",
        "cmake_version": "CMake version",
        "libc_version": "Libc version",
    },
    {
        "python_version": "Python version",
        "python_platform": "Python platform",
        "is_cuda_available": "Is CUDA available",
        "cuda_runtime_version": "CUDA runtime version",
        "cuda_module_loading": "CUDA_MODULE_LOADING set to",
        "nvidia_gpu_models": "GPU models and configuration",
        "nvidia_driver_version": "Nvidia driver version",
        "cudnn_version": "cuDNN version",
        "is_xpu_available": "Is XPU available",
        "hip_runtime_version": "HIP runtime version",
        "miopen_runtime_version": "MIOpen runtime version",
        "is_xnnpack_available": "Is XNNPACK available",
        "caching_allocator_config": "Caching allocator config",
    },
)


def _marked(text: str | None, mark: str) -> str:
    return "\n".join(f"[{mark}] {line}" for line in (text or "").splitlines())


def get_pretty_env_info() -> str:
    """The same as a text, in the order of PyTorch's."""
    found = get_env_info()._asdict()
    said = {k: "Could not collect" if v is None else v for k, v in found.items()}
    paragraphs = [
        "\n".join(f"{title}: {said[field]}" for field, title in rows.items())
        for rows in _SHOWN
    ]
    paragraphs.append(f"CPU:\n{said['cpu_info']}")
    listed = _marked(found["pip_packages"], found["pip_version"])
    conda = _marked(found["conda_packages"], "conda")
    paragraphs.append(f"Versions of relevant libraries:\n{listed}\n{conda}")
    return "\n\n".join(paragraphs).rstrip()


def main() -> None:
    """Prints it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
