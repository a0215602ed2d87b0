"""One HTML page of a recording: timeline, flame graph, memory by module, operators."""

from __future__ import annotations

import json
import os
from collections import defaultdict

from taeda.autograd._profiler_events import MEMORY, Recording

_TEMPLATE = os.path.join(os.path.dirname(__file__), "page.html")
_OPERATORS = 60  # rows of the table


class _Names:
    """Texts by number: each stands on the page once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _depths(recording: Recording) -> list[tuple]:
    """(event, depth) of calls and modules, by thread and time."""
    calls = [e for e in recording.events if e.kind != MEMORY]
    both = [*calls, *recording.modules]
    both.sort(key=lambda e: (e.thread, e.time_range.start, -e.time_range.end))
    out, around = [], []
    for event in both:
        span = event.time_range
        while around and (
            around[-1].thread != event.thread
            or around[-1].time_range.end < span.end
            or around[-1].time_range.end <= span.start
        ):
            around.pop()
        out.append((event, len(around)))
        around.append(event)
    return out


def _flame(recording: Recording, names: _Names) -> list:
    """A tree of [name, microseconds, children]: Python's frames, then events."""
    root = [names("all"), 0.0, {}]

    def descend(node: list, name: str, time: float) -> list:
        child = node[2].setdefault(name, [names(name), 0.0, {}])
        child[1] += time
        return child

    def add(event, node: list) -> None:
        time = event.cpu_time_total
        node = descend(node, event.name, time)
        for child in event.cpu_children:
            add(child, node)

    for event in recording.events:
        if event.cpu_parent is not None or event.kind == MEMORY:
            continue
        node, time = root, event.cpu_time_total
        root[1] += time
        for frame in reversed(event.stack):
            node = descend(node, frame, time)
        add(event, node)

    def listed(node: list) -> list:
        children = sorted(node[2].values(), key=lambda child: -child[1])
        return [node[0], round(node[1], 3), [listed(child) for child in children]]

    return listed(root)


def _memory(recording: Recording, names: _Names) -> tuple[list, list]:
    """Steps of [microseconds, module, its bytes from then on], and the modules.

    Memory belongs to the module whose call took it until it is given back.
    """
    owner: dict[int, str] = {}
    held: dict[str, int] = defaultdict(int)
    peak: dict[str, int] = defaultdict(int)
    steps = []
    for moment in recording.memory:
        if moment.size > 0:
            module = _module_at(recording, moment)
            owner[moment.address] = module
        else:
            module = owner.pop(moment.address, "")
        held[module] += moment.size
        peak[module] = max(peak[module], held[module])
        steps.append([round(moment.time_us, 3), names(module), held[module]])
    modules = sorted(peak, key=lambda module: -peak[module])
    return steps, [names(module) for module in modules]


def _module_at(recording: Recording, moment) -> str:
    if moment.event is not None and moment.event.module:
        return moment.event.module
    return moment.module


def _operators(recording: Recording, names: _Names) -> list:
    averages = recording.events.key_averages()
    averages.sort(key=lambda a: -a.self_cpu_time_total)
    return [
        [
            names(a.key),
            round(a.self_cpu_time_total, 3),
            round(a.cpu_time_total, 3),
            a.count,
            a.self_cpu_memory_usage,
        ]
        for a in averages[:_OPERATORS]
    ]


def page_data(recording: Recording) -> dict:
    """What the page shows, as JSON."""
    names = _Names()
    names("")
    depths = _depths(recording)
    most = [0] * len(recording.threads)
    events = []
    for event, depth in depths:
        thread = event.thread - 1
        most[thread] = max(most[thread], depth + 1)
        start, length = event.time_range.start, event.time_range.elapsed_us()
        place = event.stack[0] if event.stack else ""
        numbers = (
            names(event.trace_name),
            round(start, 3),
            round(length, 3),
            depth,
            thread,
        )
        events.append([*numbers, names(event.module), names(place)])
    memory, modules = _memory(recording, names)
    length = (recording.end_ns - recording.start_ns) / 1000
    return {
        "facts": f"{len(events)} events on {len(recording.threads)} threads, "
        f"{length / 1000:.3f} ms",
        "length": length,
        "threads": [
            {"id": tid, "depth": depth}
            for tid, depth in zip(recording.threads, most, strict=True)
        ],
        "events": events,
        "flame": _flame(recording, names),
        "memory": memory,
        "modules": modules,
        "operators": _operators(recording, names),
        "names": list(names.numbers),
    }


def write_page(path: str, recording: Recording) -> None:
    """Writes the page."""
    with open(_TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    # A script's text ends at the first end tag, whatever JSON says.
    data = json.dumps(page_data(recording), separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(template.replace("@DATA@", data.replace("</", "<\\/")))
