"""Private names that projects use, against PyTorch's."""

from __future__ import annotations

import collections
import importlib
import os
import subprocess
import sys
import typing

import pytest
import taeda
import torch

NATIVES = {
    "_demangle": lambda c: [c._demangle("_ZN2at4Node3runEv"), c._demangle("plain")],
    "_get_privateuse1_backend_name": lambda c: c._get_privateuse1_backend_name(),
    "_get_flash_sdp_enabled": lambda c: c._get_flash_sdp_enabled(),
    "_get_math_sdp_enabled": lambda c: c._get_math_sdp_enabled(),
    "_get_mem_efficient_sdp_enabled": lambda c: c._get_mem_efficient_sdp_enabled(),
    "_has_mps": lambda c: c._has_mps,
    "_mps_is_available": lambda c: c._mps_is_available(),
    "_has_cuda": lambda c: c._has_cuda,
    "has_lapack": lambda c: c.has_lapack,
    "_GLIBCXX_USE_CXX11_ABI": lambda c: c._GLIBCXX_USE_CXX11_ABI,
    "parse_schema": lambda c: [
        (a.name, a.kwarg_only)
        for a in c.parse_schema("f(Tensor x, *, int n=3) -> Tensor").arguments
    ],
    "_get_schema": lambda c: [
        a.name for a in c._get_schema("aten::add", "Tensor").arguments
    ],
    "_jit_get_schemas_for_operator": lambda c: [
        len(c._jit_get_schemas_for_operator("aten::no_such")),
        len(c._jit_get_schemas_for_operator("aten::mul")) > 1,
    ],
    "_jit_get_all_schemas": lambda c: len(c._jit_get_all_schemas()) > 500,
    "_dispatch_has_kernel_for_dispatch_key": lambda c: [
        c._dispatch_has_kernel_for_dispatch_key("aten::sin", "CPU"),
    ],
}


@pytest.mark.parametrize("name", NATIVES)
def test_natives_answer_as_pytorchs(name) -> None:
    assert NATIVES[name](taeda._C) == NATIVES[name](torch._C)


def test_natives_that_other_functions_are() -> None:
    c = taeda._C

    def function():
        pass

    assert c._add_docstr(function, "text") is function
    assert function.__doc__ == "text"
    for library in (taeda, torch):
        a, b = library.Size((2, 1, 3)), library.Size((4, 1))
        assert tuple(library._C._infer_size(a, b)) == (2, 4, 3)
    assert c._cuda_isCurrentStreamCapturing() is False
    assert c._show_config() == taeda.__config__.show()
    assert c._parallel_info() == taeda.__config__.parallel_info()
    x = taeda.ones(4)
    assert c._is_alias_of(x, x[1:]) and not c._is_alias_of(x, x.clone())
    assert torch._C._is_alias_of(torch.ones(1), torch.ones(1)) is False
    c._set_deterministic_algorithms(True, warn_only=True)
    try:
        assert taeda.is_deterministic_algorithms_warn_only_enabled()
    finally:
        c._set_deterministic_algorithms(False)
    assert taeda._VF.sin is taeda._C._VariableFunctions.sin
    with pytest.raises(AttributeError, match="taeda._VF.*no_such"):
        taeda._VF.no_such  # noqa: B018


def utilities(library):
    u = library._utils
    floats = [library.ones(n) for n in (1, 2, 3)]
    mixed = [floats[0], library.ones(2, dtype=library.int64), *floats[1:]]
    yield [[t.numel() for t in group] for group in u._take_tensors(mixed, 12)]
    yield [[t.numel() for t in group] for group in u._take_tensors(floats, 1)]
    ordered = u._reorder_tensors_as(
        [mixed[1], *floats], [floats[0], floats[0], mixed[1], floats[0]]
    )
    yield [(t.numel(), str(t.dtype).rpartition(".")[2]) for t in ordered]
    yield u._import_dotted_name("os.path") is os.path
    yield u._get_available_device_type(), u._get_all_device_indices()
    yield u._get_device_module("cpu") is library.cpu
    yield u.is_compiling()

    class Named:
        @u.classproperty
        def name(cls):
            return cls.__name__

    yield Named.name, Named().name
    parameter = u._rebuild_parameter(library.ones(2), True, {})
    yield type(parameter).__name__, parameter.requires_grad
    meta = u._rebuild_meta_tensor_no_storage(library.float32, (2, 3), (3, 1), False)
    yield tuple(meta.shape), meta.is_meta
    try:
        u._get_device_module("no_such")
    except RuntimeError as error:
        yield "does not have a corresponding module" in str(error)
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        wrapped = u.ExceptionWrapper(where="in a test")
    try:
        wrapped.reraise()
    except ZeroDivisionError as error:
        yield "Caught ZeroDivisionError in a test" in str(error)


