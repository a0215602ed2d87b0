"""Line search under the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6 with cubic
interpolation (equation 3.59), and the safeguards of minFunc.
"""

from __future__ import annotations

_DECREASE, _CURVATURE = 1e-4, 0.9  # c1 and c2 of the conditions
_LEAST_WIDTH = 1e-9


class _Point:
    """A step length, with the loss, gradient and slope found there."""

    __slots__ = ("g", "loss", "slope", "t")

    def __init__(self, t, loss, g, slope) -> None:
        self.t, self.loss, self.g, self.slope = t, loss, g, slope


def cubic_minimum(a: _Point, b: _Point, bounds=None):
    """Where the cubic through two points with slopes is least, within bounds."""
    low, high = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if a.t <= b.t:
        part = (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
        best = b.t - (b.t - a.t) * part
    else:
        part = (a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2)
        best = a.t - (a.t - b.t) * part
    return min(max(best, low), high)


def strong_wolfe(probe, t, d, loss, g, slope, limit: int):
    """Find a step length.

    Args:
        probe: length -> (loss, gradient) there.
        t: first length. d: direction. limit: how many more probes.
        loss, g, slope: at length 0.

    Returns: loss, gradient, length, number of probes.
    """
    reach = d.abs().max()
    origin = _Point(0, loss, g.clone(), slope)

    def look(length) -> _Point:
        value, gradient = probe(length)
        return _Point(length, value, gradient, gradient.dot(d))

    def too_high(p: _Point) -> bool:
        return p.loss > loss + _DECREASE * p.t * slope

    def flat(p: _Point) -> bool:
        return abs(p.slope) <= -_CURVATURE * slope

    before, now, tries = origin, look(t), 0
    while tries < limit:
        if too_high(now) or (tries > 1 and now.loss >= before.loss):
            break
        if flat(now):
            return now.loss, now.g, now.t, tries + 1
        if now.slope >= 0:
            break
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        length = cubic_minimum(before, now, bounds)
        before, now = now, look(length)
        tries += 1
    else:
        before = origin
    best, tries = _zoom(before, now, look, too_high, flat, reach, tries, limit)
    return best.loss, best.g, best.t, tries + 1


def _zoom(a, b, look, too_high, flat, reach, tries, limit):
    """Shrink the bracket [a, b] until a point in it meets both conditions."""
    ends, slow = [a, b], False
    low, high = (0, 1) if a.loss <= b.loss else (1, 0)
    while tries < limit:
        if abs(ends[1].t - ends[0].t) * reach < _LEAST_WIDTH:
            break
        length, slow = _inside(cubic_minimum(*ends), ends, slow)
        now = look(length)
        tries += 1
        if too_high(now) or now.loss >= ends[low].loss:
            ends[high] = now
            low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
            continue
        found = flat(now)
        if not found and now.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = now
        if found:
            break
    return ends[low], tries


def _inside(length, ends, slow: bool):
    """Keep a length off the ends of its bracket when progress there is small."""
    least, most = min(p.t for p in ends), max(p.t for p in ends)
    margin = 0.1 * (most - least)
    if min(most - length, length - least) >= margin:
        return length, False
    if not slow and least < length < most:
        return length, True
    near_top = abs(length - most) < abs(length - least)
    return (most - margin if near_top else least + margin), False
