"""The operators of torchvision's compiled part, as functions of this library.

That part is built against PyTorch's libraries and cannot be opened without them;
`taeda.ops.load_library` declares these in its place. Definitions follow the
documentation of `torchvision.ops`. Boxes are rows (x1, y1, x2, y2); regions are rows
(image of the batch, x1, y1, x2, y2).

What a bin of a region reads is a grid of elements: some rows times some columns, each
with a weight, since interpolation and bounds treat the two axes apart.
"""

from __future__ import annotations

import taeda
from taeda.library import Library

__all__ = ["declare"]

_SIZES = "int batch_size, int channels, int height, int width"
_BINS = "float spatial_scale, int pooled_height, int pooled_width"
_CONV = (
    "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
    "int groups, int offset_groups, bool use_mask"
)
_TENSORS = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_SCHEMAS = f"""
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
roi_align(Tensor input, Tensor rois, {_BINS}, int sampling_ratio, bool aligned) \
-> Tensor
_roi_align_backward(Tensor grad, Tensor rois, {_BINS}, {_SIZES}, int sampling_ratio, \
bool aligned) -> Tensor
ps_roi_align(Tensor input, Tensor rois, {_BINS}, int sampling_ratio) -> (Tensor, Tensor)
_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, \
int sampling_ratio, {_SIZES}) -> Tensor
roi_pool(Tensor input, Tensor rois, {_BINS}) -> (Tensor, Tensor)
_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_BINS}, {_SIZES}) -> Tensor
ps_roi_pool(Tensor input, Tensor rois, {_BINS}) -> (Tensor, Tensor)
_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_BINS}, \
{_SIZES}) -> Tensor
deform_conv2d({_TENSORS}, {_CONV}) -> Tensor
_deform_conv2d_backward(Tensor grad, {_TENSORS}, {_CONV}) -> (Tensor, Tensor, Tensor, \
Tensor, Tensor)
_cuda_version() -> int
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qroi_align(Tensor input, Tensor rois, {_BINS}, int sampling_ratio, bool aligned) \
-> Tensor
box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor
"""


def declare() -> Library:
    """The library of them; quantized and rotated boxes have no kernel."""
    library = Library("torchvision", "DEF")
    for line in _SCHEMAS.replace("\\\n", "").strip().splitlines():
        library.define(line)
        name = line.partition("(")[0]
        kernel = globals().get(f"_kernel{'' if name[0] == '_' else '_'}{name}")
        if kernel is not None:
            library.impl(name, kernel, "CPU" if "()" not in line else "")
    return library


def _kernel_cuda_version() -> int:
    """-1: there are no kernels for GPUs."""
    return -1


def _kernel_nms(boxes, scores, threshold):
    """Places of the boxes that overlap no better one, from the best score on."""
    order = scores.argsort(stable=True, descending=True)
    left, top, right, bottom = boxes[order].unbind(1)
    area = (right - left) * (bottom - top)
    dropped, kept = taeda.zeros(len(order), dtype=taeda.bool), []
    for i in range(len(order)):
        if dropped[i]:
            continue
        kept.append(i)
        width = right[i + 1 :].clamp(max=right[i]) - left[i + 1 :].clamp(min=left[i])
        height = bottom[i + 1 :].clamp(max=bottom[i]) - top[i + 1 :].clamp(min=top[i])
        shared = width.clamp(min=0) * height.clamp(min=0)
        dropped[i + 1 :] |= shared / (area[i] + area[i + 1 :] - shared) > threshold
    return order[kept]


# Regions: what bins read along one axis is (elements, weights), two tensors of
# [regions, bins, points]; weights that are 0 stand where there are fewer points.


def _sampled(start, length, bins: int, ratio: int, size: int):
    """Points of bins, each as the two elements that it lies between.

    A point at x between elements i and i + 1 is (i + 1 - x, x - i) of them; up to one
    element outside of the image it is the element at the rim, further out nothing.
    """
    step = length / bins
    counts = taeda.full_like(start, ratio) if ratio > 0 else step.ceil()
    counts = counts.clamp(min=1)[:, None]
    each = taeda.arange(int(counts.max()) if len(counts) else 1).to(start.dtype)
    at = taeda.arange(bins).to(start.dtype)[:, None] + ((each + 0.5) / counts)[:, None]
    at = start[:, None, None] + at * step[:, None, None]
    is_seen = (at >= -1) & (at <= size) & (each < counts)[:, None]
    if ratio <= 0:
        is_seen = is_seen & (step > 0)[:, None, None]
    at = at.clamp(0, size - 1)
    low = at.floor()
    share, mean = at - low, is_seen / counts[:, None]
    low = low.to(taeda.int64)
    return (low, (1 - share) * mean), ((low + 1).clamp(max=size - 1), share * mean)


def _aligned(rois, scale, bins, ratio, shift, least, sizes):
    """What bins of regions read: points of rows and of columns."""
    left, top, right, bottom = (rois[:, 1:] * scale - shift).unbind(1)
    width, height = right - left, bottom - top
    if least:
        width, height = width.clamp(min=1), height.clamp(min=1)
    return (
        _sampled(top, height, bins[0], ratio, sizes[0]),
        _sampled(left, width, bins[1], ratio, sizes[1]),
    )


