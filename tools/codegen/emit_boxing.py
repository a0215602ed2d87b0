"""Instantiates the adapters of boxed calls and of rules, once per C++ signature."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Operator, shard_of, symbolic_rule
from .writer import Output

BOXING_SHARDS = 3
SYMBOLIC_SHARDS = 1


def emit(operators: Iterable[Operator], out: Output) -> None:
    """Shards by a hash of the signature: a known signature rebuilds nothing."""
    shards: list[set[str]] = [set() for _ in range(BOXING_SHARDS)]
    for op in operators:
        shards[shard_of(op.signature, BOXING_SHARDS)].add(op.signature)
    _emit_rules(operators, out)
    for i, signatures in enumerate(shards):
        lines = ["#include <taeda/aten/core/observed_boxing.h>", ""]
        lines += ["namespace taeda {", "namespace ops {"]
        lines += [f"using Boxing{n} = {s};" for n, s in enumerate(sorted(signatures))]
        lines += ["}  // namespace ops"]
        lines += [
            f"template struct Boxing<ops::Boxing{n}>;" for n in range(len(signatures))
        ]
        lines += ["namespace observe {", f"std::vector<Adapter> adapters_{i}() {{"]
        each = [f"adapter<ops::Boxing{n}>()" for n in range(len(signatures))]
        lines += [f"  return {{{', '.join(each)}}};", "}"]
        lines += _join_adapters() if i == 0 else []
        lines += ["}  // namespace observe", "}  // namespace taeda", ""]
        out.write(f"ops/boxing_{i}.cpp", "\n".join(lines))


def _join_adapters() -> list[str]:
    """`observe::all_adapters`, over the shards."""
    calls = [f"adapters_{i}()" for i in range(BOXING_SHARDS)]
    lines = [f"std::vector<Adapter> {call};" for call in calls[1:]]
    lines += ["std::vector<Adapter> all_adapters() {", "  std::vector<Adapter> out;"]
    for call in calls:
        lines.append(f"  for (const Adapter& a : {call}) out.push_back(a);")
    return [*lines, "  return out;", "}"]


def _emit_rules(operators: Iterable[Operator], out: Output) -> None:
    """What calls the rules over SymInt: seldom run, so built to be small."""
    shards: list[set[str]] = [set() for _ in range(SYMBOLIC_SHARDS)]
    for op in operators:
        rule = symbolic_rule(op)
        if rule is not None:
            shards[shard_of(rule[1], SYMBOLIC_SHARDS)].add(rule[1])
    for i, signatures in enumerate(shards):
        lines = ["#include <taeda/aten/iter/symbolic_caller.h>", ""]
        lines += ["namespace taeda {", "namespace native {"]
        lines += [f"using Rule{n} = {s};" for n, s in enumerate(sorted(signatures))]
        lines += ["}  // namespace native"]
        lines += [
            f"template struct SymbolicCaller<native::Rule{n}>;"
            for n in range(len(signatures))
        ]
        lines += ["}  // namespace taeda", ""]
        out.write(f"ops/symbolic_{i}.cpp", "\n".join(lines))
