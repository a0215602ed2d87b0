"""Source of the modules that stand in for those that were left out.

The texts lie in every package, so the file can be read without this library.
"""

MOCK_MODULE = '''\
"""Stands in for what was left out of a package."""


class MockedObject:
    def __new__(cls, name, *args, _suppress_err=False, **kwargs):
        if not _suppress_err:
            raise NotImplementedError(
                f"{name!r} is made of what was mocked out when this was packaged"
            )
        return super().__new__(cls)

    def __init__(self, name, _suppress_err=False):
        self.__dict__["_name"] = name

    def _used(self, *args, **kwargs):
        raise NotImplementedError(
            f"{self._name!r} was mocked out when this was packaged, and is used"
        )

    __call__ = __getattr__ = __setattr__ = __getitem__ = __iter__ = __enter__ = _used
    __len__ = __add__ = __mul__ = _used

    def __repr__(self):
        return f"MockedObject({self._name})"
'''

MOCKED_MODULE = """\
from _mock import MockedObject


def __getattr__(attr):
    if attr in ("__path__", "__all__", "__wrapped__"):
        raise AttributeError(attr)
    return MockedObject(__name__ + "." + attr, _suppress_err=True)
"""