def _whole(rois, scale, bins, more: int, last: int, sizes):
    """The same of bins with bounds at whole elements: each is the mean of its own.

    Args:
        more: how many elements a region has more than its bounds lie apart.
        last: how many elements at the end of the image bounds never reach.
    """
    scaled = rois[:, 1:] * scale
    rounded = scaled.sign() * (scaled.abs() + 0.5).floor()  # halves outwards
    left, top, right, bottom = rounded.to(taeda.int64).unbind(1)
    axes = []
    for first, end, count, size in zip(
        (top, left), (bottom, right), bins, sizes, strict=True
    ):
        step = ((end - first + more).clamp(min=1).to(taeda.float32) / count)[:, None]
        each = taeda.arange(count)
        begin = (each * step).floor().to(taeda.int64) + first[:, None]
        stop = ((each + 1) * step).ceil().to(taeda.int64) + first[:, None]
        begin, stop = (e.clamp(0, size - last)[..., None] for e in (begin, stop))
        most = int((stop - begin).max()) if len(rois) else 1
        at = begin + taeda.arange(max(most, 1))
        weight = (at < stop) / (stop - begin).clamp(min=1).to(rois.dtype)
        axes.append(((at.clamp(max=size - 1), weight),))
    return tuple(axes)


def _each_grid(rois, axes, channels, shape, values):
    """Parts of a computation over regions, so that none of them is large.

    Args:
        axes: what bins read of rows and of columns.
        channels: [1, results, bins or 1, bins or 1], the channel of each result.
        shape: of the images, [batch, channels, rows, columns].
        values: [regions, results, bins, bins], of which each part is given too.

    Yields:
        Per part and pair of (rows, columns): the part's number, its elements in the
        flattened images and their weights, [regions, results, bins, bins, points,
        points], and its values with two dims of 1 behind them.
    """
    rows, columns = shape[2:]
    points = axes[0][0][0].shape[2] * axes[1][0][0].shape[2]
    step = max(1, 2**22 // max(1, values[0].numel() * points if len(values) else 1))
    for part, first in enumerate(range(0, len(rois), step)):
        of = slice(first, first + step)
        image = rois[of, 0].to(taeda.int64).view(-1, 1, 1, 1)
        plane = ((image * shape[1] + channels) * rows)[..., None, None]
        for down, by_row in axes[0]:
            for across, by_column in axes[1]:
                row = plane + down[of, None, :, None, :, None]
                place = row * columns + across[of, None, None, :, None, :]
                weight = by_row[of, None, :, None, :, None]
                weight = weight * by_column[of, None, None, :, None, :]
                yield part, place, weight, values[of, ..., None, None]


def _pooled(input, rois, axes, channels, bins):
    values = input.new_empty(len(rois), channels.shape[1], *bins)
    flat, parts = input.flatten(), {}
    grids = _each_grid(rois, axes, channels, input.shape, values)
    for part, place, weight, _ in grids:
        found = (flat[place] * weight).sum((-1, -2))
        parts[part] = parts[part] + found if part in parts else found
    return taeda.cat([*parts.values()]) if parts else values


def _spread(grad, rois, axes, channels, shape):
    made = grad.new_zeros(shape)
    for _, place, weight, part in _each_grid(rois, axes, channels, shape, grad):
        share = (part * weight).expand(place.shape)
        made.view(-1).index_add_(0, place.flatten(), share.flatten())
    return made


def _all_channels(count: int):
    return taeda.arange(count).view(1, count, 1, 1)


def _kernel_roi_align(input, rois, scale, height, width, ratio, aligned):
    bins, shift = (height, width), 0.5 * aligned
    axes = _aligned(rois, scale, bins, ratio, shift, not aligned, input.shape[2:])
    return _pooled(input, rois, axes, _all_channels(input.shape[1]), bins)


def _kernel_roi_align_backward(
    grad, rois, scale, height, width, batch, channels, rows, columns, ratio, aligned
):
    bins, shift, sizes = (height, width), 0.5 * aligned, (rows, columns)
    axes = _aligned(rois, scale, bins, ratio, shift, not aligned, sizes)
    shape = batch, channels, rows, columns
    return _spread(grad, rois, axes, _all_channels(channels), shape)


# Position-sensitive regions: each bin reads a channel of its own


def _channels_of_bins(channels: int, bins: tuple[int, int]):
    return taeda.arange(channels).view(1, channels // (bins[0] * bins[1]), *bins)


def _pooled_by_position(input, rois, axes, bins):
    channels = _channels_of_bins(input.shape[1], bins)
    mapping = channels.to(taeda.int32).expand(len(rois), -1, -1, -1).contiguous()
    return _pooled(input, rois, axes, channels, bins), mapping


def _kernel_ps_roi_align(input, rois, scale, height, width, ratio):
    bins = height, width
    axes = _aligned(rois, scale, bins, ratio, 0.5, False, input.shape[2:])
    return _pooled_by_position(input, rois, axes, bins)


def _kernel_ps_roi_align_backward(
    grad, rois, mapping, scale, height, width, ratio, batch, channels, rows, columns
):
    bins = height, width
    axes = _aligned(rois, scale, bins, ratio, 0.5, False, (rows, columns))
    shape = batch, channels, rows, columns
    return _spread(grad, rois, axes, _channels_of_bins(channels, bins), shape)


def _kernel_ps_roi_pool(input, rois, scale, height, width):
    bins = height, width
    axes = _whole(rois, scale, bins, 0, 1, input.shape[2:])
    return _pooled_by_position(input, rois, axes, bins)


def _kernel_ps_roi_pool_backward(
    grad, rois, mapping, scale, height, width, batch, channels, rows, columns
):
    bins, shape = (height, width), (batch, channels, rows, columns)
    axes = _whole(rois, scale, bins, 0, 1, shape[2:])
    return _spread(grad, rois, axes, _channels_of_bins(channels, bins), shape)


def _kernel_roi_pool(input, rois, scale, height, width):
    bins, (rows, columns) = (height, width), input.shape[2:]
    axes = _whole(rois, scale, bins, 1, 0, (rows, columns))
    values = input.new_empty(len(rois), input.shape[1], *bins)
    channels, flat = _all_channels(input.shape[1]), input.flatten()
    largest, places = [values[:0]], [values[:0].to(taeda.int32)]
    grids = _each_grid(rois, axes, channels, input.shape, values)
    for _, place, weight, _ in grids:
        is_read = (weight > 0).expand(place.shape).flatten(-2)
        place = place.flatten(-2)
        value, at = flat[place].where(is_read, -float("inf")).max(-1)
        is_empty = ~is_read.any(-1)
        largest.append(value.masked_fill(is_empty, 0))
        at = place.gather(-1, at[..., None])[..., 0] % (rows * columns)
        places.append(at.masked_fill(is_empty, -1).to(taeda.int32))
    return taeda.cat(largest), taeda.cat(places)


def _kernel_roi_pool_backward(
    grad, rois, argmax, scale, height, width, batch, channels, rows, columns
):
    made, size = grad.new_zeros(batch, channels, rows, columns), rows * columns
    image = rois[:, 0].to(taeda.int64).view(-1, 1, 1, 1)
    plane = (image * channels + _all_channels(channels)) * size
    place = plane + argmax.clamp(min=0)
    share = grad.masked_fill(argmax < 0, 0)
    made.view(-1).index_add_(0, place.flatten(), share.flatten())
    return made


# Convolution at places that are moved


def _points(image, y, x):
    """Values of [..., H, W] at points [..., N], interpolated; outside it is 0."""
    height, width = image.shape[-2:]
    flat, out = image.flatten(-2), 0
    for row in (y.floor(), y.floor() + 1):
        for column in (x.floor(), x.floor() + 1):
            weight = (1 - (y - row).abs()) * (1 - (x - column).abs())
            is_in = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (row * width + column).where(is_in, 0).to(taeda.int64)
            found = flat.gather(-1, place.expand(*flat.shape[:-1], -1))
            out = out + found * (weight * is_in)
    return out


def _deformed(input, weight, offset, mask, bias, conv):
    stride, padding, dilation = conv[0:2], conv[2:4], conv[4:6]
    groups, parts, use_mask = conv[6:]
    batch, channels = input.shape[:2]
    taps = weight.shape[2] * weight.shape[3]
    rows, columns = offset.shape[2:]
    moved = offset.view(batch, parts, 1, taps, 2, rows, columns)

    def places(axis: int):
        tap = taeda.arange(weight.shape[2 + axis]) * dilation[axis]
        at = taeda.arange((rows, columns)[axis]) * stride[axis] - padding[axis]
        tap, at = (tap[:, None], at[:, None]) if axis == 0 else (tap[None], at[None])
        tap = tap.expand(weight.shape[2:]).reshape(taps, 1, 1)
        return (moved[:, :, :, :, axis] + (tap + at).to(input.dtype)).flatten(3)

    image = input.unflatten(1, (parts, channels // parts))
    read = _points(image, places(0), places(1))
    read = read.unflatten(-1, (taps, rows * columns))
    if use_mask:
        read = read * mask.view(batch, parts, 1, taps, rows * columns)
    read = read.reshape(batch, groups, channels // groups * taps, rows * columns)
    kernel = weight.reshape(groups, weight.shape[0] // groups, -1)
    out = (kernel @ read).reshape(batch, weight.shape[0], rows, columns)
    return out + bias[:, None, None]


def _kernel_deform_conv2d(input, weight, offset, mask, bias, *conv):
    return _deformed(input, weight, offset, mask, bias, conv)


def _kernel_deform_conv2d_backward(grad, input, weight, offset, mask, bias, *conv):
    given = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
    with taeda.enable_grad():
        out = _deformed(*given, conv)
    found = taeda.autograd.grad(out, given, grad, allow_unused=True)
    made = [
        taeda.zeros_like(t) if g is None else g
        for g, t in zip(found, given, strict=True)
    ]
    return tuple(made)
