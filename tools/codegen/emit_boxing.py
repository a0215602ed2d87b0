"""Instantiates the boxing adapters, once per C++ signature."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator, shard_of
from .writer import Output

BOXING_SHARDS = 6


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Shards by a hash of the signature: a known signature rebuilds nothing."""
    shards: list[set[str]] = [set() for _ in range(BOXING_SHARDS)]
    for op in operators:
        shards[shard_of(op.signature, BOXING_SHARDS)].add(op.signature)
    for i, signatures in enumerate(shards):
        lines = ["#include <taeda/aten/core/boxing_impl.h>", ""]
        lines += ["namespace taeda {", "namespace ops {"]
        lines += [f"using Boxing{n} = {s};" for n, s in enumerate(sorted(signatures))]
        lines += ["}  // namespace ops"]
        lines += [
            f"template struct Boxing<ops::Boxing{n}>;" for n in range(len(signatures))
        ]
        lines += ["}  // namespace taeda", ""]
        out.write(f"ops/boxing_{i}.cpp", "\n".join(lines))
