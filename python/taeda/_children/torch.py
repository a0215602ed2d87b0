"""What `import torch` finds in a program that was started from one under as_torch."""

import pathlib
import sys

try:
    import taeda
except ModuleNotFoundError:
    # The program that started this one had the library on its path alone.
    sys.path.append(str(pathlib.Path(__file__).parents[2]))
    import taeda
from taeda.as_torch import install

del sys.modules["torch"]  # this file, while it is imported
install()
sys.modules["torch"] = taeda