def test_utilities_answer_as_pytorchs() -> None:
    assert list(utilities(taeda)) == list(utilities(torch))
    with pytest.raises(AttributeError, match="no_such"):
        taeda._utils.no_such  # noqa: B018


def test_paths_of_the_package(tmp_path) -> None:
    import importlib

    internal = importlib.import_module("taeda._utils_internal")
    assert os.path.samefile(internal.get_file_path("__init__.py"), taeda.__file__)
    assert internal.get_file_path_2("a", "b") == os.path.join("a", "b")
    assert internal.get_writable_path(str(tmp_path)) == str(tmp_path)
    other = internal.get_writable_path(str(tmp_path / "no_such"))
    assert os.path.isdir(other) and other.endswith("no_such")
    os.rmdir(other)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    real = os.path.realpath(tmp_path)
    assert internal.resolve_library_path(str(link)) == real


def test_contexts_that_decorate() -> None:
    import importlib

    for library in (taeda, torch):
        m = importlib.import_module(f"{library.__name__}.utils._contextlib")
        depth = []

        class Inside(m._DecoratorContextManager):
            def __init__(self, mark, depth=depth):
                self.mark, self.depth = mark, depth

            def clone(self):
                return type(self)(self.mark)

            def __enter__(self):
                self.depth.append(self.mark)

            def __exit__(self, *error):
                self.depth.pop()

        @Inside(3)
        def seen(depth=depth):
            return list(depth)

        @Inside(4)
        def generated(depth=depth):
            yield list(depth)
            yield list(depth)

        assert seen() == [3] and list(generated()) == [[4], [4]] and depth == []
        with Inside(5):
            assert seen() == [5, 3]
        found = m.context_decorator(lambda i=Inside: i(6), lambda d=depth: list(d))()
        assert found == [6]

        class Plain(m._NoParamDecoratorContextManager):
            def __enter__(self, depth=depth):
                depth.append("plain")

            def __exit__(self, *error, depth=depth):
                depth.pop()

        assert Plain(lambda d=depth: list(d))() == ["plain"]
        with Plain():
            assert depth == ["plain"]


def test_short_names_of_dtypes() -> None:
    import importlib

    ours, theirs = (
        {
            str(dtype).rpartition(".")[2]: short
            for dtype, short in importlib.import_module(
                f"{library.__name__}.utils._dtype_abbrs"
            ).dtype_abbrs.items()
        }
        for library in (taeda, torch)
    )
    assert ours.items() <= theirs.items() and len(ours) == 21


def test_ways_of_conversion_are_chosen_for_the_process() -> None:
    for library in (taeda, torch):
        ways, net = library.__future__, library.nn.Linear(1, 1)
        weight = net.weight
        net.to(library.float64)
        assert net.weight is weight and weight.dtype == library.float64
        ways.set_overwrite_module_params_on_conversion(True)
        try:
            assert ways.get_overwrite_module_params_on_conversion()
            net.to(library.float32)
            assert net.weight is not weight and weight.dtype == library.float64
        finally:
            ways.set_overwrite_module_params_on_conversion(False)
        ways.set_swap_module_params_on_conversion(False)
        assert ways.get_swap_module_params_on_conversion() is False


