"""sdpa_kernel and backends.cuda choose the kernel of attention, or it refuses."""

from __future__ import annotations

import threading

import pytest
import taeda
import torch
from taeda.nn.attention import SDPBackend, sdpa_kernel

attend = taeda.nn.functional.scaled_dot_product_attention
cuda = taeda.backends.cuda
MATH, FLASH = SDPBackend.MATH, SDPBackend.FLASH_ATTENTION
OTHERS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]


def qkv(*shape, **options):
    return [taeda.randn(*shape or (2, 2, 5, 4), **options) for _ in range(3)]


def chosen(x, **options) -> SDPBackend:
    return SDPBackend(taeda._fused_sdp_choice(*x, **options))


def recorded(x) -> str:
    """The name of the node that attention leaves behind."""
    x = [t.requires_grad_() for t in x]
    return attend(*x).grad_fn.name()


def test_the_kernel_that_runs_is_the_one_allowed() -> None:
    x = qkv()
    assert "ScaledDotProductFlash" in recorded(x)
    with sdpa_kernel(MATH):
        assert chosen(x) is MATH and "ScaledDotProduct" not in recorded(x)
    with sdpa_kernel([FLASH]):
        assert chosen(x) is FLASH and "ScaledDotProductFlash" in recorded(x)
    assert chosen(x) is FLASH


def test_both_kernels_agree() -> None:
    x = qkv(dtype=taeda.float64)
    with sdpa_kernel(MATH):
        want = attend(*x, is_causal=True)
    with sdpa_kernel(FLASH):
        taeda.testing.assert_close(attend(*x, is_causal=True), want)


def test_a_case_that_no_allowed_kernel_has_is_refused() -> None:
    x = qkv()
    with sdpa_kernel(FLASH):
        with pytest.raises(RuntimeError, match="No available kernel.*no dropout"):
            attend(*x, dropout_p=0.5)
        mask = taeda.zeros(5, 5, requires_grad=True)
        with pytest.raises(RuntimeError, match="No available kernel.*attn_mask"):
            attend(*x, attn_mask=mask)
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(*qkv(dtype=taeda.complex64))
    for backends in (OTHERS, [], [SDPBackend.ERROR]):
        with sdpa_kernel(backends), pytest.raises(RuntimeError, match="No viable"):
            attend(*x)
    assert attend(*x, dropout_p=0.5).shape == (2, 2, 5, 4)


@pytest.mark.parametrize("order", [[MATH, FLASH], [FLASH, MATH]])
def test_the_priority_is_the_order_of_the_list(order) -> None:
    x = qkv()
    with sdpa_kernel(order, set_priority=True):
        assert chosen(x) is order[0]
        assert chosen(x, dropout_p=0.5) is MATH
    with sdpa_kernel(order):
        assert chosen(x) is FLASH


def test_the_switches_of_the_backend_are_the_same_state() -> None:
    names = ("flash", "math", "mem_efficient", "cudnn")

    def shown(library) -> list[bool]:
        functions = vars(library.backends.cuda)
        return [functions[f"{name}_sdp_enabled"]() for name in names]

    def states(library, kinds):
        attention = library.nn.attention
        picked = [getattr(attention.SDPBackend, kind) for kind in kinds]
        with attention.sdpa_kernel(picked):
            return shown(library)

    for kinds in (["MATH"], ["FLASH_ATTENTION", "MATH"], []):
        assert states(taeda, kinds) == states(torch, kinds)
    assert shown(taeda) == [True] * 4
    cuda.enable_flash_sdp(False)
    try:
        assert chosen(qkv()) is MATH and not cuda.flash_sdp_enabled()
    finally:
        cuda.enable_flash_sdp(True)
    with cuda.sdp_kernel(enable_math=False):
        assert shown(taeda) == [True, False, True, True]
    with pytest.raises(RuntimeError, match="expects a bool"):
        cuda.enable_flash_sdp(1)


def test_the_choice_holds_for_all_threads_as_in_pytorch() -> None:
    seen: list[SDPBackend] = []
    x = qkv()
    with sdpa_kernel(MATH):
        other = threading.Thread(target=lambda: seen.append(chosen(x)))
        other.start()
        other.join()
    assert seen == [MATH]


def test_the_state_comes_back_after_an_error() -> None:
    with pytest.raises(KeyError), sdpa_kernel(MATH):
        raise KeyError
    assert cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    with pytest.raises(AssertionError):
        sdpa_kernel([1])
