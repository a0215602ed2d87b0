"""Attention on emulated devices, and by NVRTC for all architectures."""

from __future__ import annotations

import pytest
from emulated import run
from nvrtc import compile_source
from test_device_kernels import ARCHITECTURES

# Function and header.
KERNELS = {
    "attention_forward": "attention",
    "attention_back_queries": "attention_backward",
    "attention_back_keys": "attention_backward",
}
# Masks, dropout, and sequences behind one another.
CASES = (("NoMask", 0, 0), ("float", 1, 0), ("NoMask", 1, 1))


@pytest.mark.parametrize("share", range(4))
def test_on_emulated_devices(share: int) -> None:
    run("device_attention.py", (share, 4))


@pytest.mark.parametrize("share", range(2))
def test_sequences_on_emulated_devices(share: int) -> None:
    run("device_sequences.py", (share, 2))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stored", ["Half", "BFloat16", "float"])
def test_texts_compile(stored: str, architecture: str) -> None:
    """All kernels of one dtype, in each of the cases."""
    includes = {f"#include <taeda/aten/native/cuda/{h}.cuh>" for h in KERNELS.values()}
    bodies = [f"attention_join<{stored}>(call);"]
    for function in KERNELS:
        which = ", 3" if function.endswith("back_keys") else ""
        for mask, *options in CASES:
            switches = ", ".join(map(str, options))
            arguments = f"{stored}, 64, 64, 32, {mask}, {switches}{which}"
            bodies.append(f"{function}<{arguments}>(call);")
    calls = [
        f'extern "C" __launch_bounds__(128) __global__ void k{i}('
        f"const __grid_constant__ AttentionCall call) {{ {body} }}"
        for i, body in enumerate(bodies)
    ]
    text = "\n".join([*sorted(includes), "namespace taeda {", *calls, "}"])
    assert compile_source("attention.cu", text, architecture) == ""
