"""Helpers of tests, by the names that test suites import."""

from __future__ import annotations

from taeda.testing import make_tensor

from ._environment import *  # noqa: F403
from ._environment import __all__ as _facts
from ._matrices import *  # noqa: F403
from ._matrices import __all__ as _matrix_names
from ._matrices import __getattr__ as __getattr__
from ._parametrize import *  # noqa: F403
from ._parametrize import __all__ as _parametrize_names
from ._parametrize import _TestParametrizer as _TestParametrizer
from ._settings import *  # noqa: F403
from ._settings import __all__ as _settings_names
from ._skips import *  # noqa: F403
from ._skips import __all__ as _skip_names
from ._test_case import *  # noqa: F403
from ._test_case import __all__ as _case_names

__all__ = [
    "make_tensor",
    *_facts,
    *_matrix_names,
    *_parametrize_names,
    *_settings_names,
    *_skip_names,
    *_case_names,
]
