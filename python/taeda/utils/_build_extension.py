"""setuptools' command for extensions in C++."""

from __future__ import annotations

import setuptools  # noqa: F401  (before distutils, which it replaces)
from setuptools.command.build_ext import build_ext

from . import _extension_build as _build

__all__ = ["BuildExtension"]


class BuildExtension(build_ext):
    """`cmdclass={"build_ext": BuildExtension}` for `CppExtension`.

    Adds C++20, unless the extension's flags name a standard, and the macro
    TORCH_EXTENSION_NAME. `extra_compile_args` may be a dict of languages, of which
    "cxx" is used.

    Args:
        no_python_abi_suffix: leaves ".cpython-311-x86_64-linux-gnu" out of the names.
        use_ninja: whether the sources of an extension are compiled side by side
            (MAX_JOBS at a time); there is no ninja behind it.
    """

    @classmethod
    def with_options(cls, **options):
        """A subclass that is made with these options."""

        class WithOptions(cls):
            def __init__(self, *args, **kwargs) -> None:
                super().__init__(*args, **{**kwargs, **options})

        return WithOptions

    def __init__(self, *args, **kwargs) -> None:
        self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
        self.use_ninja = kwargs.pop("use_ninja", True)
        super().__init__(*args, **kwargs)

    def finalize_options(self) -> None:
        super().finalize_options()

    def build_extensions(self) -> None:
        """Builds all of them."""
        from .cpp_extension import _check_sources

        for extension in self.extensions:
            _check_sources(extension.sources, False, False)
            self._add_flags(extension)
        if self.use_ninja:
            self._compile_side_by_side()
        super().build_extensions()

    @staticmethod
    def _add_flags(extension) -> None:
        flags = extension.extra_compile_args
        flags = list(flags.get("cxx", ()) if isinstance(flags, dict) else flags)
        if not any(flag.startswith("-std=") for flag in flags):
            flags.append("-std=c++20")
        name = extension.name.rpartition(".")[2]
        flags += [f"-DTORCH_EXTENSION_NAME={name}", "-DTAEDA_EXTENSION"]
        extension.extra_compile_args = flags

    def _compile_side_by_side(self) -> None:
        compile_one = self.compiler.compile

        def compile_all(sources, **options):
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_build.jobs()) as pool:
                made = pool.map(lambda s: compile_one([s], **options), sources)
                return [path for paths in made for path in paths]

        self.compiler.compile = compile_all

    def get_ext_filename(self, ext_name: str) -> str:
        """The file's name, without the interpreter's tag where that was asked."""
        name = super().get_ext_filename(ext_name)
        if not self.no_python_abi_suffix:
            return name
        parts = name.split(".")
        return ".".join([*parts[:-2], parts[-1]]) if len(parts) > 2 else name

    def get_export_symbols(self, ext) -> list[str]:
        """Symbols that the linker is told to export: those of the extension."""
        return ext.export_symbols
