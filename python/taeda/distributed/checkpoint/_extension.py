"""Changes of the bytes of a checkpoint on their way, such as compression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import IO

__all__ = ["Extension", "ExtensionRegistry", "StreamTransformExtension"]


class Extension(ABC):
    """Something that changes what is written, and is named in the metadata."""

    @staticmethod
    @abstractmethod
    def registry_name() -> str:
        """The name under which readers find the class."""

    @staticmethod
    @abstractmethod
    def from_descriptor(version: str) -> Extension:
        """The extension of a version, as a descriptor names it."""

    @abstractmethod
    def get_descriptor(self) -> str:
        """What the metadata name: "name", "name@domain" or "name/version"."""


class StreamTransformExtension(Extension):
    """Changes a stream of bytes.

    Closing the stream of `transform_to` writes what it still holds.
    """

    @abstractmethod
    def transform_to(self, output: IO[bytes]) -> IO[bytes]:
        """A stream; what is written to it goes, changed, to `output`."""

    @abstractmethod
    def transform_from(self, input: IO[bytes]) -> IO[bytes]:
        """A stream from which the bytes can be read that were written to the other."""


class ExtensionRegistry:
    """The extensions that a reader knows, by name."""

    def __init__(self) -> None:
        self.extensions: dict[str, type[Extension]] = {}

    def register(self, cls: type[Extension]) -> None:
        """Makes a class known."""
        self.extensions[cls.registry_name()] = cls

    def from_descriptor_list(self, descriptors: Sequence[str]) -> Sequence[Extension]:
        """The extensions that descriptors name.

        Raises:
            ValueError: one is not known.
        """
        found = []
        for text in descriptors:
            name, _, version = text.partition("/")
            name = name.partition("@")[0]
            if name not in self.extensions:
                raise ValueError(f"unknown extension {text!r} in the checkpoint")
            found.append(self.extensions[name].from_descriptor(version))
        return found
