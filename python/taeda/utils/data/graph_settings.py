"""What a loader tells the pipes behind a pipe: seeds, shuffling, shares of workers."""

from __future__ import annotations

import warnings
from inspect import ismethod, signature

from taeda.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from taeda.utils.data.graph import traverse_dps
from taeda.utils.data.sampler import drawn_seed

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: dict) -> list:
    """The pipes of a graph, each once: a pipe before its sources."""
    found: dict = {}

    def add(inner: dict) -> None:
        for number, (pipe, sources) in inner.items():
            if number not in found:
                found[number] = pipe
                add(sources)

    add(graph)
    return list(found.values())


def _having(datapipe, *methods: str) -> list:
    """The pipes behind a pipe that have these methods."""
    return [
        pipe
        for pipe in get_all_graph_pipes(traverse_dps(datapipe))
        if all(ismethod(getattr(pipe, name, None)) for name in methods)
    ]


def apply_sharding(
    datapipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group=SHARDING_PRIORITIES.DEFAULT,
):
    """Tell pipes that have `apply_sharding` which part of the samples to give.

    Args:
        datapipe: the last pipe of a pipeline, which is returned.
        num_of_instances, instance_id: how many share the work, and which one this is.
        sharding_group: who divides.

    Raises:
        RuntimeError: two such pipes lie behind one another.
    """

    def apply(graph: dict, above=None) -> None:
        for pipe, sources in graph.values():
            share = getattr(pipe, "apply_sharding", None)
            if not ismethod(share):
                apply(sources, above)
                continue
            if above is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will "
                    f"cause data loss. Sharding already applied to {above} while "
                    f"trying to apply to {pipe}"
                )
            named = len(signature(share).parameters) > 2
            group = {"sharding_group": sharding_group} if named else {}
            share(num_of_instances, instance_id, **group)
            apply(sources, pipe)

    apply(traverse_dps(datapipe))
    return datapipe


def apply_shuffle_settings(datapipe, shuffle: bool | None = None):
    """Turn all shufflers on or off.

    Args:
        datapipe: the last pipe of a pipeline.
        shuffle: None leaves all as it is.

    Returns:
        The pipe; behind a new shuffler where `shuffle` is True and there was none.
    """
    found = _having(datapipe, "set_shuffle", "set_seed")
    if shuffle and not found:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. "
            "One is added at the end; its buffer may be too small for a good mix.",
            stacklevel=2,
        )
        return datapipe.shuffle()
    for pipe in found if shuffle is not None else ():
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Give each pipe that has `set_seed` a seed that is drawn from a generator."""
    for pipe in _having(datapipe, "set_seed"):
        pipe.set_seed(drawn_seed(rng))
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The old name of `apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated; use `apply_random_seed`.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)
