"""Dtypes, settings, matrices, records of operators: against PyTorch's helpers."""

from __future__ import annotations

import gc
import importlib
import os
import unittest

import numpy
import pytest
import taeda
import torch


def module(library, name: str):
    found = importlib.import_module(f"{library.__name__}.testing._internal.{name}")
    # PyTorch's forbid settings of backends from their import on, also to other tests.
    flags = torch.backends.disable_global_flags.__globals__
    flags["__allow_nonbracketed_mutation_flag"] = True
    return found


def names(dtypes) -> list[str]:
    return [str(d).rpartition(".")[2] for d in dtypes]


GROUPS = """
empty_types floating_types floating_types_and_half floating_and_complex_types
double_types integral_types all_types all_types_and_half complex_types
all_types_and_complex all_mps_types float8_types get_all_int_dtypes
get_all_fp_dtypes get_all_complex_dtypes get_all_dtypes
""".split()
OPEN_GROUPS = """
floating_types_and floating_and_complex_types_and integral_types_and all_types_and
complex_types_and all_types_and_complex_and all_mps_types_and float8_types_and
all_types_complex_float8_and custom_types
""".split()


@pytest.mark.parametrize("group", GROUPS)
def test_groups_of_dtypes(group) -> None:
    ours, theirs = (
        getattr(module(library, "common_dtype"), group)() for library in (taeda, torch)
    )
    assert sorted(names(ours)) == sorted(names(theirs))


@pytest.mark.parametrize("group", OPEN_GROUPS)
def test_groups_that_take_more_dtypes(group) -> None:
    ours, theirs = (
        getattr(module(library, "common_dtype"), group)(library.half, library.bool)
        for library in (taeda, torch)
    )
    assert sorted(set(names(ours))) == sorted(set(names(theirs)))
    with pytest.raises(AssertionError):
        getattr(module(taeda, "common_dtype"), group)("half")


def test_lists_of_dtypes_with_options() -> None:
    for options in (
        {"include_half": False},
        {"include_bfloat16": False, "include_bool": False},
        {"include_complex": False},
        {"include_complex32": True},
    ):
        found = [
            sorted(names(module(library, "common_dtype").get_all_dtypes(**options)))
            for library in (taeda, torch)
        ]
        assert found[0] == found[1]
    for library in (taeda, torch):
        m = module(library, "common_dtype")
        assert m.highest_precision_float("cpu") == library.float64
        assert m.highest_precision_complex("cpu") == library.complex128
    ours, theirs = (
        sorted(names(module(library, "common_dtype").get_all_math_dtypes("cpu")))
        for library in (taeda, torch)
    )
    assert ours == theirs


def test_settings_hold_for_a_scope() -> None:
    for library in (taeda, torch):
        u = module(library, "common_utils")
        u.set_rng_seed(3)
        before = library.rand(2)
        u.set_rng_seed(3)
        with u.freeze_rng_state():
            inside = library.rand(2)
        assert inside.tolist() == before.tolist() == library.rand(2).tolist()
        with u.set_default_dtype(library.float64):
            assert library.ones(1).dtype == library.float64
        with u.set_default_tensor_type(f"{library.__name__}.DoubleTensor"):
            assert library.ones(1).dtype == library.float64
        assert library.ones(1).dtype == library.float32
        with u.DeterministicGuard(True, warn_only=True):
            assert library.are_deterministic_algorithms_enabled()
            assert library.is_deterministic_algorithms_warn_only_enabled()
        assert not library.are_deterministic_algorithms_enabled()

        @u.wrapDeterministicFlagAPITest
        def changes(library=library):
            library.use_deterministic_algorithms(True)

        if library is taeda:  # PyTorch's wrapper runs a process
            changes()
        assert not library.are_deterministic_algorithms_enabled()
        with u.set_warn_always_context(True):
            assert library.is_warn_always_enabled()
        assert not library.is_warn_always_enabled()
        with u.disable_gc():
            assert not gc.isenabled()
        assert gc.isenabled()


def test_files_folders_and_ports() -> None:
    for library in (taeda, torch):
        u = module(library, "common_utils")
        with u.TemporaryFileName(mode="w") as path:
            assert os.path.getsize(path) == 0
        with u.TemporaryDirectoryName(suffix="x") as folder:
            assert folder.endswith("x")
            with u.set_cwd(folder):
                assert os.path.realpath(os.getcwd()) == os.path.realpath(folder)
        assert not os.path.exists(folder) and not os.path.exists(path)
        assert 0 < u.find_free_port() < 65536
        with u.BytesIOContext(b"a") as file:
            assert file.read() == b"a"


def test_warnings_are_kept_quiet_and_calls_repeated() -> None:
    import warnings

    for library in (taeda, torch):
        u, calls = module(library, "common_utils"), []

        @u.suppress_warnings
        def warns():
            warnings.warn("not shown", stacklevel=1)
            return 3

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert warns() == 3 or library is torch  # whose result is None

        @u.retry(ValueError, tries=3, delay=0)
        def works_at_last(calls=calls):
            calls.append(1)
            if len(calls) < 3:
                raise ValueError
            return "worked"

        assert works_at_last() == "worked" and len(calls) == 3
    u = module(taeda, "common_utils")
    with pytest.raises(ZeroDivisionError):
        u.retry(ZeroDivisionError, tries=2, delay=0)(lambda: 1 / 0)()
    again = u.retry(ZeroDivisionError, tries=2, delay=0, skip_after_retries=True)
    with pytest.raises(unittest.SkipTest, match="after 2 consecutive"):
        again(lambda: 1 / 0)()


