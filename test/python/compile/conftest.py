"""Capture is built where it knows the interpreter's frames (`test_versions.py`)."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("taeda._capture") else ["test_capture.py"]
