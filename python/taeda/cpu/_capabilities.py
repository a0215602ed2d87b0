"""What the processor is and can, as Linux tells it."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from types import MappingProxyType

__all__ = ["capabilities"]

# Instruction sets of x86 -> their flag in /proc/cpuinfo, where it has another name.
_X86 = {
    name: name
    for name in (
        "sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 f16c fma4 bmi1 bmi2 popcnt aes"
        " clflush clflushopt clwb avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ne_convert"
        " avx512_bf16 avx512_fp16 avx512_vnni avx512_vbmi2 avx512_bitalg"
        " avx512_vpopcntdq avx512_4vnniw avx512_4fmaps avx512_vp2intersect amx_bf16"
        " amx_tile amx_int8 amx_fp16"
    ).split()
} | {
    "sse3": "pni",
    "fma3": "fma",
    "lzcnt": "abm",
    "sha": "sha_ni",
    "avx10_1": "avx10.1",
    "avx10_2": "avx10.2",
    **{
        f"avx512_{part}": f"avx512{part}"
        for part in ("f", "bw", "cd", "dq", "vl", "vbmi", "ifma")
    },
}
_X86["bmi"] = _X86.pop("bmi1")
# The same of Arm.
_ARM = {
    "neon": "asimd",
    "sve": "sve",
    "sve2": "sve2",
    "bf16": "bf16",
    "fp16_arith": "asimdhp",
    "dot": "asimddp",
    "i8mm": "i8mm",
    "rdm": "asimdrdm",
}


def _cpuinfo() -> tuple[dict[str, str], int, int]:
    """The first processor's fields, and the numbers of sockets and of cores."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return {}, 1, os.cpu_count() or 1
    first: dict[str, str] = {}
    sockets, cores = set(), set()
    for block in text.split("\n\n"):
        lines = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in lines}
        first = first or fields
        if "processor" in fields:
            socket = fields.get("physical id", "0")
            sockets.add(socket)
            cores.add((socket, fields.get("core id", fields["processor"])))
    return first, len(sockets) or 1, len(cores) or os.cpu_count() or 1


def _cache_sizes() -> dict[str, int]:
    found = {}
    folder = "/sys/devices/system/cpu/cpu0/cache"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for index in (name for name in names if name.startswith("index")):
        parts = []
        for name in ("level", "type", "size"):
            with open(f"{folder}/{index}/{name}", encoding="utf-8") as file:
                parts.append(file.read().strip())
        level, kind, size = parts
        if kind == "Instruction" or level not in ("1", "2"):
            continue
        bytes_ = int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)
        found["l1d_cache_size" if level == "1" else "l2_cache_size"] = bytes_
    return found


def _short(model: str) -> str:
    """A processor's name without trade marks, clock rate and words that say nothing."""
    model = re.sub(r"\((R|TM|tm)\)|@.*|\b(CPU|Processor|\d+-Core)\b", " ", model)
    return " ".join(model.split())


@cache
def capabilities() -> MappingProxyType:
    """See `taeda.cpu.get_capabilities`."""
    fields, sockets, cores = _cpuinfo()
    machine = platform.machine()
    have = set(fields.get("flags", fields.get("Features", "")).split())
    sets = _ARM if machine in ("aarch64", "arm64") else _X86
    found: dict = {name: flag in have for name, flag in sets.items()}
    found |= _cache_sizes()
    found |= {
        "architecture": machine,
        "cpu_name": _short(fields.get("model name", platform.processor())),
        "num_logical_cores": os.cpu_count() or 1,
        "num_physical_cores": cores,
        "num_sockets": sockets,
    }
    return MappingProxyType(found)
