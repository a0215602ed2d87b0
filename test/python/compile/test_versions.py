"""Which interpreters capture is built for."""

import sys
from importlib.util import find_spec


def test_capture_is_built_for_the_frames_it_knows() -> None:
    assert (find_spec("taeda._capture") is not None) == (
        sys.version_info[:2] == (3, 11)
    )
