"""L-BFGS with an optional strong-Wolfe line search."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._line_search import strong_wolfe
from taeda.optim._options import check, check_options, declares_options
from taeda.optim._rule import as_scalar
from taeda.optim.optimizer import Optimizer, ParamsT

__all__ = ["LBFGS"]


@declares_options
class LBFGS(Optimizer):
    r"""Quasi-Newton steps from the last gradients and moves.

    $d = -H g$ with $H$ built from the last `history_size` pairs by the two-loop
    recursion (Nocedal and Wright, Numerical Optimization, algorithm 7.4); several
    iterations and evaluations of the closure per `step`.

    Args:
        params: tensors; one group only.
        lr (float or Tensor): step length before or without a line search.
        max_iter (int), max_eval (int): limits per step (max_eval: 1.25 max_iter).
        tolerance_grad, tolerance_change (float): stop below these.
        history_size (int): pairs kept.
        line_search_fn (str): None or "strong_wolfe".

    Raises:
        ValueError: several parameter groups. RuntimeError: another line search.

    Example:
        >>> optimizer = taeda.optim.LBFGS(model.parameters())
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = taeda.nn.functional.mse_loss(model(x), y)
        ...     loss.backward()
        ...     return loss
        >>> before = optimizer.step(closure)
    """

    params: ParamsT
    lr: float | Tensor = 1
    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None

    def _begin(self, params, options: dict) -> None:
        check_options(options)
        if options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4
        super().__init__(params, options)
        check(
            len(self.param_groups) == 1,
            "LBFGS doesn't support per-parameter options (parameter groups)",
        )

    def _flat_gradient(self):
        parts = []
        for p in self.param_groups[0]["params"]:
            g = taeda.zeros_like(p) if p.grad is None else p.grad
            g = g.to_dense() if g.is_sparse else g
            g = taeda.view_as_real(g) if g.is_complex() else g
            parts.append(g.reshape(-1))
        return taeda.cat(parts)

    def _move(self, length, direction) -> None:
        start = 0
        for p in self.param_groups[0]["params"]:
            p = taeda.view_as_real(p) if p.is_complex() else p
            part = direction[start : start + p.numel()]
            p.add_(part.view_as(p), alpha=float(length))
            start += p.numel()

    def step(self, closure):
        """Iterate until a limit or tolerance is met.

        Args:
            closure: clears the gradients, computes the loss, calls backward and
                returns the loss; called several times.

        Returns: the loss before the step.
        """
        with taeda.no_grad():
            return self._iterate(closure)

    def _iterate(self, closure):
        def evaluate():
            with taeda.enable_grad():
                return closure()

        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        g = self._flat_gradient()
        if g.abs().max() <= group["tolerance_grad"]:
            return first_loss
        memory = {k: state.get(k) for k in ("d", "t", *_MEMORY)}
        for done in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            self._direction(g, memory, state, group)
            memory["prev_loss"] = loss
            slope = g.dot(memory["d"])
            memory["t"] = self._first_length(g, state, group)
            if slope > -group["tolerance_change"]:
                break
            loss, g, used = self._search(
                evaluate, memory, loss, g, slope, evaluations, done
            )
            evaluations += used
            state["func_evals"] += used
            if self._finished(memory, loss, g, evaluations, done):
                break
        state.update(memory)
        return first_loss

    @staticmethod
    def _first_length(g, state, group):
        lr = as_scalar(group["lr"])
        if state["n_iter"] == 1:
            return min(1.0, 1.0 / g.abs().sum()) * lr
        return lr

    def _direction(self, g, memory: dict, state: dict, group: dict) -> None:
        """The next direction d, from the pairs (y, s) kept so far."""
        if state["n_iter"] == 1:
            memory.update(d=g.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
        else:
            y = g.sub(memory["prev_flat_grad"])
            s = memory["d"].mul(memory["t"])
            curvature = y.dot(s)
            pairs = memory["old_dirs"], memory["old_stps"], memory["ro"]
            if curvature > 1e-10:
                if len(pairs[0]) == group["history_size"]:
                    for kept in pairs:
                        kept.pop(0)
                for kept, new in zip(pairs, (y, s, 1.0 / curvature), strict=True):
                    kept.append(new)
                memory["H_diag"] = curvature / y.dot(y)
            weights = state.setdefault("al", [None] * group["history_size"])
            memory["d"] = _two_loops(g, *pairs, memory["H_diag"], weights)
        if memory["prev_flat_grad"] is None:
            memory["prev_flat_grad"] = g.clone()
        else:
            memory["prev_flat_grad"].copy_(g)

    def _search(self, evaluate, memory, loss, g, slope, evaluations, done):
        group = self.param_groups[0]
        d, t, rule = memory["d"], memory["t"], group["line_search_fn"]
        if rule is None:
            self._move(t, d)
            if done == group["max_iter"]:
                return loss, g, 0  # the next step evaluates here anyway
            return float(evaluate()), self._flat_gradient(), 1
        if rule != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        params = group["params"]
        origin = [p.clone() for p in params]

        def probe(length):
            self._move(length, d)
            value, gradient = float(evaluate()), self._flat_gradient()
            for p, start in zip(params, origin, strict=True):
                p.copy_(start)
            return value, gradient

        limit = group["max_eval"] - evaluations
        loss, g, t, used = strong_wolfe(probe, t, d, loss, g, slope, limit)
        memory["t"] = t
        self._move(t, d)
        return loss, g, used

    def _finished(self, memory, loss, g, evaluations, done) -> bool:
        group = self.param_groups[0]
        least = group["tolerance_change"]
        return bool(
            done == group["max_iter"]
            or evaluations >= group["max_eval"]
            or g.abs().max() <= group["tolerance_grad"]
            or memory["d"].mul(memory["t"]).abs().max() <= least
            or abs(loss - memory["prev_loss"]) < least
        )


_MEMORY = ("old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


def _two_loops(g, changes, moves, inverses, diagonal, weights):
    q = g.neg()
    for i in range(len(changes) - 1, -1, -1):
        weights[i] = moves[i].dot(q) * inverses[i]
        q.add_(changes[i], alpha=-float(weights[i]))
    r = q.mul(diagonal)
    for i in range(len(changes)):
        back = changes[i].dot(r) * inverses[i]
        r.add_(moves[i], alpha=float(weights[i] - back))
    return r
