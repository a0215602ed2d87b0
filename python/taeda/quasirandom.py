"""Points that fill a cube more evenly than random ones."""

from __future__ import annotations

import taeda

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol sequence in [0, 1]^d, PyTorch's for the same seed.

    Point i is the exclusive or of direction numbers, one for each bit of i's Gray code.

    Args:
        dimension: d, from 1 to 1111.
        scramble: shuffle the digits by random triangular matrices and a random shift
            (Matousek, J. Complexity 14, 1998), which keeps the evenness.
        seed: of that; by default from the library's generator.

    Raises:
        ValueError: the dimension is not from 1 to 21201, PyTorch's largest.
        NotImplementedError: it is more than 1111.

    Example:
        >>> SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed=None) -> None:
        from taeda._sobol_numbers import DIMENSIONS

        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}]"
            )
        if dimension > DIMENSIONS:
            raise NotImplementedError(
                f"SobolEngine: dimension {dimension} is more than {DIMENSIONS}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = taeda.tensor(_directions(dimension, self.MAXBIT))
        self.shift = taeda.zeros(dimension, dtype=taeda.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        # In the default dtype, as PyTorch has it: also for points of more digits.
        self._first_point = (self.shift / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = taeda.Generator().manual_seed(self.seed)
        bits = self.MAXBIT
        shift = taeda.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (shift << taeda.arange(bits)).sum(1)
        shape = (self.dimension, bits, bits)
        matrix = taeda.randint(2, shape, generator=generator).tril()
        matrix.diagonal(0, 1, 2).fill_(1)
        # Digits from the first after the point on, [dimension, digit, number].
        places = taeda.arange(bits - 1, -1, -1)
        digits = (self.sobolstate[:, None, :] >> places[:, None]) & 1
        mixed = (matrix.float() @ digits.float()).to(taeda.int64) & 1
        self.sobolstate = (mixed << places[:, None]).sum(1)

    def _points(self, begin: int, count: int):
        """Points `begin` and after, as integers [count, dimension]."""
        index = taeda.arange(begin, begin + count)
        gray = index ^ (index >> 1)
        points = self.shift.repeat(count, 1)
        for bit in range((begin + count).bit_length()):
            chosen = ((gray >> bit) & 1)[:, None]
            points ^= chosen * self.sobolstate[:, bit]
        return points

    def draw(self, n: int = 1, out=None, dtype=None):
        """The next points.

        Args:
            n: how many.
            out (Tensor): where to. dtype: of the points; by default the default one.

        Returns:
            Tensor: [n, dimension].
        """
        dtype = taeda.get_default_dtype() if dtype is None else dtype
        points = self._points(self.num_generated, n)
        result = points.to(dtype) * 2.0**-self.MAXBIT
        if self.num_generated == 0 and n:
            result[0] = self._first_point[0].to(dtype)
        if n:
            self.quasi = points[-1].clone()
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out=None, dtype=None):
        """The next 2^m points; see `draw`.

        Raises:
            ValueError: together with those drawn before they are not as many as a
                power of 2, so they are not as even as they could be.
        """
        count = 2**m
        total = self.num_generated + count
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been drawn before, and with 2**{m} "
                f"there are {total}; `draw` takes any number."
            )
        return self.draw(count, out=out, dtype=dtype)

    def fast_forward(self, n: int):
        """Leave out the next n points; returns the engine."""
        self.num_generated += n
        if self.num_generated:
            self.quasi = self._points(self.num_generated - 1, 1)[0]
        return self

    def reset(self):
        """Begin again with the first point; returns the engine."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] * bool(self.scramble)
        shown += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"


def _directions(dimension: int, bits: int) -> list[list[int]]:
    """Direction numbers [dimension, bits], as integers of so many bits."""
    from taeda._sobol_numbers import rows

    found = [[1] * bits]
    for degree, polynomial, numbers in rows(dimension - 1):
        for _ in range(bits - degree):
            value = numbers[-degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    value ^= numbers[-k] << k
            numbers.append(value)
        found.append(numbers[:bits])
    return [[m << (bits - 1 - j) for j, m in enumerate(row)] for row in found]