def test_gradients_are_checked_quickly() -> None:
    for library in (taeda, torch):
        u = module(library, "common_utils")
        x = library.rand(3, dtype=library.float64, requires_grad=True)
        assert u.gradcheck(library.sin, (x,)) and u.gradgradcheck(library.sin, (x,))
        with pytest.raises(RuntimeError):
            u.gradcheck(lambda t: t * t.detach(), (x,))


SQUARE = """
random_symmetric_matrix random_hermitian_matrix random_symmetric_psd_matrix
random_hermitian_psd_matrix random_symmetric_pd_matrix random_hermitian_pd_matrix
""".split()


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices_are_what_their_names_say(name) -> None:
    found = []
    for library in (taeda, torch):
        library.manual_seed(5)
        dtype = library.complex128 if "hermitian" in name else library.float64
        make = getattr(module(library, "common_utils"), name)
        a = numpy.asarray(make(4, 2, dtype=dtype, device="cpu"))
        assert a.shape == (2, 4, 4)
        numpy.testing.assert_allclose(a, a.conj().swapaxes(-1, -2), atol=1e-12)
        least = numpy.linalg.eigvalsh(a).min()
        assert least > -1e-9 or "psd" not in name and "pd" not in name
        assert least > 0 or "_pd_" not in name
        found.append(a)
    numpy.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_matrices_of_given_values() -> None:
    for library in (taeda, torch):
        u = module(library, "common_utils")
        where = {"dtype": library.float64, "device": "cpu"}
        svd = library.linalg.svdvals
        a = u.make_fullrank_matrices_with_distinct_singular_values(2, 4, 3, **where)
        values = svd(a)
        assert bool((values[:, :-1] - values[:, 1:] > 1e-3).all()) and a.ndim == 3
        well = u.random_well_conditioned_matrix(3, 3, **where, mean=2.0)
        assert float((svd(well) - 2).abs().max()) < 0.1
        rank = library.linalg.matrix_rank
        assert int(rank(u.random_lowrank_matrix(2, 5, 4, **where))) == 2
        assert int(rank(u.random_square_matrix_of_rank(5, 3, **where))) == 3
        assert u.random_matrix(3, 5, 2, **where).shape == (2, 3, 5)
        assert int(rank(u.random_matrix(3, 3, **where, singular=True))) < 3
        pd = u.make_symmetric_pd_matrices(2, 3, 3, **where)
        assert bool((library.linalg.eigvalsh(pd) > 0).all())
        same = u.make_symmetric_matrices(2, 3, 3, **where)
        assert bool((same == same.mT).all())
        with pytest.raises(AssertionError):
            u.make_symmetric_matrices(2, 3, **where)


def test_small_helpers() -> None:
    for library in (taeda, torch):
        u = module(library, "common_utils")
        x = library.arange(6.0).reshape(2, 3).requires_grad_()
        apart = u.noncontiguous_like(x)
        assert not apart.is_contiguous() and apart.requires_grad
        assert apart.tolist() == x.tolist()
        assert u.noncontiguous_like(apart) is apart
        assert list(u.iter_indices(x))[-1] == (1, 2)
        assert list(u.iter_indices(x[0])) == [0, 1, 2]
        assert u.is_iterable([]) and not u.is_iterable(3)
        assert u.is_iterable_of_tensors([x]) and not u.is_iterable_of_tensors([x, 1])
        assert not u.is_iterable_of_tensors(x) and not u.is_iterable_of_tensors([])
        assert u.is_iterable_of_tensors([], include_empty=True)
        assert u.dtype_name(library.float32) == "float32"
        copied = u.clone_input_helper([x, 3])
        assert copied[0] is not x and copied[1] == 3
        assert u.first_sample(None, iter([4])) == 4
        with pytest.raises(unittest.SkipTest):
            u.first_sample(None, iter([]))
        assert u.numpy_to_torch_dtype_dict[numpy.int16] == library.int16
        assert u.torch_to_numpy_dtype_dict[library.bfloat16] == numpy.float32
        assert u.numpy_to_torch_dtype(numpy.dtype("float32")) == library.float32
        with pytest.raises((ValueError, KeyError)):
            u.numpy_to_torch_dtype(numpy.dtype("datetime64[s]"))


def program(library):
    log = module(library, "logging_tensor")
    with log.capture_logs() as logs:
        x = log.LoggingTensor(library.tensor([3.0]), requires_grad=True)
        log.log_input("x", x)
        y = x.sin()
        (g,) = library.autograd.grad(y, (x,), library.ones(1))
        log.log_input("g", g)
    yield logs
    with log.capture_logs_with_logging_tensor_mode() as logs:
        x = library.ones(2, 3, dtype=library.int64)
        library.topk(x.sum(0), 2, largest=False)
    yield logs
    with log.capture_logs() as logs:
        x = log.LoggingTensorReentrant(library.ones(2))
        library.add(x, 2, alpha=3)
    yield logs
    yield repr(x)


def test_operators_as_text() -> None:
    ours, theirs = list(program(taeda)), list(program(torch))
    assert len(ours[0]) > 3
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, str):
            assert mine == other
            continue
        assert [line.replace("taeda.", "torch.") for line in mine] == other


def test_stacks_of_logged_operators() -> None:
    log = module(taeda, "logging_tensor")
    with log.capture_logs_with_logging_tensor_mode(python_tb=True) as (lines, stacks):
        taeda.ones(1) + 1
    assert len(lines) == len(stacks) == 2
    assert any(frame.name == "test_stacks_of_logged_operators" for frame in stacks[0])
    with pytest.raises(NotImplementedError, match="cpp_tb"):
        with log.capture_logs(cpp_tb=True):
            pass
