"""Packages python/taeda and drives CMake; everything declarative is in pyproject.toml.

Each run first gathers the licence texts that `license-files` in pyproject.toml names.

The whole native part (libraries, extension module, headers, CMake package, generated
Python files) is one pseudo-extension: CMake builds it and installs it into the tree
from which setuptools makes the wheel.
"""

from __future__ import annotations

import pathlib
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from devtool import cmake, licences  # noqa: E402  (needs the path above)


class CMakeBuild(build_ext):
    """`build_ext` whose one extension is the CMake project."""

    def run(self) -> None:
        if self.inplace:
            cmake.build(ROOT / "build")
            cmake.link_into_package(ROOT / "build")
            return
        # Configured afresh, since an isolated build environment lies elsewhere each
        # time and cached paths into an earlier one are gone; so not in the tree of
        # who works here. A copy of the sources has none, and there the same name lets
        # ccache find its objects: preprocessed text names headers by their paths.
        tree = ROOT / "build"
        if (tree / "build.ninja").exists():
            tree = ROOT / f"build-{sys.implementation.cache_tag}"
        cmake.build(tree, fresh=True)
        cmake.install(tree, ROOT / self.build_lib)
        cmake.forget(tree)

    def get_outputs(self) -> list[str]:
        return []

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def get_source_files(self) -> list[str]:
        return []


licences.collect()
setup(
    ext_modules=[Extension("taeda._C", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
