"""Datasets, samplers and the loader that makes batches of them."""

from __future__ import annotations

_HOME = {
    "BatchSampler": "sampler",
    "ChainDataset": "dataset",
    "ConcatDataset": "dataset",
    "DataLoader": "dataloader",
    "Dataset": "dataset",
    "DistributedSampler": "distributed",
    "IterableDataset": "dataset",
    "RandomSampler": "sampler",
    "Sampler": "sampler",
    "SequentialSampler": "sampler",
    "StackDataset": "dataset",
    "Subset": "dataset",
    "SubsetRandomSampler": "sampler",
    "TensorDataset": "dataset",
    "WeightedRandomSampler": "sampler",
    "_DatasetKind": "dataloader",
    "default_collate": "_utils.collate",
    "default_convert": "_utils.collate",
    "get_worker_info": "_utils.worker",
    "random_split": "dataset",
}
_MODULES = {"_utils", "dataloader", "dataset", "distributed", "sampler"}

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
