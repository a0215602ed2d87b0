"""Kernels of whole blocks on emulated devices, and by NVRTC for all architectures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emulated import run
from nvrtc import compile_source
from test_device_kernels import ARCHITECTURES


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("device_rows.py", 4),
        ("device_optimizers.py", 4),
        ("device_sorting.py", 5),
        ("device_moves.py", 6),
        ("device_lists.py", 10),
    ],
)
def test_on_emulated_devices(name: str, least: int, tmp_path: Path) -> None:
    run(name, TAEDA_EMULATOR_TEXTS=str(tmp_path))
    texts = {}
    for path in sorted(tmp_path.glob("*.cu")):
        text = path.read_text()
        # One of each function and policy; dtypes and sizes are its arguments.
        body = text[text.find("__launch_bounds__") :]
        kernel = re.search(
            r"(?<=void )\w+(?=\(\s+const __grid_constant__ PointwiseTable)|"
            r"(?<=  )((?:rows_kernel|optimizer_step)<\w+|\w+_words<[\w ]+|\w+)",
            body,
        )
        if "__launch_bounds__" in text and kernel:
            texts.setdefault(kernel[0], text)
    assert len(texts) >= least
    for i, (called, text) in enumerate(texts.items()):
        architecture = ARCHITECTURES[i % len(ARCHITECTURES)]
        assert compile_source(f"{called}.cu", text, architecture) == ""
