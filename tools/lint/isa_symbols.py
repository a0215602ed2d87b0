#!/usr/bin/env python3
"""No AVX code behind a name that baseline code calls.

  isa_symbols.py BUILD_FOLDER

An inline function that is not inlined becomes a weak symbol in every object that uses
it, and the linker keeps the first. If that one was compiled for AVX-512, older
processors die in what looks like baseline code. So each weak function of an AVX object
must carry the level in its name, or be defined by a baseline object that comes earlier
on the link line. What is reported is best made `static`, or put into the namespace of
the ISA level.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

LEVEL = re.compile(r"(?:kernels_|\.)(avx2|avx512)(?:\.dir/|\.cpp\.o$)")


def link_inputs(build: pathlib.Path, library: str) -> list[str]:
    """The objects of a library in the order in which the linker sees them."""
    query = subprocess.run(
        ["ninja", "-C", str(build), "-t", "query", library],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    inputs = query.split("outputs:")[0]
    return list(dict.fromkeys(re.findall(r"^    (\S+\.o)$", inputs, re.M)))


def functions_of(build: pathlib.Path, objects: list[str]) -> dict[str, dict[str, str]]:
    """What each object defines: function symbol to nm's letter, W (weak) or T."""
    found: dict[str, dict[str, str]] = {name: {} for name in objects}
    listed = subprocess.run(
        ["nm", "-A", "--defined-only", *objects],
        cwd=build,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in listed.splitlines():
        place, _, rest = line.partition(":")
        kind, symbol = rest.split()[-2:]
        if kind in "WT":
            found[place][symbol] = kind
    return found


def main() -> int:
    """Prints each exposed function; 1 when there is one."""
    build = pathlib.Path(sys.argv[1])
    objects = link_inputs(build, "lib/libtaeda.so")
    functions = functions_of(build, objects)
    seen: set[str] = set()
    errors = []
    for name in objects:
        for symbol, kind in sorted(functions[name].items()):
            exposed = kind == "W" and symbol not in seen and "avx" not in symbol
            if exposed and LEVEL.search(name):
                errors.append(f"{name}: {symbol}")
        seen |= functions[name].keys()
    for line in errors:
        print(line)
    print(f"isa_symbols: {len(objects)} objects, {len(errors)} errors")
    return int(bool(errors) or not objects)


if __name__ == "__main__":
    sys.exit(main())