def test_functions_that_have_the_names_of_their_files() -> None:
    import importlib

    for library in (taeda, torch):
        root = library.__name__
        for place, name in (
            ("nn.parallel", "replicate"),
            ("nn.parallel", "parallel_apply"),
            ("nn.parallel", "data_parallel"),
            ("multiprocessing", "spawn"),
        ):
            package = importlib.import_module(f"{root}.{place}")
            function = getattr(package, name)
            module = importlib.import_module(f"{root}.{place}.{name}")
            assert getattr(module, name) is function is getattr(package, name)
        spawn = importlib.import_module(f"{root}.multiprocessing.spawn")
        assert issubclass(spawn.ProcessRaisedException, Exception)


def test_parts_of_inputs_on_devices() -> None:
    import importlib

    parallel = taeda.nn.parallel
    cut = importlib.import_module("taeda.nn.parallel.scatter_gather")
    inputs, named = cut.scatter_kwargs(
        (taeda.arange(4),), {"a": taeda.arange(2)}, ["cpu", "cpu"]
    )
    assert [row[0].tolist() for row in inputs] == [[0, 1], [2, 3]]
    assert [row["a"].tolist() for row in named] == [[0], [1]]
    inputs, named = cut.scatter_kwargs((taeda.arange(2),), None, ["cpu", "cpu"])
    assert len(inputs) == 2 and named == ({}, {})
    net = taeda.nn.Linear(1, 1)
    copies = parallel.replicate(net, ["cpu", "cpu"])
    results = parallel.parallel_apply(copies, [taeda.ones(2, 1)] * 2)
    parallel.gather(results, "cpu").sum().backward()
    assert net.weight.grad.tolist() == [[4.0]]
    for library in (taeda, torch):
        apply = importlib.import_module(
            f"{library.__name__}.nn.parallel.parallel_apply"
        )
        x = library.ones(1)
        assert apply.get_a_var([{"k": (x,)}]) is x and apply.get_a_var([3]) is None


def test_modules_inside_the_native_one_are_imported() -> None:
    script = "import taeda._C._functorch as f, taeda; print(f is taeda._C._functorch)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("taeda._C._no_such")


def test_a_mode_of_functions_is_seen() -> None:
    for library in (taeda, torch):
        is_enabled = library._C._is_torch_function_mode_enabled
        assert not is_enabled()
        with library.overrides.BaseTorchFunctionMode():
            assert is_enabled()
            with library._C.DisableTorchFunction():
                assert not is_enabled()
        assert str(library._C._get_accelerator()) == "cpu"


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_compressed_rows_give_coordinates(shape) -> None:
    dense = torch.zeros(shape)
    for place in ((0, 1), (2, 0), (2, 3)):
        dense[..., *place] = 1
    rows = dense.to_sparse_csr()
    given = rows.crow_indices(), rows.col_indices()
    own = [taeda.from_numpy(each.numpy()) for each in given]
    for options in ({}, {"out_int32": True}, {"transpose": True}):
        wanted = torch._convert_indices_from_csr_to_coo(*given, **options)
        found = taeda._convert_indices_from_csr_to_coo(*own, **options)
        assert str(found.dtype).endswith(str(wanted.dtype)[6:])
        assert found.tolist() == wanted.tolist()


def test_old_names_of_functions() -> None:
    assert taeda._segment_reduce is taeda.segment_reduce
    assert issubclass(taeda.UntypedStorage, taeda.StorageBase)
    for library in (taeda, torch):
        shape = library._shape_as_tensor(library.ones(2, 3))
        assert shape.dtype == library.int64 and shape.tolist() == [2, 3]
        filled = library.nn.init._no_grad_uniform_(library.empty(2), 3.0, 3.0)
        assert filled.tolist() == [3.0, 3.0]
        check = library._check_tensor_all_with
        check(ValueError, library.tensor([True]))
        with pytest.raises(ValueError, match="wrong"):
            check(ValueError, library.tensor([True, False]), lambda: "wrong")
        leaves, context = library.utils._pytree._list_flatten([1, 2])
        assert library.utils._pytree._list_unflatten(leaves, context) == [1, 2]
        pairs, _ = library.utils._pytree._list_flatten_with_keys([5])
        assert [(key.idx, value) for key, value in pairs] == [(0, 5)]
        ends = library.distributions.transforms._clipped_sigmoid(
            library.tensor([200.0, -200.0])
        )
        limits = library.finfo(library.float32)
        assert ends.tolist() == [1 - limits.eps, limits.tiny]
        loader = importlib.import_module(f"{library.__name__}.utils.data.dataloader")
        assert typing.get_args(loader._worker_init_fn_t) == ([int], None)
        assert typing.get_args(loader._collate_fn_t)[1] is typing.Any
        inverse = library.distributions.transforms._InverseTransform
        assert isinstance(library.distributions.AbsTransform().inv, inverse)


