"""Builds the toy device and makes it `taeda.toy`."""

from __future__ import annotations

import pathlib
import types

import taeda
from taeda.utils.cpp_extension import load

HERE = pathlib.Path(__file__).resolve().parent


def build():
    """The extension, which registers the device when it is loaded."""
    sources = [str(HERE / f"{name}.cpp") for name in ("memory", "kernels", "random")]
    return load("toy_device_native", sources, extra_cflags=["-O1"])


def module(native) -> types.ModuleType:
    """Functions of the device, under the names that the package looks for."""
    toy = types.ModuleType("taeda.toy")
    device = taeda.accelerator

    def default_generator(index=None):
        index = device.current_device_index() if index is None else index
        index = taeda.device(index).index if not isinstance(index, int) else index
        return taeda._cuda.program_generator(index or 0)

    def manual_seed_all(seed: int) -> None:
        for index in range(device.device_count()):
            default_generator(index).manual_seed(seed)

    toy.native = native
    toy.is_available = lambda: True
    toy.device_count = device.device_count
    toy.current_device = device.current_device_index
    toy.manual_seed_all = manual_seed_all
    toy._is_in_bad_fork = lambda: False
    toy.get_rng_state = lambda d=None: default_generator(d).get_state()
    toy.set_rng_state = lambda state, d=None: default_generator(d).set_state(state)
    toy.get_amp_supported_dtype = lambda: [taeda.float16, taeda.bfloat16]
    toy.default_generator = default_generator
    return toy


def register(native):
    """Names the device, gives it its module and classes their methods."""
    taeda.utils.rename_privateuse1_backend("toy")
    taeda._register_device_module("toy", module(native))
    taeda.utils.generate_methods_for_privateuse1_backend(
        for_storage=True, unsupported_dtype=[taeda.complex128]
    )
    return taeda.toy
