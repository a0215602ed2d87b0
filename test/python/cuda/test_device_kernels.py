"""Kernels on emulated devices; what they had compiled goes through NVRTC too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emulated import run
from nvrtc import compile_source

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("device_kernels.py", 28),
        ("device_layers.py", 15),
        ("device_pooling.py", 10),
        ("device_scans.py", 20),
        ("device_indexing.py", 10),
    ],
)
def test_on_emulated_devices(name: str, least: int, tmp_path: Path) -> None:
    run(name, TAEDA_EMULATOR_TEXTS=str(tmp_path))
    refused_by_nvrtc(tmp_path, least)


def refused_by_nvrtc(folder: Path, least: int) -> None:
    """Each kernel that sees all arguments, for one set of dtypes and one device."""
    texts = {}
    for path in sorted(folder.glob("*.cu")):
        text = path.read_text()
        if "struct Given" in text:
            texts.setdefault(re.sub(r"Elements<.*> ", "", text), text)
    assert len(texts) > least
    refused = []
    for i, text in enumerate(texts.values()):
        architecture = ARCHITECTURES[i % len(ARCHITECTURES)]
        if log := compile_source("kernel.cu", text, architecture):
            refused.append(log[:2000])
    assert not refused, "\n".join(refused)
