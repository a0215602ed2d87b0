"""Runs passes in an order."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature

from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable) -> Callable:
    """A pass of a function that changes a module in place and returns None."""

    @wraps(fn)
    def run(gm):
        result = fn(gm)
        return result if isinstance(result, PassResult) else PassResult(gm, True)

    run.__name__ = _name_of(fn)
    return run


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """The rule that one pass stands before another: a function of two passes that is
    False where the first one given is `that` and the second `this`."""

    def allowed(a: Callable, b: Callable) -> bool:
        return not (a == that and b == this)

    return allowed


class PassManager:
    """A list of passes that is run until nothing changes.

    Args:
        passes: functions of a module that give a PassResult.
        constraints: functions of two passes: may the first stand before the second?
        steps: at most so many rounds.
        run_checks_after_each_pass: call the checks after each pass too.
        suppress_check_failures: go on when a check fails.
    """

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.checks: list[Callable] = []
        self.passes, self.constraints = list(passes or ()), list(constraints or ())
        self._validated, self.steps = False, steps or 1
        flags = (run_checks_after_each_pass, suppress_check_failures)
        self.run_checks_after_each_pass, self.suppress_check_failures = flags

    def add_pass(self, _pass: Callable) -> None:
        """Puts a pass at the end."""
        self._append(self.passes, _pass)

    def add_constraint(self, constraint: Callable) -> None:
        """Adds a rule about the order."""
        self._append(self.constraints, constraint)

    def _append(self, to: list, new: Callable) -> None:
        to.append(new)
        self._validated = False

    def add_checks(self, check: Callable) -> None:
        """Adds a function of a module that raises for a fault.

        Raises:
            TypeError: it is no function, or takes more than the module.
        """
        if not callable(check):
            raise TypeError(f"add_checks: {check!r} is no function")
        if len(signature(check).parameters) != 1:
            raise TypeError(f"add_checks: {check} has to take a module and no more")
        self.checks.append(check)

    def validate_constraints(self) -> None:
        """Raises RuntimeError where the order breaks a rule."""
        for rule in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not rule(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated: {first} stands before "
                            f"{second}"
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Brings the passes into an order that keeps the rules.

        Raises:
            RuntimeError: there is none.
        """
        waiting, done = list(self.passes), []
        while waiting:
            free = next((p for p in waiting if self._may_lead(p, waiting)), None)
            if free is None:
                raise RuntimeError(f"constraints of passes form a circle: {waiting}")
            waiting.remove(free)
            done.append(free)
        self.passes, self._validated = done, True

    def _may_lead(self, first, others) -> bool:
        pairs = [(first, p) for p in others if p is not first]
        return all(rule(*pair) for rule in self.constraints for pair in pairs)

    def check(self, module) -> None:
        """Calls the checks."""
        for check in self.checks:
            try:
                check(module)
            except Exception:
                if not self.suppress_check_failures:
                    raise

    def _run(self, i: int, each: Callable, module) -> PassResult:
        """What a pass gives; its errors say which passes came before it."""
        try:
            result = each(module)
            if not isinstance(result, PassResult):
                raise TypeError(f"a pass has to give a PassResult, got {type(result)}")
        except Exception as error:
            before = [_name_of(p) for p in self.passes[:i]]
            raise Exception(
                f"PassManager: pass {_name_of(each)!r} failed after the passes {before}"
            ) from error
        return result

    def __call__(self, module) -> PassResult:
        """Runs the checks and passes.

        Raises:
            Exception: a pass raised, which is the cause, or gave no PassResult.
        """
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed, rounds = False, self.steps
        while rounds > 0:
            latest = self._run_all(module)
            module, changed = latest.graph_module, changed or latest.modified
            rounds = rounds - 1 if latest.modified else 0
        self.check(module)
        return PassResult(module, changed)

    def _run_all(self, module) -> PassResult:
        """One round."""
        changed = []
        for i, each in enumerate(self.passes):
            result = self._run(i, each, module)
            module = result.graph_module
            changed.append(result.modified)
            if self.run_checks_after_each_pass:
                self.check(module)
        return PassResult(module, any(changed))


def _name_of(a_pass: Callable) -> str:
    return getattr(a_pass, "__name__", type(a_pass).__name__)
