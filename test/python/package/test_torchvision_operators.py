"""Operators declared in place of torchvision's library, against their definitions."""

from __future__ import annotations

import math

import pytest
import taeda


@pytest.fixture(scope="module")
def vision(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "torchvision" / "_C.so"
    taeda.ops.load_library(str(path))
    assert str(path) in taeda.ops.loaded_libraries
    yield taeda.ops.torchvision
    taeda.ops._torchvision._destroy()


def boxes(count: int, size: float, seed: int) -> taeda.Tensor:
    made = taeda.Generator().manual_seed(seed)
    corner = taeda.rand(count, 2, generator=made, dtype=taeda.float64) * size * 0.6
    extent = taeda.rand(count, 2, generator=made, dtype=taeda.float64) * size * 0.5
    return taeda.cat([corner, corner + extent + 0.1], 1)


def regions(count: int, size: float, batch: int, seed: int = 1) -> taeda.Tensor:
    image = (taeda.arange(count) % batch).to(taeda.float64)[:, None]
    return taeda.cat([image, boxes(count, size, seed)], 1)


def overlap(a: list, b: list) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    area = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return shared / (sum(area) - shared)


@pytest.mark.parametrize("threshold", [0.1, 0.4, 0.8])
def test_boxes_that_overlap_no_better_one_stay(vision, threshold: float) -> None:
    given, scores = boxes(30, 10, 3), taeda.rand(30).round(decimals=1)
    order = sorted(range(30), key=lambda i: (-float(scores[i]), i))
    kept: list[int] = []
    for i in order:
        row = given[i].tolist()
        if all(overlap(given[j].tolist(), row) <= threshold for j in kept):
            kept.append(i)
    assert vision.nms(given, scores, threshold).tolist() == kept
    assert vision.nms(given[:0], scores[:0], threshold).tolist() == []


def interpolated(image: list, y: float, x: float) -> float:
    """At a point; up to one element outside the rim's element, further out 0."""
    rows, columns = len(image), len(image[0])
    if not (-1 <= y <= rows and -1 <= x <= columns):
        return 0
    y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    low_y, low_x = int(y), int(x)
    total = 0.0
    for j in (low_y, min(low_y + 1, rows - 1)):
        for i in (low_x, min(low_x + 1, columns - 1)):
            by = 1 - (y - low_y) if j == low_y else y - low_y
            bx = 1 - (x - low_x) if i == low_x else x - low_x
            total += by * bx * image[j][i]
    return total


def bin_mean(image, roi, bins, ratio, at, shift, least) -> float:
    left, top, right, bottom = (v - shift for v in roi)
    width, height = (max(e, 1) if least else e for e in (right - left, bottom - top))
    steps = height / bins[0], width / bins[1]
    counts = [ratio or math.ceil(step) for step in steps]
    points = [
        interpolated(
            image,
            top + (at[0] + (j + 0.5) / counts[0]) * steps[0],
            left + (at[1] + (i + 0.5) / counts[1]) * steps[1],
        )
        for j in range(counts[0])
        for i in range(counts[1])
    ]
    return sum(points) / max(len(points), 1)


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [True, False])
def test_aligned_regions_are_means_of_points(vision, ratio, aligned) -> None:
    x, rois = taeda.randn(2, 3, 9, 11, dtype=taeda.float64), regions(5, 24, 2)
    scale, bins = 0.5, (2, 3)
    found = vision.roi_align(x, rois, scale, *bins, ratio, aligned)
    for k, (image, *roi) in enumerate(rois.tolist()):
        scaled = [v * scale for v in roi]
        for c, j, i in [(0, 0, 0), (1, 1, 2), (2, 0, 1)]:
            plane = x[int(image), c].tolist()
            shift = 0.5 * aligned
            wanted = bin_mean(plane, scaled, bins, ratio, (j, i), shift, not aligned)
            assert found[k, c, j, i].item() == pytest.approx(wanted, abs=1e-9)


def test_aligned_regions_by_position(vision) -> None:
    x, rois = taeda.randn(2, 12, 9, 11, dtype=taeda.float64), regions(4, 24, 2)
    found, channels = vision.ps_roi_align(x, rois, 0.5, 2, 3, 2)
    assert found.shape == (4, 2, 2, 3) and channels.dtype == taeda.int32
    for k, (image, *roi) in enumerate(rois.tolist()):
        for c, j, i in [(0, 0, 0), (1, 1, 2), (0, 1, 1)]:
            assert channels[k, c, j, i] == (c * 2 + j) * 3 + i
            plane = x[int(image), (c * 2 + j) * 3 + i].tolist()
            roi_ = [v * 0.5 for v in roi]
            wanted = bin_mean(plane, roi_, (2, 3), 2, (j, i), 0.5, False)
            assert found[k, c, j, i].item() == pytest.approx(wanted, abs=1e-9)


