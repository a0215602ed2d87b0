"""Refusals that need more than one expression, or something undone afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest
import taeda
from taeda import nn


def refuses(kind, text: str):
    return pytest.raises(kind, match=text)


def test_dual_levels(torch) -> None:
    for library in (torch, taeda):
        levels = library.autograd.forward_ad
        with refuses(RuntimeError, "no level exists"):
            levels.make_dual(library.ones(1), library.ones(1))
        with levels.dual_level(), refuses(RuntimeError, "Nested forward mode"):
            levels.enter_dual_level()


def test_hooks_of_the_two_kinds_do_not_mix_globally(torch) -> None:
    for library in (torch, taeda):
        hooks = library.nn.modules.module
        handle = hooks.register_module_backward_hook(lambda *a: None)
        try:
            with refuses(RuntimeError, "global Module hook"):
                hooks.register_module_full_backward_hook(lambda *a: None)
        finally:
            handle.remove()
            taeda.nn.modules._hooks._global_is_full_backward_hook = None
            torch.nn.modules.module._global_is_full_backward_hook = None


def test_a_hook_of_a_module_that_is_gone(torch) -> None:
    for library in (torch, taeda):
        layer = library.nn.Linear(1, 1)
        wrapped = library.nn.modules.module._WrappedHook(print, layer)
        state = {**wrapped.__getstate__(), "module": None}
        del layer
        with refuses(RuntimeError, "the hook of a dead Module"):
            wrapped(1)
        with refuses(RuntimeError, "revive the hook of a dead Module"):
            wrapped.__setstate__(state)


def test_names_of_trusted_classes() -> None:
    with refuses(ValueError, "a pair .global, name., got 1"):
        taeda.serialization.safe_globals([(abs,)]).__enter__()
    with refuses(TypeError, "a name as second item, got <class 'int'>"):
        taeda.serialization.safe_globals([(abs, 1)]).__enter__()


def test_device_moves_of_modules(torch) -> None:
    for library in (torch, taeda):
        with refuses(NotImplementedError, "to_empty"):
            library.nn.Linear(1, 1, device="meta").to("cpu")


def test_lists_of_spectral_norm_state(torch) -> None:
    for library in (torch, taeda):
        layer = library.nn.utils.spectral_norm(library.nn.Linear(2, 2))
        state = layer.state_dict()
        state._metadata[""]["spectral_norm"] = {"x": 1}
        layer.state_dict(destination=None)
        extra = library.nn.Linear(2, 2)
        extra._register_state_dict_hook(
            lambda m, s, p, meta: meta.setdefault(
                "spectral_norm", {"weight.version": 1}
            )
        )
        library.nn.utils.spectral_norm(extra)
        with refuses(RuntimeError, "Unexpected key in metadata"):
            extra.state_dict()


def test_numpy_is_asked_for_where_it_is_missing() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "import taeda\n"
        "try: taeda.ones(1).numpy()\n"
        "except RuntimeError as error: print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Numpy is not available" in run.stdout


def test_fake_kernels_are_compared_with_the_real_ones() -> None:
    from taeda._opcheck import OpCheckError

    library = taeda.library.Library("errors_hand", "DEF")
    library.define("f(Tensor x) -> (Tensor, Tensor)")
    library.impl("f", lambda x: (x, x), "CPU")
    op = taeda.ops.errors_hand.f
    with refuses(OpCheckError, "no fake kernel"):
        taeda.library.opcheck(op, (taeda.ones(1),), test_utils="test_faketensor")


def test_parameters_must_be_leaves() -> None:
    with refuses(ValueError, "Cannot assign non-leaf Tensor to parameter 'a'"):
        made = taeda.ones(1, requires_grad=True) * 1
        nn.Module().register_parameter("a", made.as_subclass(nn.Parameter))


def test_safetensors_names_and_frameworks(tmp_path) -> None:
    from taeda._io import safetensors

    path = tmp_path / "x.safetensors"
    safetensors.save_file({"a": taeda.ones(1)}, path)
    with refuses(ValueError, "framework 'x' is not this library"):
        safetensors.safe_open(path, framework="x")
    with safetensors.safe_open(path, framework="taeda") as file:
        with refuses(safetensors.SafetensorError, "not contain tensor b"):
            file.get_tensor("b")


def test_schemas() -> None:
    from taeda._schema import Schema

    with refuses(ValueError, "without closing parenthesis"):
        Schema("f(Tensor x")
    with refuses(TypeError, "required to be a callable"):
        taeda.library.Library("errors_hand2", "DEF").impl("f", 1)


def test_offsets_of_bags_must_not_fall() -> None:
    # On some processors PyTorch refuses them, on others it reads free memory.
    weight, index = taeda.ones(2, 2), taeda.zeros(2, dtype=taeda.long)
    with refuses(RuntimeError, "offsets must not fall, got 2 before 1"):
        taeda.embedding_bag(weight, index, taeda.tensor([0, 2, 1]))
