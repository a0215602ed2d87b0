"""Models with the source of their classes in one file.

Example:
    >>> import io
    >>> file = io.BytesIO()
    >>> with PackageExporter(file) as exporter:
    ...     exporter.save_source_string("shapes", "def double(x): return 2 * x")
    ...     exporter.save_pickle("model", "weights.pkl", taeda.ones(2))
    >>> importer = PackageImporter(io.BytesIO(file.getvalue()))
    >>> double = importer.import_module("shapes").double
    >>> double(importer.load_pickle("model", "weights.pkl"))
    tensor([2., 2.])
"""

from taeda._lazy import attributes

_WHERE = {
    "Directory": "file_structure_representation",
    "EmptyMatchError": "package_exporter",
    "GlobGroup": "glob_group",
    "Importer": "importer",
    "ObjMismatchError": "importer",
    "ObjNotFoundError": "importer",
    "OrderedImporter": "importer",
    "PackageExporter": "package_exporter",
    "PackageImporter": "package_importer",
    "PackagingError": "package_exporter",
    "is_from_package": "analyze",
    "sys_importer": "importer",
}
_MODULES = frozenset(
    "analyze file_structure_representation find_file_dependencies glob_group importer"
    " package_exporter package_importer".split()
)
__all__ = sorted(_WHERE)

__getattr__ = attributes(__name__, _WHERE, _MODULES)


def __dir__():
    return sorted({*globals(), *_WHERE, *_MODULES})
