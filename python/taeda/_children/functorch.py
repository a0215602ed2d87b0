"""What `import functorch` finds there (see torch.py)."""

import importlib
import pathlib
import sys

try:
    import taeda  # noqa: F401 (is it on the path?)
except ModuleNotFoundError:
    sys.path.append(str(pathlib.Path(__file__).parents[2]))
from taeda.as_torch import install

del sys.modules["functorch"]  # this file, while it is imported
install()
sys.modules["functorch"] = importlib.import_module("taeda._functorch.former_package")
