"""Which interpreters capture is built for."""

import sys
from importlib.util import find_spec


def test_capture_is_built_for_the_frames_it_knows() -> None:
    known = (3, 11) <= sys.version_info[:2] <= (3, 13)
    assert (find_spec("taeda._capture") is not None) == known
