"""Counts collectives."""

from __future__ import annotations

import json
from collections import defaultdict

import taeda
from taeda.utils.module_tracker import ModuleTracker

from ... import _functional_operators  # noqa: F401 (declares what counts are keyed by)
from ..._observers import counting

__all__ = ["CommDebugMode"]


class CommDebugMode:
    """A context that counts the collectives of distributed tensors and of functional
    collectives, for each module that runs.

    Entering it again begins anew.

    On every rank:
        with CommDebugMode() as mode:
            model(x).sum().backward()
        mode.get_comm_counts()[taeda.ops.c10d_functional.all_reduce]
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.comm_counts: dict = defaultdict(int)
        # Module -> "forward" or "backward" -> collective -> how many.
        self.comm_module_counts: dict = {}
        self._parameters: dict[str, dict] = {}
        self._shardings: dict[str, tuple] = {}
        self._tracker = ModuleTracker()
        self._hook = None

    def __enter__(self) -> CommDebugMode:
        from taeda.nn.modules.module import register_module_forward_pre_hook

        self._begin()
        self._tracker.__enter__()
        self._hook = register_module_forward_pre_hook(self._see)
        counting.append(self)
        return self

    def __exit__(self, *error) -> None:
        counting.remove(self)
        self._hook.remove()
        self._tracker.__exit__(*error)

    def _see(self, module, inputs) -> None:
        """Notes the parameters of a module that is called."""
        name = self._tracker._name(module)
        if name in self._parameters:
            return
        own = dict(module.named_parameters(recurse=False))
        self._parameters[name] = {key: p.data for key, p in own.items()}
        for key, parameter in own.items():
            placements = getattr(parameter, "placements", None)
            if placements is not None:
                self._shardings[f"{name}.{key}"] = placements

    def _count(self, name: str, mesh, tensor) -> None:
        packet = getattr(taeda.ops.c10d_functional, name)
        self.comm_counts[packet] += 1
        direction = "backward" if self._tracker.is_bw else "forward"
        for module in self._tracker.parents:
            counts = self.comm_module_counts.setdefault(module, {})
            counts = counts.setdefault(direction, defaultdict(int))
            counts[packet] += 1

    def get_total_counts(self) -> int:
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict:
        """How many there were of each; keys are operators of `ops.c10d_functional`."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict]:
        """Module -> name -> values, of the modules that were called."""
        return self._parameters

    def get_sharding_info(self) -> dict[str, tuple]:
        """Path of a parameter -> its placements, of distributed ones."""
        return self._shardings

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A text: modules, and below each its collectives.

        Args:
            noise_level: from 1 on with placements of parameters.
        """
        names = ["Global", *self._parameters]
        lines = []
        for name in names:
            depth = 0 if name == "Global" else name.count(".") + 1
            indent = "  " * depth
            lines.append(f"{indent}{name}")
            if noise_level > 0:
                for path, placements in self._shardings.items():
                    if path.rpartition(".")[0] == name:
                        lines.append(
                            f"{indent}  *{path.rpartition('.')[2]}: {placements}"
                        )
            for direction, counts in self.comm_module_counts.get(name, {}).items():
                lines.append(f"{indent}  {direction.upper()} PASS")
                lines += [f"{indent}    *{key}: {n}" for key, n in counts.items()]
        return "\n".join(lines) + "\n"

    def log_comm_debug_tracing_table_to_file(
        self, file_name: str = "comm_mode_log.txt", noise_level: int = 3
    ) -> None:
        """Writes the table to a file."""
        with open(file_name, "w") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level))

    def generate_json_dump(
        self, file_name: str = "comm_mode_log.json", noise_level: int = 3
    ) -> None:
        """Writes what was counted to a file as JSON, by modules."""
        found = {
            name: {
                direction: {str(key): n for key, n in counts.items()}
                for direction, counts in self.comm_module_counts.get(name, {}).items()
            }
            for name in ["Global", *self._parameters]
        }
        with open(file_name, "w") as file:
            json.dump(found, file, indent=2)