def test_parts_of_each_kind_of_container() -> None:
    pair = collections.namedtuple("pair", "a b")
    trees = {
        "tuple": (1, 2),
        "list": [1, 2],
        "dict": {"a": 1},
        "namedtuple": pair(1, 2),
        "ordereddict": collections.OrderedDict(a=1),
        "defaultdict": collections.defaultdict(int, a=1),
        "deque": collections.deque([1, 2], maxlen=3),
    }
    for name, tree in trees.items():
        found = []
        for library in (taeda, torch):
            module = library.utils._pytree
            values, context = getattr(module, f"_{name}_flatten")(tree)
            pairs, again = getattr(module, f"_{name}_flatten_with_keys")(tree)
            back = getattr(module, f"_{name}_unflatten")(values, context)
            assert back == tree and type(back) is type(tree) and again == context
            found.append((values, context, [(str(k), v) for k, v in pairs]))
        assert found[0] == found[1]


def test_contexts_of_distributed_autograd_have_their_class() -> None:
    for library in (taeda, torch):
        module = importlib.import_module(f"{library.__name__}.distributed.autograd")
        for name in ("_context_id", "_known_worker_ids", "_send_functions"):
            assert callable(getattr(module.DistAutogradContext, name))


def test_experiments_of_tensors_have_their_former_name() -> None:
    for library in (taeda, torch):
        former, now = (
            importlib.import_module(f"{library.__name__}.distributed.{name}")
            for name in ("_tensor.experimental", "tensor.experimental")
        )
        assert former.implicit_replication is now.implicit_replication
        assert former.local_map is now.local_map


def test_the_type_of_devices_may_be_annotated() -> None:
    for library in (taeda, torch):
        kind = library.DeviceObjType.get()
        assert kind is library.DeviceObjType.get() and repr(kind) == kind.str()
        assert (kind.annotation_str, kind.kind()) == ("Device", "DeviceObjType")
        with pytest.raises(TypeError, match="No constructor"):
            library.DeviceObjType()


def test_the_mode_of_fake_tensors_is_found() -> None:
    for library in (taeda, torch):
        guards = importlib.import_module(f"{library.__name__}._guards")
        fake = importlib.import_module(f"{library.__name__}._subclasses.fake_tensor")
        assert guards.active_fake_mode() is None
        with fake.FakeTensorMode() as mode:
            assert guards.active_fake_mode() is mode
            x = library.ones(2)
        assert guards.active_fake_mode() is None
        assert guards.detect_fake_mode([1, {"a": x}]) is mode
        assert guards.detect_fake_mode() is guards.detect_fake_mode([1]) is None
        with fake.FakeTensorMode():
            y = library.ones(2)
        with pytest.raises(AssertionError):
            guards.detect_fake_mode([x, y])


def test_operators_that_pytorch_hides_are_hidden():
    names = vars(taeda._C._VariableFunctions)
    shown = {n for n in names if n[0] != "_" and n[-1] != "_"}
    assert len(shown) > 400
    assert shown - {*dir(torch)} == set()
    assert taeda.ops.aten.zero(taeda.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("library", [taeda, torch])
def test_functions_that_no_graph_holds(library):
    calls = []

    def count(x, *_):
        calls.append(1)
        return x

    def backend(graph, inputs):
        calls.append("graph")
        return graph

    for made in (library._disable_dynamo(count), library._disable_dynamo()(count)):
        calls.clear()
        library.compile(lambda x, f=made: f(x) + 1, backend=backend)(library.ones(1))
        assert calls.count(1) == 1
