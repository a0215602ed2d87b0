"""A test method for each combination of values."""

from __future__ import annotations

from functools import wraps
from itertools import count

import taeda

__all__ = [
    "compose_parametrize_fns",
    "decorateIf",
    "instantiate_parametrized_tests",
    "parametrize",
    "reparametrize",
    "subtest",
]


class subtest:
    """Values of one test, with a name and decorators of their own.

    Args:
        arg_values: a value, or a tuple of one for each parameter.
        name: the end of the test's name.
        decorators: for this test alone.
    """

    __slots__ = ["arg_values", "decorators", "name"]

    def __init__(self, arg_values, name: str | None = None, decorators=None) -> None:
        self.arg_values, self.name = arg_values, name
        self.decorators = decorators if decorators else []


class _TestParametrizer:
    """A decorator that makes several tests of one.

    A subclass defines `_parametrize_test(test, generic_cls, device_cls)`, which gives
    tuples of a function, the end of its name, its named arguments, and a function of
    all named arguments that lists decorators.
    """

    def _parametrize_test(self, test, generic_cls, device_cls):
        raise NotImplementedError(f"{type(self).__name__}._parametrize_test")

    def __call__(self, fn):
        inner = getattr(fn, "parametrize_fn", None)
        mine = self._parametrize_test
        fn.parametrize_fn = compose_parametrize_fns(inner, mine) if inner else mine
        return fn


def compose_parametrize_fns(old_parametrize_fn, new_parametrize_fn):
    """All combinations of two decorators' tests; the new one's names come first.

    Raises:
        RuntimeError: on making tests, where both give the same argument.
    """

    def combined(test, generic_cls, device_cls):
        places = (generic_cls, device_cls)
        for inner, *old in list(old_parametrize_fn(test, *places)):
            for made, *new in new_parametrize_fn(inner, *places):
                names = [name for name in (new[0], old[0]) if name]
                if twice := old[1].keys() & new[1].keys():
                    raise RuntimeError(
                        f"Parametrization over the same parameter by multiple "
                        f"parametrization decorators: {sorted(twice)}"
                    )

                def decorators(given, old=old, new=new):
                    return [*old[2](given), *new[2](given)]

                yield made, "_".join(names), {**old[1], **new[1]}, decorators

    return combined


class parametrize(_TestParametrizer):
    """One test for each value, or tuple of values.

    Args:
        arg_str: names of parameters, with commas between them.
        arg_values: values, tuples of them, or `subtest`s.
        name_fn: a function of the values that gives the end of the name.

    Example:
        >>> @instantiate_parametrized_tests
        ... class TestSquares(TestCase):
        ...     @parametrize("x", [1, 2])
        ...     def test_square(self, x):
        ...         self.assertEqual(x * x, x**2)
        >>> hasattr(TestSquares, "test_square_x_2")
        True
    """

    def __init__(self, arg_str: str, arg_values, name_fn=None) -> None:
        self.arg_names = [name.strip() for name in arg_str.split(",") if name]
        self.arg_values, self.name_fn = arg_values, name_fn

    def _name(self, number: int, values) -> str:
        if self.name_fn:
            return self.name_fn(*values)
        pairs = zip(self.arg_names, values, strict=True)
        return "_".join(_text(number, name, value) for name, value in pairs)

    def _parametrize_test(self, test, generic_cls, device_cls):
        if not self.arg_names:
            yield test, "", {}, _no_decorators
            return
        number = -1
        for number, case in enumerate(self.arg_values):
            case = case if isinstance(case, subtest) else subtest(case)
            single = len(self.arg_names) == 1
            values = [case.arg_values] if single else list(case.arg_values)
            if len(values) != len(self.arg_names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values "
                    f"and {len(self.arg_names)} names for test {test.__name__!r}"
                )

            @wraps(test)
            def made(*args, test=test, **kwargs):
                return test(*args, **kwargs)

            name = case.name or self._name(number, values)
            named = dict(zip(self.arg_names, values, strict=True))
            yield made, name, named, lambda _, case=case: case.decorators
        if number < 0:
            raise ValueError(
                f"{test}: An empty arg_values was passed to @parametrize. Note that "
                "this may result from reuse of a generator."
            )


def _no_decorators(given) -> list:
    return []


def _text(number: int, name: str, value) -> str:
    if isinstance(value, taeda.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, taeda.device):
        return str(value)
    if isinstance(value, (int, float, str)):
        return f"{name}_{str(value).replace('.', '_')}"
    return f"{name}{number}"


class reparametrize(_TestParametrizer):
    """Changes the tests that another parametrizer makes.

    Args:
        parametrizer: the other one.
        adapter_fn: a function of (end of the name, named arguments) that gives None to
            leave a test out, a new pair, or an iterable of pairs.
    """

    def __init__(self, parametrizer, adapter_fn) -> None:
        self.parametrizer, self.adapter_fn = parametrizer, adapter_fn

    def _parametrize_test(self, test, generic_cls, device_cls):
        tests = self.parametrizer._parametrize_test(test, generic_cls, device_cls)
        for made, name, named, decorators in tests:
            changed = self.adapter_fn(name, named)
            if changed is None:
                continue
            pairs = [changed] if isinstance(changed, tuple) else changed
            for new_name, new_named in pairs:
                yield made, new_name, new_named, decorators


class decorateIf(_TestParametrizer):
    """Decorates those tests of whose named arguments a function says True.

    Args:
        decorator: the decorator.
        predicate_fn: a function of the dictionary of arguments.
    """

    def __init__(self, decorator, predicate_fn) -> None:
        self.decorator, self.predicate_fn = decorator, predicate_fn

    def _parametrize_test(self, test, generic_cls, device_cls):
        def decorators(given) -> list:
            return [self.decorator] if self.predicate_fn(given) else []

        @wraps(test)
        def made(*args, **kwargs):
            return test(*args, **kwargs)

        yield made, "", {}, decorators


def variants(test, generic_cls, device_cls):
    """(function with its decorators, end of the name, named arguments) of each test."""
    make = getattr(test, "parametrize_fn", None)
    if make is None:
        yield test, "", {}
        return
    for made, name, named, decorators in make(test, generic_cls, device_cls):
        for decorator in decorators(named):
            made = decorator(made)
        yield made, name, named


def instantiate_parametrized_tests(generic_cls):
    """Replace the tests of a class that have parameters by one for each combination.

    Args:
        generic_cls: a class of tests, which is returned; so this is a decorator too.

    Raises:
        AssertionError: two tests have one name.
    """
    for attribute in dir(generic_cls):
        test = getattr(generic_cls, attribute)
        if not hasattr(test, "parametrize_fn"):
            continue
        delattr(generic_cls, attribute)
        unnamed = count()
        for made, name, named in variants(test, generic_cls, None):
            place(generic_cls, f"{test.__name__}_{name or next(unnamed)}", made, named)
    return generic_cls


def place(cls, name: str, test, named: dict, before=()) -> None:
    """Give a class a test of that name, which calls a function.

    Args:
        cls: the class. name: of the new method. test: the function.
        named: its named arguments. before: its first ones, after `self`.
    """

    @wraps(test)
    def run(self):
        return test(self, *before, **named)

    # The runner is to see a test without arguments.
    del run.__wrapped__
    run.__name__ = name
    if hasattr(cls, name):
        raise AssertionError(f"Redefinition of test {name}")
    setattr(cls, name, run)
