"""Suites that are written with the helpers, run on both libraries."""

from __future__ import annotations

import importlib
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


def parametrized(library):
    u = module(library, "common_utils")

    class TestNames(u.TestCase):
        @u.parametrize("x", [1, 2.5, "a.b", None, library.float32])
        def test_kinds(self, x):
            self.assertTrue(x in (1, 2.5, "a.b", None, library.float32))

        @u.parametrize("x, y", [(1, 2), (3, 4)], name_fn=lambda x, y: f"{x}to{y}")
        def test_pairs(self, x, y):
            self.assertEqual(y - x, 1)

        @u.parametrize("x", [1, 2])
        @u.parametrize("flag", [True, False])
        def test_product(self, x, flag):
            self.assertNotEqual((x, flag), (2, False))

        @u.parametrize(
            "x",
            [
                u.subtest(1, name="one"),
                u.subtest(2, decorators=[unittest.expectedFailure]),
                u.subtest((3,), name="tuple", decorators=[unittest.skip("why")]),
            ],
        )
        def test_cases(self, x):
            self.assertEqual(x, 1)

        @u.decorateIf(unittest.expectedFailure, lambda given: given["x"] == 2)
        @u.parametrize("x", [1, 2, 3])
        def test_decorated(self, x):
            self.assertNotEqual(x, 2)

        @u.parametrize("device", ["cpu", library.device("cpu")])
        def test_devices(self, device):
            self.assertEqual(library.ones(1, device=device), library.ones(1))

        def test_plain(self):
            self.assertEqual(library.rand(3), library.rand(3))

    return [u.instantiate_parametrized_tests(TestNames)]


def by_device(library):
    u, d = module(library, "common_utils"), module(library, "common_device_type")
    f32, f64, i64 = library.float32, library.float64, library.int64

    class TestDevices(u.TestCase):
        seen = "class"

        @d.dtypes(f32, i64)
        def test_dtype(self, device, dtype):
            self.assertEqual(library.ones(2, device=device, dtype=dtype).dtype, dtype)

        @d.dtypes((f32, i64), (f64, f64))
        def test_dtypes(self, device, dtypes):
            self.assertEqual(len(dtypes), 2)

        @d.dtypes(f32)
        @d.dtypesIfCPU(f64)
        @d.dtypesIfCUDA(i64)
        def test_of_cpu(self, device, dtype):
            self.assertEqual(dtype, f64)

        @d.precisionOverride({f32: 0.1})
        @d.toleranceOverride({f64: d.tol(atol=0.2, rtol=0)})
        @d.dtypes(f32, f64, i64)
        def test_precision(self, device, dtype):
            x = library.ones(2, dtype=f64)
            self.assertEqual(x, x + {f32: 0.09, f64: 0.19, i64: 0.09}[dtype])

        @u.parametrize("x", [1, 2])
        @d.dtypes(f32)
        def test_both(self, device, dtype, x):
            self.assertEqual(x, 1)

        def test_plain(self, device):
            self.assertEqual(device, "cpu")

        def test_no_device(self):
            self.assertEqual(self.seen, "class")

        @d.onlyCPU
        def test_cpu(self, device):
            self.assertEqual(self.device_type, "cpu")

        @d.onlyCUDA
        def test_cuda(self, device):
            self.fail("it is no GPU")

        @d.onlyNativeDeviceTypes
        @d.skipCPUIfNoLapack
        @d.skipCUDAIfNoMagma
        @d.skipMeta
        def test_lapack(self, device):
            self.assertEqual(library.linalg.det(library.eye(2)), 1)

        @d.skipCPUIf(True, "no CPU")
        def test_skipped(self, device):
            self.fail("not to be run")

        @d.skipIf("has_it", "it has it")
        def test_named_skip(self, device):
            self.fail("absent names count as True")

        @d.expectedFailureCPU
        def test_failing(self, device):
            self.fail("as expected")

        @d.expectedFailure("cpu", dtype=f32)
        @d.dtypes(f32, f64)
        def test_failing_dtype(self, device, dtype):
            self.assertEqual(dtype, f64)

        @d.expectedFailureCPU
        def test_not_failing(self, device):
            pass

        @d.deviceCountAtLeast(1)
        def test_one(self, devices):
            self.assertEqual(devices, ["cpu"])

        @d.deviceCountAtLeast(2)
        def test_two(self, devices):
            self.fail("there is one")

        @d.largeTensorTest("1000000 GB", "cpu")
        def test_large(self, device):
            self.fail("too large")

        @u.slowTest
        def test_slow(self, device):
            self.fail("slow tests are not asked for")

        @u.skipIfNoLapack
        @u.skipIfRocm
        @u.skipIfTorchDynamo("why")
        def test_conditions(self, device):
            self.assertTrue(u.IS_LINUX or u.IS_MACOS or u.IS_WINDOWS)

    scope = {"TestDevices": TestDevices}
    d.instantiate_device_type_tests(TestDevices, scope, only_for="cpu")
    assert list(scope) == ["TestDevicesCPU"]
    return list(scope.values())


