"""Generates everything that follows from the operator records.

python tools/codegen/main.py --records aten/ops --out build/gen [--list-outputs]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.codegen import (
    emit_api,
    emit_autograd,
    emit_boxing,
    emit_cuda,
    emit_docs,
    emit_expr,
    emit_kernels,
    emit_linear,
    emit_member_docs,
    emit_ops,
    emit_package_stubs,
    emit_python,
    emit_stubs,
    emit_symbolic,
)
from tools.codegen.errors import CodegenError
from tools.codegen.model import load_operators
from tools.codegen.writer import Output

EMITTERS = (
    emit_ops,
    emit_kernels,
    emit_expr,
    emit_autograd,
    emit_boxing,
    emit_symbolic,
    emit_linear,
    emit_python,
    emit_member_docs,
    emit_stubs,
    emit_package_stubs,
    emit_docs,
    emit_api,
    emit_cuda,
)


def generate(records: Path, folder: Path) -> Output:
    """All generated files of a folder of records, not yet written."""
    operators = load_operators(records)
    out = Output(folder)
    for emitter in EMITTERS:
        emitter.emit(operators, out)
    return out


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints record errors as file:line: message and returns 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--list-outputs", action="store_true")
    options = parser.parse_args(arguments)
    try:
        out = generate(options.records, options.out)
    except CodegenError as error:
        print(error, file=sys.stderr)
        return 1
    if options.list_outputs:
        print("\n".join(sorted(out.files)))
        return 0
    changed = out.flush()
    print(f"codegen: {len(out.files)} files, {changed} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
