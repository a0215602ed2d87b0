"""Safetensors files of quantized weights, read as numbers of a wider type.

Two forms are known: blocks of rows and columns with a factor each
(`NAME.weight` and `NAME.weight_scale_inv`), and MXFP4 of the Open Compute Project's
"Microscaling formats" 1.0: `NAME_blocks` with two numbers of four bits in each byte,
the lower bits first, and `NAME_scales` with the exponent of a power of two for each
group.
"""

from __future__ import annotations

import json
from math import ceil

import taeda
from taeda._io.safetensors import safe_open

from .hf_storage import INDEX, HuggingFaceStorageReader
from .metadata import Metadata, MetadataIndex, TensorStorageMetadata
from .planner import ReadItem
from .planner_helpers import narrow

__all__ = ["QuantizedHuggingFaceStorageReader"]

# Values of the four bits: a sign, two of exponent (bias 1), one of mantissa.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_SCALE, _WEIGHT = ".weight_scale_inv", ".weight"
_BIAS = 127


class QuantizedHuggingFaceStorageReader(HuggingFaceStorageReader):
    """Reads a folder whose weights are quantized.

    Args:
        path: the folder; it must have `model.safetensors.index.json`.
        thread_count (int): threads that read, a file each.
        target_dtype: of what is computed.
        block_size (int): rows and columns of a block of `weight_scale_inv`.

    On every rank:
        reader = QuantizedHuggingFaceStorageReader("model")
        dcp.load(state, storage_reader=reader)
    """

    def __init__(
        self,
        path: str,
        thread_count: int = 1,
        target_dtype: taeda.dtype = taeda.float32,
        block_size: int = 128,
    ) -> None:
        super().__init__(path, thread_count)
        self.target_dtype, self.block_size = target_dtype, block_size
        self._files: dict[str, str] = {}  # name -> file
        self._scales: dict[str, str] = {}  # name of a quantized tensor -> its factors

    def read_metadata(self) -> Metadata:
        metadata = super().read_metadata()
        with open(self.fs.concat_path(self.path, INDEX)) as file:
            self._files = json.load(file)["weight_map"]
        for name in self._files:
            if name.endswith(_SCALE):
                weight = name.removesuffix(_SCALE) + _WEIGHT
            elif name.endswith("_scales"):
                weight = name.removesuffix("_scales") + "_blocks"
            else:
                continue
            if weight in self._files:
                self._scales[weight] = name
        for name, entry in metadata.state_dict_metadata.items():
            packed = name in self._scales and name.endswith("_blocks")
            if packed and isinstance(entry, TensorStorageMetadata):
                self._unpack_sizes(name, entry, metadata.storage_data)
        return metadata

    def _unpack_sizes(
        self, name: str, entry: TensorStorageMetadata, places: dict
    ) -> None:
        """[..., groups, bytes] becomes [..., numbers]."""
        if len(entry.chunks) != 1:
            raise NotImplementedError(f"{name}: packed numbers in parts of ranks")
        *rest, groups, width = entry.size
        (box,) = entry.chunks
        place = places.pop(MetadataIndex(name, box.offsets))
        entry.size = box.sizes = taeda.Size([*rest, groups * width * 2])
        box.offsets = taeda.Size([0] * len(entry.size))
        places[MetadataIndex(name, box.offsets)] = place

    def _found(self, file: safe_open, item: ReadItem) -> taeda.Tensor:
        name = item.storage_index.fqn
        if name not in self._scales:
            return super()._found(file, item)
        values, scales = file.get_tensor(name), self._factors(name)
        wide = self._unpacked if name.endswith("_blocks") else self._by_blocks
        return narrow(wide(values, scales), item.storage_offsets, item.lengths)

    def _factors(self, name: str) -> taeda.Tensor:
        scale = self._scales[name]
        path = self.fs.concat_path(self.path, self._files[scale])
        with safe_open(path) as file:
            return file.get_tensor(scale)

    def _by_blocks(self, values: taeda.Tensor, scales: taeda.Tensor) -> taeda.Tensor:
        size = self.block_size
        blocks = [ceil(n / size) for n in values.shape]
        if list(scales.shape) != blocks:
            raise ValueError(
                f"a weight of {tuple(values.shape)} has {blocks} blocks of {size}, and "
                f"factors of {tuple(scales.shape)}"
            )
        factors = scales.to(self.target_dtype)
        for dim, length in enumerate(values.shape):
            factors = factors.repeat_interleave(size, dim).narrow(dim, 0, length)
        return values.to(self.target_dtype) * factors

    def _unpacked(self, values: taeda.Tensor, scales: taeda.Tensor) -> taeda.Tensor:
        table = taeda.tensor(
            [*_MAGNITUDES, *(-m for m in _MAGNITUDES)], dtype=self.target_dtype
        )
        low, high = values & 0xF, values >> 4
        numbers = taeda.stack([table[low.long()], table[high.long()]], -1)
        numbers = numbers.flatten(-2)  # [..., groups, numbers of a group]
        powers = taeda.exp2(scales.to(taeda.float64) - _BIAS)
        scaled = numbers * powers.to(self.target_dtype).unsqueeze(-1)
        return scaled.flatten(-2)