def outcomes(cases) -> dict[str, str]:
    """Test -> what became of it."""
    result = unittest.TestResult()
    suite = unittest.TestSuite(
        map(unittest.defaultTestLoader.loadTestsFromTestCase, cases)
    )
    names = [test.id().rpartition(".")[2] for test in suite._tests[0]]
    suite.run(result)
    found = dict.fromkeys(names, "passed")
    kinds = "failures errors skipped expectedFailures"
    for kind in kinds.split():
        for test, _ in getattr(result, kind):
            found[test.id().rpartition(".")[2]] = kind
    for test in result.unexpectedSuccesses:
        found[test.id().rpartition(".")[2]] = "unexpected"
    return found


@pytest.mark.parametrize("suite, count", [(parametrized, 20), (by_device, 26)])
def test_suites_have_the_same_tests_and_outcomes(suite, count) -> None:
    ours, theirs = (outcomes(suite(library)) for library in (taeda, torch))
    assert ours == theirs and len(ours) == count
    assert {"passed", "skipped"} <= set(ours.values())


def test_a_test_of_little_memory_runs_and_one_without_onednn() -> None:
    d = module(taeda, "common_device_type")
    quiet = d.disableMkldnn(lambda case: taeda.backends.mkldnn.enabled)
    assert quiet(None) is False and taeda.backends.mkldnn.enabled
    small = d.largeTensorTest(lambda case: 10, "cpu")(lambda case: "ran")
    assert small(None) == "ran"


def test_devices_by_wish_and_environment(monkeypatch) -> None:
    for library in (taeda, torch):
        d = module(library, "common_device_type")
        kinds = [b.device_type for b in d.get_desired_device_type_test_bases()]
        assert kinds[0] == "cpu"
        assert d.get_desired_device_type_test_bases(only_for=("cuda",)) in (
            [],
            [d.CUDATestBase],
        )
        left = d.get_desired_device_type_test_bases(except_for="cpu")
        assert d.CPUTestBase not in left
    monkeypatch.setenv("PYTORCH_TESTING_DEVICE_ONLY_FOR", "cuda,meta")
    d = module(taeda, "common_device_type")
    assert d.CPUTestBase not in d.get_desired_device_type_test_bases()


E = [
    ("1", "1.000001"),
    ("1", "1.1"),
    ("1", "True"),
    ("0", "False"),
    ("2", "True"),
    ("float('nan')", "float('nan')"),
    ("1j", "1j + 1e-9"),
    ("1", "'1'"),
    ("'a'", "'b'"),
    ("None", "None"),
    ("None", "0"),
    ("{1, 2}", "{2, 1}"),
    ("{1, 2}", "{3}"),
    ("[1, 2.0]", "(1, 2)"),
    ("[1, 2]", "[1]"),
    ("{'a': [1]}", "{'a': [1]}"),
    ("{'a': 1}", "{'b': 1}"),
    ("{'a': 1}", "{'a': 2}"),
    ("int", "int"),
    ("int", "float"),
    ("t.ones(2)", "t.ones(2)"),
    ("t.ones(2)", "t.ones(2) + 1e-7"),
    ("t.ones(2)", "t.ones(2) + 1e-3"),
    ("t.ones(2)", "t.ones(3)"),
    ("t.ones(2)", "t.ones(2, dtype=t.float64)"),
    ("t.ones(2)", "[1, 1]"),
    ("(1, 2)", "t.ones(2)"),
    ("t.ones(1)", "1"),
    ("1.0", "t.ones(())"),
    ("t.ones(2)", "1"),
    ("t.tensor(True)", "True"),
    ("t.tensor(float('nan'))", "t.tensor(float('nan'))"),
    ("numpy.ones(2)", "numpy.ones(2)"),
    ("numpy.ones(2)", "t.ones(2, dtype=t.float64)"),
    ("numpy.ones(2)", "numpy.zeros(2)"),
    ("t.float32", "t.float32"),
    ("t.float32", "t.float64"),
    ("t.device('cpu')", "t.device('cpu')"),
    ("t.Size([1])", "[1]"),
    ("t.nn.ModuleList([])", "[]"),
    ("[t.ones(1), None]", "[t.ones(1), None]"),
    ("[t.ones(1)]", "[t.zeros(1)]"),
    ("object", "object()"),
]


