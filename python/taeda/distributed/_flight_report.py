"""One text of what several ranks told: who is late, where all are, what differs."""

from __future__ import annotations

from typing import Any

__all__ = ["explain"]

_MESSAGES = ("send", "recv")
_REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
# Messages under way that are told of a rank.
_MOST = 3


class _Rank:
    """Where a rank stands in a group, of its last calls."""

    def __init__(self, told: dict[str, Any], group: str) -> None:
        self.line: str = told["line"]
        calls = told["groups"].get(group, [])
        messages = [c for c in calls if c["collective"] in _MESSAGES]
        self.waits = [c for c in messages if c["state"] == "started"]
        self.calls = {
            c["collective_seq_id"]: c for c in calls if c["collective"] not in _MESSAGES
        }
        open_ = [n for n, c in self.calls.items() if c["state"] != "completed"]
        self.pending = min(open_, default=None)
        self.last = max(self.calls, default=0)

    @property
    def position(self) -> float:
        """Ranks behind others have a smaller one; half a step is between two calls."""
        return self.last + 0.5 if self.pending is None else self.pending

    def stands(self) -> str:
        """What it has done, or is in."""
        if self.pending is not None:
            call = self.calls[self.pending]
            text = f"in {_named(call)}, called at {call['caller'] or 'no line'}"
        elif self.calls:
            call = self.calls[self.last]
            text = f"behind {_named(call)}, called at {call['caller'] or 'no line'}"
        else:
            text = "before its first collective"
        for wait in self.waits[:_MOST]:
            way = "to" if wait["collective"] == "send" else "from"
            peer = wait["peer"] if wait["peer"] >= 0 else "any"
            text += f"; in {wait['collective']} {way} rank {peer} at {wait['caller']}"
        return text


def _asked(call: dict[str, Any]) -> str:
    """What a call asks for."""
    name = call["collective"]
    if name == "barrier":
        return name
    text = f"{name} of {call['dtype']}"
    if call["sizes"] is not None:
        text += f" {call['sizes']}"
    if name in _REDUCTIONS:
        text += f", {call['op']}"
    return text if call["root"] < 0 else f"{text}, root {call['root']}"


def _named(call: dict[str, Any]) -> str:
    return f"#{call['collective_seq_id']} {_asked(call)}"


def _compared(call: dict[str, Any]) -> str:
    """What ranks have to agree on; parts of an exchange may be of any size."""
    if call["collective"] == "all_to_all":
        return f"all_to_all of {call['dtype']}"
    return _asked(call)


def _by_text(texts: dict[int, str]) -> list[tuple[str, list[int]]]:
    """Each text, and the ranks whose it is."""
    found: dict[str, list[int]] = {}
    for rank, text in texts.items():
        found.setdefault(text, []).append(rank)
    return list(found.items())


def _listed(ranks: list[int]) -> str:
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{word} {', '.join(map(str, ranks))}"


def _differences(ranks: dict[int, _Rank]) -> list[str]:
    """The first collective that ranks do not agree on."""
    numbers = sorted({n for rank in ranks.values() for n in rank.calls})
    for number in numbers:
        there = {
            r: rank.calls[number] for r, rank in ranks.items() if number in rank.calls
        }
        found = _by_text({r: _compared(call) for r, call in there.items()})
        if len(found) > 1:
            parts = "; ".join(f"{_listed(who)} {what}" for what, who in found)
            return [f"ranks disagree on #{number}: {parts}"]
    return []


def _places(ranks: dict[int, _Rank]) -> list[str]:
    """Where the ranks stand, those that are behind first."""
    lines = []
    positions = sorted({rank.position for rank in ranks.values()})
    for position in positions:
        late = len(positions) > 1 and position == positions[0]
        here = {r: rank for r, rank in ranks.items() if rank.position == position}
        texts = {
            r: f"{rank.stands()}; its program is at {rank.line}"
            for r, rank in here.items()
        }
        for text, who in _by_text(texts):
            lines.append(f"{_listed(who)}{' late' if late else ''}: {text}")
    return lines


def explain(
    group: str, members: list[int], by: int, answers: dict[int, dict[str, Any]]
) -> str:
    """The report of a group.

    Args:
        group: its name.
        members: the global ranks, in the group's order.
        by: the global rank that gathered.
        answers: what ranks told, by global rank.
    """
    place = {member: i for i, member in enumerate(members)}
    ranks = {place[m]: _Rank(told, group) for m, told in sorted(answers.items())}
    silent = [i for i in range(len(members)) if i not in ranks]
    lines = [*_places(ranks), *_differences(ranks)]
    if silent:
        lines.append(
            f"{_listed(silent)}: no answer (ended, stopped, cut off, or Python's lock "
            "is held)"
        )
    numbers = "" if members == list(range(len(members))) else f", ranks {members}"
    head = f"flight record of group {group!r}{numbers}, gathered by rank {place[by]}:"
    return "\n  ".join([head, *lines])
