"""Operators that only derivatives and layers call refuse what would break them.

`taeda.ops.aten` is public, so a wrong shape, dtype or list must end in an error that
names the operator. Most of these calls were found by test/fuzz/fuzz_operators.py.
"""

from __future__ import annotations

import pytest
import taeda

ONE = taeda.ones(1)
ROWS = taeda.ones(2, 3)
PLANES = taeda.ones(1, 2, 4, 4)
INDEX = taeda.zeros(1, 2, 2, 2, dtype=taeda.int64)
SMALL = taeda.ones(1, 2, 2, 2)
CLASSES = taeda.zeros(2, dtype=taeda.int64)
FLOAT8 = [
    taeda.float8_e4m3fn,
    taeda.float8_e5m2,
    taeda.float8_e4m3fnuz,
    taeda.float8_e5m2fnuz,
    taeda.float8_e8m0fnu,
]

CALLS = {
    "max_pool_dtype": (
        lambda o: o.max_pool2d_with_indices_backward(
            SMALL, PLANES, [2, 2], [2, 2], [0, 0], [1, 1], False, SMALL
        ),
        "max_pool2d_backward: expected indices of dtype int64, got Float",
    ),
    "max_pool_index": (
        lambda o: o.max_pool2d_with_indices_backward(
            SMALL, PLANES, [2, 2], [2, 2], [0, 0], [1, 1], False, INDEX + 16
        ),
        "max_pool2d_backward: index 16 is outside .* 16 elements",
    ),
    "max_pool_planes": (
        lambda o: o.adaptive_max_pool2d_backward(
            taeda.ones(2, 2, 2, 2), PLANES, taeda.zeros(2, 2, 2, 2, dtype=taeda.int64)
        ),
        "adaptive_max_pool2d_backward: expected a gradient with the input's planes",
    ),
    "max_pool_dims": (
        lambda o: o.adaptive_max_pool2d_backward(ONE, ONE, CLASSES[:1]),
        "adaptive_max_pool2d_backward: expected an input with 3 or 4 dims",
    ),
    "batch_norm_mask": (
        lambda o: o.native_batch_norm_backward(
            ROWS, ROWS, None, None, None, ROWS[0], ROWS[0], True, 1e-5, [True]
        ),
        "batch_norm_backward: expected output_mask of length 3, got 1",
    ),
    "batch_norm_mean": (
        lambda o: o.native_batch_norm_backward(
            ROWS, ROWS, None, None, None, ONE, ROWS[0], True, 1e-5, [True] * 3
        ),
        "batch_norm_backward: expected a mean with 3 elements",
    ),
    "batch_norm_nothing_saved": (
        lambda o: o.native_batch_norm_backward(
            ROWS, ROWS, None, None, None, None, None, True, 1e-5, [True] * 3
        ),
        "save_mean and save_invstd are needed",
    ),
    "group_norm_count": (
        lambda o: o.native_group_norm_backward(
            PLANES, PLANES, SMALL, SMALL, None, 5, 4, 1, 2, [True] * 3
        ),
        "group_norm: expected an input of N . C . HxW elements",
    ),
    "group_norm_mean": (
        lambda o: o.native_group_norm_backward(
            PLANES, PLANES, SMALL, SMALL, None, 1, 2, 16, 1, [True] * 3
        ),
        "group_norm_backward: expected mean with 1 elements",
    ),
    "layer_norm_rstd": (
        lambda o: o.native_layer_norm_backward(
            ROWS, ROWS, [3], CLASSES, ONE, None, None, [True] * 3
        ),
        "layer_norm_backward: expected rstd with 2 elements",
    ),
    "cross_entropy_rank": (
        lambda o: o._cross_entropy_rows(PLANES, CLASSES, None, 1, -100),
        "cross_entropy_loss: expected scores of shape",
    ),
    "cross_entropy_target": (
        lambda o: o._cross_entropy_rows(ROWS, CLASSES[:1], None, 1, -100),
        "cross_entropy_loss: expected target of shape",
    ),
    "attention_shapes": (
        lambda o: o._scaled_dot_product_flash_attention_for_cpu(PLANES, SMALL, SMALL),
        "scaled_dot_product_attention: expected query",
    ),
    "attention_gradient": (
        lambda o: o._scaled_dot_product_flash_attention_for_cpu_backward(
            SMALL, PLANES, PLANES, PLANES, PLANES, taeda.ones(1, 2, 4), 0.0, False
        ),
        "scaled_dot_product_attention_backward: expected grad_out of shape",
    ),
    "fused_sgd": (
        lambda o: o._fused_sgd_(
            [ONE],
            [],
            [],
            weight_decay=0.0,
            momentum=0.0,
            lr=1.0,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=True,
        ),
        "_fused_sgd_: expected one tensor per parameter .1., got 0",
    ),
    "foreach_pow": (
        lambda o: o._foreach_pow.ScalarList([ONE, ONE], [2]),
        "same number of elements as scalar list, got 2 and 1",
    ),
    "cdist": (
        lambda o: o._cdist_backward(ROWS, ROWS, ROWS, 2.0, ROWS),
        "cdist_backward: expected grad of shape",
    ),
    "softmax": (
        lambda o: o._log_softmax_backward_data(ROWS, ONE, 0, taeda.float32),
        "softmax_backward: expected grad_output of shape",
    ),
    "picked": (
        lambda o: o.value_selecting_reduction_backward(ONE, 0, ONE, [3], True),
        "value_selecting_reduction_backward: expected indices of dtype int64",
    ),
    "scalar_of_many": (
        lambda o: o._local_scalar_dense(ROWS),
        "_local_scalar_dense: expected a tensor with one element",
    ),
    "set_offset": (
        lambda o: o.set_.source_Tensor_storage_offset(
            taeda.ones(2), taeda.ones(2), -1, [1], [1]
        ),
        "set_: Negative storage_offset not supported, got -1",
    ),
    "alias": (
        lambda o: o._reshape_alias(taeda.ones(0), [2], [1]),
        "out of bounds for storage of size 0",
    ),
    "solve": (lambda o: o.linalg_solve_ex(ONE[0], ROWS), "linalg.solve_ex: "),
    "too_large": (
        lambda o: o.adaptive_avg_pool1d(ROWS, [2**55]),
        "adaptive_avg_pool.* does not fit into memory",
    ),
    "unpadding": (
        lambda o: o._pad_packed_sequence(ROWS, taeda.tensor([1, 2]), True, 0.0, 0),
        "_pad_packed_sequence: expected positive batch_sizes that do not grow",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_are_refused(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(RuntimeError, match=message):
        call(taeda.ops.aten)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, d: x.sum(dtype=d),
        lambda x, d: x.mean(dtype=d),
        lambda x, d: x.to(d).argmax(),
        lambda x, d: x.to(d).median(),
        lambda x, d: x.to(d).mode(),
        lambda x, d: x.to(d).sort(),
        lambda x, d: x.to(d).topk(1),
        lambda x, d: x.to(d).cumsum(0),
        lambda x, d: x.to(d).cummax(0),
        lambda x, d: x.to(d).softmax(0),
        lambda x, d: x.log_softmax(0, dtype=d),
    ],
)
def test_stored_only_dtypes_are_not_computed_in(call, dtype: taeda.dtype) -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8"):
        call(taeda.ones(3), dtype)


def test_half_complex_numbers_are_summed_in_wider_ones() -> None:
    x = taeda.tensor([1 + 2j, 3 - 1j], dtype=taeda.complex32)
    assert x.cumsum(0).tolist() == [1 + 2j, 4 + 1j]