def accepts(library, x: str, y: str, **options) -> bool | type:
    case = module(library, "common_utils").TestCase()
    names = {"t": library, "numpy": numpy}
    try:
        case.assertEqual(eval(x, names), eval(y, names), **options)
    except Exception as error:
        return type(error)
    return True


@pytest.mark.parametrize("x, y", E)
def test_equality_is_pytorchs(x, y) -> None:
    wanted = accepts(torch, x, y)
    assert accepts(taeda, x, y) == wanted
    loose = {"atol": 0.2, "rtol": 0}
    assert accepts(taeda, x, y, **loose) == accepts(torch, x, y, **loose)
    same = {"exact_dtype": False, "equal_nan": False}
    assert accepts(taeda, x, y, **same) == accepts(torch, x, y, **same)
    assert wanted is True or issubclass(wanted, Exception)


def test_messages_name_the_place() -> None:
    case = module(taeda, "common_utils").TestCase()
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\].*\nwhy") as error:
        case.assertEqual({"a": [1, 2]}, {"a": [1, 3]}, "why")
    assert "Expected 3 but got 2" in str(error.value)
    with pytest.raises(AssertionError, match="^made of Scalars"):
        case.assertEqual(1, 2, lambda text: f"made of {text}")
    with pytest.raises(ValueError, match="both of atol and rtol"):
        case.assertEqual(1, 2, atol=1)


def test_other_checks_of_cases() -> None:
    import warnings

    for library in (taeda, torch):
        u = module(library, "common_utils")
        case, x = u.TestCase(), library.ones(2)
        case.assertNotEqual(x, x + 1)
        case.assertEqualIgnoreType(x, x.double())
        case.assertEqualBroadcasting(x, 1)
        case.assertEqualTypeString(x, x + 1)
        case.assertObjectIn(x, [1, x])
        with pytest.raises(AssertionError, match="not found"):
            case.assertObjectIn([], [[]])
        with case.assertWarnsOnceRegex(UserWarning, "take care"):
            warnings.warn("take care", stacklevel=1)
        case.assertNotWarn(lambda: None)
        with pytest.raises(AssertionError):
            case.assertNotWarn(lambda: warnings.warn("oh", stacklevel=1))
        with pytest.raises(AssertionError):
            case.assertNotEqual(x, x.clone())


def test_parametrizers_refuse_what_cannot_be() -> None:
    for library in (taeda, torch):
        u, d = module(library, "common_utils"), module(library, "common_device_type")

        def bad(decorate, u=u):
            class TestBad(u.TestCase):
                @decorate
                def test_it(self, x):
                    pass

            return u.instantiate_parametrized_tests(TestBad)

        with pytest.raises(ValueError, match="empty arg_values"):
            bad(u.parametrize("x", []))
        with pytest.raises(RuntimeError, match="arg_values|# values"):
            bad(u.parametrize("x,y", [(1, 2, 3)]))
        twice = u.parametrize("x", [1])
        with pytest.raises(RuntimeError, match="same parameter"):
            bad(lambda fn, twice=twice: twice(twice(fn)))
        with pytest.raises(AssertionError):
            d.dtypes(library.float32, (library.float32,))
        with pytest.raises(AssertionError):
            d.dtypes(3)
        with pytest.raises(AssertionError):
            d.precisionOverride([1])
        with pytest.raises(AssertionError):
            d.toleranceOverride({library.float32: 1})
        with pytest.raises(AssertionError):
            d.largeTensorTest("3 kB")


def test_reparametrize() -> None:
    found = []
    for library in (taeda, torch):
        u = module(library, "common_utils")

        def adapt(name, given):
            if given["x"] == 2:
                return None
            return [(f"{name}_{n}", {**given, "n": n}) for n in range(given["x"])]

        class TestMore(u.TestCase):
            @u.reparametrize(u.parametrize("x", [1, 2, 3]), adapt)
            def test_it(self, x, n):
                self.assertTrue(n < x)

        found.append(outcomes([u.instantiate_parametrized_tests(TestMore)]))
    assert found[0] == found[1] and len(found[0]) == 4