def whole_bin(roi, bins, at, size, more: int, last: int):
    """Ranges of rows and of columns of a bin with bounds at whole elements."""
    left, top, right, bottom = (int(v + 0.5) for v in roi)
    ranges = []
    for first, end, axis in ((top, bottom, 0), (left, right, 1)):
        step = max(end - first + more, 1) / bins[axis]
        limit = size[axis] - last
        begin = min(max(math.floor(at[axis] * step) + first, 0), limit)
        stop = min(max(math.ceil((at[axis] + 1) * step) + first, 0), limit)
        ranges.append(range(begin, stop))
    return ranges


def test_whole_regions_take_the_largest_or_the_mean(vision) -> None:
    x, rois = taeda.randn(2, 6, 9, 11, dtype=taeda.float64), regions(4, 20, 2)
    largest, places = vision.roi_pool(x, rois, 0.5, 2, 3)
    mean, channels = vision.ps_roi_pool(x, rois, 0.5, 2, 3)
    for k, (image, *roi) in enumerate(rois.tolist()):
        scaled = [v * 0.5 for v in roi]
        for j, i in [(0, 0), (1, 2), (0, 1)]:
            rows, columns = whole_bin(scaled, (2, 3), (j, i), (9, 11), 1, 0)
            plane = x[int(image), 1]
            seen = {(y, c): plane[y, c].item() for y in rows for c in columns}
            place = max(seen, key=seen.get) if seen else None
            assert largest[k, 1, j, i].item() == (seen[place] if seen else 0)
            wanted = place[0] * 11 + place[1] if seen else -1
            assert places[k, 1, j, i].item() == wanted
            rows, columns = whole_bin(scaled, (2, 3), (j, i), (9, 11), 0, 1)
            plane = x[int(image), channels[k, 0, j, i].item()]
            seen = [plane[y, c].item() for y in rows for c in columns]
            wanted = sum(seen) / max(len(seen), 1)
            assert mean[k, 0, j, i].item() == pytest.approx(wanted, abs=1e-12)


BACKWARD = {
    "roi_align": ((2, False), (), (2, False)),
    "ps_roi_align": ((2,), (2,), ()),
    "roi_pool": ((), (), ()),
    "ps_roi_pool": ((), (), ()),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_of_regions_are_differences(vision, name: str) -> None:
    x, rois = taeda.randn(2, 6, 9, 11, dtype=taeda.float64), regions(4, 20, 2)
    given, before, behind = BACKWARD[name]
    forward = getattr(vision, name)

    def value(x):
        out = forward(x, rois, 0.5, 2, 3, *given)
        return out if isinstance(out, tuple) else (out,)

    out, *rest = value(x)
    grad = taeda.randn_like(out)
    backward = getattr(vision, f"_{name}_backward")
    found = backward(grad, rois, *rest, 0.5, 2, 3, *before, *x.shape, *behind)
    step = taeda.randn_like(x) * 1e-6
    moved = (value(x + step)[0] - value(x - step)[0]) / 2
    assert (found * step).sum().item() == pytest.approx(
        (grad * moved).sum().item(), rel=1e-4
    )


@pytest.mark.parametrize("use_mask", [True, False])
def test_a_convolution_at_moved_places(vision, use_mask: bool) -> None:
    x = taeda.randn(2, 4, 7, 8, dtype=taeda.float64)
    weight = taeda.randn(6, 2, 3, 3, dtype=taeda.float64)
    bias = taeda.randn(6, dtype=taeda.float64)
    conv = (2, 1, 1, 1, 1, 2, 2, 2, use_mask)
    plain = taeda.nn.functional.conv2d(x, weight, bias, (2, 1), (1, 1), (1, 2), 2)
    still = x.new_zeros(2, 36, *plain.shape[2:])
    mask = taeda.full((2, 18, *plain.shape[2:]), 0.5, dtype=taeda.float64)
    found = vision.deform_conv2d(x, weight, still, mask, bias, *conv)
    factor = 0.5 if use_mask else 1.0
    wanted = (plain - bias[:, None, None]) * factor + bias[:, None, None]
    taeda.testing.assert_close(found, wanted)

    given = [x, weight, taeda.randn_like(still) * 0.7, mask, bias]
    grad = taeda.randn_like(found)
    gradients = vision._deform_conv2d_backward(grad, *given, *conv)
    for i, found in enumerate(gradients):
        step = taeda.randn_like(given[i]) * 1e-6
        ends = [[*given[:i], given[i] + s * step, *given[i + 1 :]] for s in (1, -1)]
        up, down = (vision.deform_conv2d(*end, *conv) for end in ends)
        moved = ((up - down) / 2 * grad).sum().item()
        assert (found * step).sum().item() == pytest.approx(moved, rel=1e-3, abs=1e-9)


def test_what_has_no_kernel_says_so(vision) -> None:
    assert vision._cuda_version() == -1
    with pytest.raises(NotImplementedError, match="torchvision::qnms"):
        vision.qnms(taeda.ones(1, 4), taeda.ones(1), 0.5)
