"""What PyTorch's tests of its compiler ask of private modules."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import types
from pathlib import Path

__all__ = ["install"]


def install(site: Path, loader) -> None:
    """Puts the modules there.

    Args:
        site: the folder that holds the installed `torch`.
        loader: reads a module from its file.
    """
    import taeda

    _know_settings(site / "torch/_dynamo/config.py")
    inductor = _module("_inductor")
    inductor.config = _Anything("torch._inductor.config")
    taeda._inductor = inductor
    for place in ("_dynamo", "_inductor"):
        module = _module(f"{place}.test_case")
        getattr(taeda, place).test_case = module
        module.__getattr__ = _test_case
    taeda._dynamo.optimize_assert = _optimize_assert
    taeda._dynamo.utils.same = _same
    taeda._dynamo.utils.ifdynstaticdefault = lambda static, dynamic: static
    taeda._dynamo.utils.clear_compilation_metrics = lambda: None
    guards = _module("_dynamo.guards")
    guards.guard_manager_testing_hook_fn = None
    taeda._dynamo.guards = guards
    _add_helpers(site / "torch/_dynamo/testing.py", loader)


def _module(name: str) -> types.ModuleType:
    module = types.ModuleType(f"torch.{name}")
    module.__path__ = []
    sys.modules[f"torch.{name}"] = sys.modules[f"taeda.{name}"] = module
    return module


class _Anything(types.ModuleType):
    """Settings of which none means anything here."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def patch(self, *args, **kwargs):
        from taeda._dynamo import config

        return config.patch({})


def _know_settings(file: Path) -> None:
    """PyTorch's settings that are not here have one value, and none is an error."""
    from taeda._dynamo import config

    own = vars(config)
    for statement in ast.parse(file.read_text()).body:
        target = getattr(statement, "target", None)
        targets = [target] if target else getattr(statement, "targets", [])
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            if target.id in own["_values"] or target.id in own["_aliases"]:
                continue
            try:
                own["_fixed"].setdefault(target.id, ast.literal_eval(statement.value))
            except (ValueError, TypeError):
                own["_fixed"].setdefault(target.id, None)


def _test_case(name: str):
    if name == "run_tests":
        from torch.testing._internal.common_utils import run_tests

        return run_tests
    if name not in ("TestCase", "TestCaseWithNestedGraphBreaks"):
        raise AttributeError(name)
    from torch.testing._internal.common_utils import TestCase as Base

    class TestCase(Base):
        """Each test begins with nothing compiled."""

        @classmethod
        def setUpClass(cls) -> None:
            super().setUpClass()
            cls._exit_stack = contextlib.ExitStack()

        @classmethod
        def tearDownClass(cls) -> None:
            cls._exit_stack.close()
            super().tearDownClass()

        def setUp(self) -> None:
            super().setUp()
            _forget()

        def tearDown(self) -> None:
            _forget()
            super().tearDown()

    for place in ("_dynamo", "_inductor"):
        module = sys.modules[f"taeda.{place}.test_case"]
        module.TestCase = module.TestCaseWithNestedGraphBreaks = TestCase
    return TestCase


def _optimize_assert(backend, **options):
    import taeda

    return taeda._dynamo.optimize(backend, nopython=True)


def _same(one, other, *args, **kwargs) -> bool:
    """Whether two results agree, tensors within roundings."""
    import taeda
    from taeda.utils import _pytree

    left, form = _pytree.tree_flatten(one)
    right, other_form = _pytree.tree_flatten(other)
    if len(left) != len(right) or form != other_form:
        return False
    for a, b in zip(left, right, strict=True):
        if isinstance(a, taeda.Tensor):
            try:
                taeda.testing.assert_close(a, b, equal_nan=True, rtol=1e-4, atol=1e-4)
            except AssertionError:
                return False
        elif type(a) is not type(b) or (a != b) is True:
            return False
    return True


def _forget() -> None:
    import taeda

    taeda._dynamo.reset()
    taeda._dynamo.utils.counters.clear()


def _add_helpers(file: Path, loader) -> None:
    """PyTorch's helpers that `_dynamo.testing` does not have."""
    from taeda._dynamo import testing

    def find(name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        module = sys.modules.get("torch._dynamo.testing_of_pytorch")
        if module is None:
            name_of = "torch._dynamo.testing_of_pytorch"
            spec = importlib.util.spec_from_file_location(
                name_of, file, loader=loader(name_of, str(file))
            )
            module = importlib.util.module_from_spec(spec)
            sys.modules[name_of] = module
            spec.loader.exec_module(module)
        return getattr(module, name)

    testing.__getattr__ = find
