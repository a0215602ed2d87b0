"""What `import functorch` finds there (see torch.py)."""

import importlib
import sys

importlib.import_module("torch")
sys.modules["functorch"] = importlib.import_module("taeda._functorch.former_package")
