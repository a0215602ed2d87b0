"""Datasets, samplers and the loader that makes batches of them."""

from __future__ import annotations

_HOME = {
    "BatchSampler": "sampler",
    "ChainDataset": "dataset",
    "ConcatDataset": "dataset",
    "DataLoader": "dataloader",
    "DFIterDataPipe": "datapipes.datapipe",
    "DataChunk": "datapipes.datapipe",
    "Dataset": "dataset",
    "DistributedSampler": "distributed",
    "IterDataPipe": "datapipes.datapipe",
    "IterableDataset": "dataset",
    "MapDataPipe": "datapipes.datapipe",
    "RandomSampler": "sampler",
    "Sampler": "sampler",
    "SequentialSampler": "sampler",
    "StackDataset": "dataset",
    "Subset": "dataset",
    "SubsetRandomSampler": "sampler",
    "TensorDataset": "dataset",
    "WeightedRandomSampler": "sampler",
    "_DatasetKind": "dataloader",
    "argument_validation": "datapipes._decorator",
    "default_collate": "_utils.collate",
    "default_convert": "_utils.collate",
    "functional_datapipe": "datapipes._decorator",
    "get_worker_info": "_utils.worker",
    "guaranteed_datapipes_determinism": "datapipes._decorator",
    "non_deterministic": "datapipes._decorator",
    "random_split": "dataset",
    "runtime_validation": "datapipes._decorator",
    "runtime_validation_disabled": "datapipes._decorator",
}
_MODULES = frozenset(
    "_utils dataloader datapipes dataset distributed"
    " graph graph_settings sampler".split()
)

__all__ = list(_HOME)


def __getattr__(name: str):
    from importlib import import_module

    home = _HOME.get(name)
    if home is not None:
        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
