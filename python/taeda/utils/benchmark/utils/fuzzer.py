"""Random parameters, and tensors made of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import taeda

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]


class FuzzedParameter:
    """A number drawn anew for each sample.

    Args:
        name: how tensors and constraints name it.
        minval, maxval: the bounds, both included.
        distribution: "uniform" (over the integers, if both bounds are ints),
            "loguniform" (integers whose logarithm is uniform), or a dict of values and
            their probabilities, without bounds.
        strict: keeps its value while other parameters are drawn again because a
            constraint did not hold.

    Raises:
        AssertionError: an unknown distribution, probabilities that are negative or do
            not add up to 1, bounds beside a dict.
    """

    def __init__(
        self,
        name: str,
        minval: int | float | None = None,
        maxval: int | float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        if isinstance(distribution, dict):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            if minval is not None or maxval is not None:
                raise AssertionError(
                    "When passing a custom distribution, 'minval' and 'maxval' must "
                    "be None"
                )
        elif distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        self._name = name
        self._bounds = (minval, maxval)
        self._distribution = distribution
        self.strict = strict

    @property
    def name(self) -> str:
        return self._name

    def sample(self, state: random.Random):
        """A value, drawn by a `random.Random`."""
        low, high = self._bounds
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return state.choices(values, list(self._distribution.values()))[0]
        if self._distribution == "loguniform":
            drawn = int(2 ** state.uniform(math.log2(low), math.log2(high)))
            return min(max(drawn, low), high)
        if isinstance(low, int) and isinstance(high, int):
            return state.randint(low, high)
        return state.uniform(low, high)


class ParameterAlias:
    """As a value of a parameter: the value that another parameter has.

    Args:
        alias_to: its name. Chains must end.
    """

    def __init__(self, alias_to) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedTensor:
    """A tensor of random layout.

    Args:
        name: its name in samples.
        size: sizes, or names of parameters.
        steps: the tensor is every so many-th element of a larger one, for each dim.
        probability_contiguous: how often its memory is in order (before `steps`).
        min_elements, max_elements, max_allocation_bytes: samples beyond these are drawn
            again; bytes are those before `steps`.
        dim_parameter: the parameter that says how many dims it has.
        roll_parameter: accepted for programs that name it, without meaning in PyTorch
            either; anything but None is refused here.
        dtype: its dtype.
        cuda: whether it is on a GPU.
        tensor_constructor: function of `size`, `dtype` and all parameters; by default
            numbers of [0, 1), or integers from 1 to 126.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype=taeda.float32,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ) -> None:
        if roll_parameter is not None:
            raise NotImplementedError("FuzzedTensor: roll_parameter")
        self._name = name
        self._size, self._steps = size, steps or ()
        self._contiguous = probability_contiguous
        self._elements = (min_elements or 0, max_elements or math.inf)
        self._bytes = max_allocation_bytes or math.inf
        self._dim_parameter = dim_parameter
        self._dtype, self._cuda = dtype, cuda
        self._constructor = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        """Numbers from 0 to 1, or whole ones from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return taeda.rand(size, dtype=dtype)
        return taeda.randint(1, 127, size, dtype=dtype)

    def _geometry(self, params) -> tuple[tuple, tuple, tuple]:
        """Sizes, steps, and the sizes of the larger tensor."""
        dim = len(self._size)
        if self._dim_parameter is not None:
            dim = params[self._dim_parameter]
        size, steps = (
            tuple(params.get(v, v) for v in (*values, *[1] * dim)[:dim])
            for values in (self._size, self._steps)
        )
        whole = tuple(n * step for n, step in zip(size, steps, strict=True))
        return size, steps, whole

    def satisfies_constraints(self, params) -> bool:
        """Whether a tensor of these parameters is neither too large nor too small."""
        size, _, whole = self._geometry(params)
        low, high = self._elements
        small = math.prod(whole) * self._dtype.itemsize <= self._bytes
        return low <= math.prod(size) <= high and small

    def _make_tensor(self, params, state: random.Random):
        size, steps, whole = self._geometry(params)
        raw = self._constructor(size=whole, dtype=self._dtype, **params)
        raw = raw.cuda() if self._cuda else raw
        order = list(range(len(size)))
        if state.random() > self._contiguous and len(order) > 1:
            while order == sorted(order):
                state.shuffle(order)
            back = sorted(range(len(order)), key=order.__getitem__)
            raw = raw.permute(order).contiguous().permute(back)
        cut = (slice(0, n * s, s) for n, s in zip(size, steps, strict=True))
        tensor = raw[tuple(cut)]
        properties = {"dtype": str(self._dtype), "steps": steps, "order": order}
        properties["numel"] = tensor.numel()
        properties["is_contiguous"] = tensor.is_contiguous()
        return tensor, properties


def _flat(values, kind: type) -> tuple:
    return tuple(
        v for item in values for v in ([item] if isinstance(item, kind) else item)
    )


class Fuzzer:
    """Samples of tensors.

    Args:
        parameters, tensors: FuzzedParameters and FuzzedTensors, or lists of them.
        constraints: functions of all parameters; where one is false, they are drawn
            again.
        seed: of the draws and of the tensors' values. The draws themselves are not
            those of PyTorch for the same seed.

    Raises:
        ValueError: a parameter and a tensor have one name.
    """

    def __init__(
        self,
        parameters: list[FuzzedParameter | list[FuzzedParameter]],
        tensors: list[FuzzedTensor | list[FuzzedTensor]],
        constraints: list[Callable] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = random.getrandbits(32) if seed is None else seed
        self._parameters = _flat(parameters, FuzzedParameter)
        self._tensors = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or []
        names = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if names:
            raise ValueError(f"Duplicate names in parameters and tensors: {names}")
        self._drawn = self._rejected = 0

    def take(self, n: int) -> Iterator[tuple[dict, dict, dict]]:
        """n samples, the same at each call: tensors, what they are like, parameters."""
        state = random.Random(self._seed)
        taeda.manual_seed(state.getrandbits(63))
        for _ in range(n):
            params = self._draw(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: p for name, (_, p) in made.items()}, params

    @property
    def rejection_rate(self) -> float:
        """The share of draws that did not meet the constraints."""
        return self._rejected / self._drawn if self._drawn else 0.0

    def _draw(self, state: random.Random) -> dict:
        strict = {p.name: p.sample(state) for p in self._parameters if p.strict}
        for _ in range(1000):
            loose = {p.name: p.sample(state) for p in self._parameters if not p.strict}
            params = _resolved({**strict, **loose})
            self._drawn += 1
            fits = all(f(**params) for f in self._constraints)
            if fits and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejected += 1
        raise ValueError(
            "Failed to generate a set of valid parameters: 1000 draws were rejected"
        )


def _resolved(params: dict) -> dict:
    """The same with each alias replaced by what it stands for."""

    def value(name: str, seen: tuple = ()):
        found = params[name]
        if not isinstance(found, ParameterAlias):
            return found
        if found.alias_to in seen:
            raise ValueError(f"Parameter aliases form a cycle: {(*seen, name)}")
        return value(found.alias_to, (*seen, name))

    return {name: value(name) for name in params}
