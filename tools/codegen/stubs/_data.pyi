# The generic classes of taeda.utils.data: datasets of samples, samplers of indices, the
# loader. At run time they can be subscripted, but are no classes of `typing`.
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from taeda._C._native import Generator
from taeda._tensor import Tensor

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

class Dataset(Generic[_T_co]):
    def __getitem__(self, index: Any) -> _T_co: ...
    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]: ...

class IterableDataset(Dataset[_T_co]):
    def __iter__(self) -> Iterator[_T_co]: ...
    def __add__(self, other: Dataset[_T_co]) -> ChainDataset[_T_co]: ...  # type: ignore[override]

class TensorDataset(Dataset[tuple[Tensor, ...]]):
    tensors: tuple[Tensor, ...]
    def __init__(self, *tensors: Tensor) -> None: ...
    def __len__(self) -> int: ...

class StackDataset(Dataset[Any]):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __len__(self) -> int: ...

class ConcatDataset(Dataset[_T_co]):
    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]
    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None: ...
    def __len__(self) -> int: ...

class ChainDataset(IterableDataset[_T_co]):
    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None: ...
    def __len__(self) -> int: ...

class Subset(Dataset[_T_co]):
    dataset: Dataset[_T_co]
    indices: Sequence[int]
    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None: ...
    def __len__(self) -> int: ...

def random_split(
    dataset: Dataset[_T],
    lengths: Sequence[int | float],
    generator: Generator | None = ...,
) -> list[Subset[_T]]: ...

class Sampler(Generic[_T_co]):
    def __init__(self, data_source: Any = ...) -> None: ...
    def __iter__(self) -> Iterator[_T_co]: ...

class SequentialSampler(Sampler[int]):
    def __init__(self, data_source: Any) -> None: ...
    def __len__(self) -> int: ...

class RandomSampler(Sampler[int]):
    def __init__(
        self,
        data_source: Any,
        replacement: bool = ...,
        num_samples: int | None = ...,
        generator: Generator | None = ...,
    ) -> None: ...
    def __len__(self) -> int: ...

class SubsetRandomSampler(Sampler[int]):
    def __init__(
        self, indices: Sequence[int], generator: Generator | None = ...
    ) -> None: ...
    def __len__(self) -> int: ...

class WeightedRandomSampler(Sampler[int]):
    def __init__(
        self,
        weights: Tensor | Sequence[float],
        num_samples: int,
        replacement: bool = ...,
        generator: Generator | None = ...,
    ) -> None: ...
    def __len__(self) -> int: ...

class BatchSampler(Sampler[list[int]]):
    def __init__(
        self,
        sampler: Sampler[int] | Iterable[int],
        batch_size: int,
        drop_last: bool,
    ) -> None: ...
    def __len__(self) -> int: ...

class DataLoader(Generic[_T_co]):
    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    drop_last: bool
    sampler: Any
    batch_sampler: Any
    collate_fn: Any
    generator: Generator | None
    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = ...,
        shuffle: bool | None = ...,
        sampler: Sampler[Any] | Iterable[Any] | None = ...,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = ...,
        num_workers: int = ...,
        collate_fn: Callable[[list[Any]], Any] | None = ...,
        pin_memory: bool = ...,
        drop_last: bool = ...,
        timeout: float = ...,
        worker_init_fn: Callable[[int], Any] | None = ...,
        multiprocessing_context: Any = ...,
        generator: Generator | None = ...,
        *,
        prefetch_factor: int | None = ...,
        persistent_workers: bool = ...,
        pin_memory_device: str = ...,
        in_order: bool = ...,
    ) -> None: ...
    # What a batch is depends on collate_fn.
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
