"""Names that few programs use: what they give is what the reference gives.

Each line is run in both libraries, as `t`; the printed result is compared, or the
class of the error.
"""

from __future__ import annotations

import importlib

import pytest
import taeda
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
for _library in ("taeda", "torch"):
    for _module in ("utils.backcompat", "utils.checkpoint", "nn.attention.bias"):
        importlib.import_module(f"{_library}.{_module}")

SAME = """
t.DispatchKey.CPU, t.DispatchKey.AutogradMeta.value, t.DispatchKey.PreDispatch.name
t.Tag.pointwise, t.Tag.pointwise.name, int(t.Tag.view_copy)
t.profiler.ProfilerActivity.CUDA, int(t.profiler.ProfilerActivity.MTIA)
t.autograd.DeviceType is t.profiler.DeviceType, int(t.autograd.DeviceType.PrivateUse1)
t.AVG, t.SUM.value, t.AVG.name
[getattr(t, n).abbr for n in "float32 bool uint8 bfloat16 complex64 half".split()]
t.float8_e5m2.abbr, t.float8_e4m3fnuz.abbr, t.uint64.abbr
sorted(i for i in t.cpu.get_capabilities().items() if "avx10" not in i[0])
t.cpu._is_avx512_bf16_supported(), t.cpu._is_vnni_supported()
t.cpu._is_amx_tile_supported(), t.cpu._is_amx_fp16_supported()
t.TensorType.get(), t.TensorType.get() == t.TensorType.getInferred()
t.TensorType.create_from_tensor(t.ones(2, 3)).sizes(), t.TensorType.get().dim()
t.TensorType.create_from_tensor(t.ones(2)).isSubtypeOf(t.TensorType.get())
t.TensorType()
t.fork(max, 1, 2).wait(), t.wait(t.fork(max, 1, 2))
t.JITException.__mro__[1:], issubclass(t.JITException, RuntimeError)
t.Storage is t.FloatStorage, isinstance(t.UntypedStorage(1), t.StorageBase)
t.StorageBase()
t.UntypedStorage(3).hpu()
t.UntypedStorage(3).mps()
t.FloatStorage(3).hpu()
t.Generator().get_offset()
t.Generator().set_offset(0)
t.Generator().graphsafe_get_state()
t.Stream().native_handle
t.sym_sum(1, 2), t.sym_sum([1, 2]), t.sym_fresh_size(expr=2)
t.cudnn_is_acceptable(input=t.ones(1))
t.ones(2).half().dequantize(), t.dequantize(t.ones(1, dtype=t.int64))
t.ones(2).grad_dtype, t.nn.Parameter(t.ones(1)).grad_dtype
(t.ones(2, requires_grad=True) * 2).grad_dtype
setattr(t.ones(2), "grad_dtype", 3)
t.eye(2).to_sparse_csr().to_sparse_coo().layout
t.ones(2, 3).to_padded_tensor(0.0)
t.arange(6).view(2, 3).index(1, 0), t.arange(6).view(2, 3).index((0, 1), (1, 2))
t.sparse.FloatTensor(2, 3)
t.sparse.FloatTensor(t.tensor([[0], [1]]), t.tensor([1.0]), (2, 3))
t.sparse.FloatTensor(t.tensor([[0], [1]]), t.tensor([1.0]))
t.sparse.FloatTensor(), t.sparse.DoubleTensor, t.sparse.LongTensor.dtype
t.sparse.FloatTensor([1.0])
isinstance(t.eye(2).to_sparse(), t.sparse.FloatTensor)
isinstance(t.eye(2), t.sparse.FloatTensor)
isinstance(t.eye(2).to_sparse(), t.FloatTensor)
t.eye(2).to_sparse().type(), t.eye(2).double().to_sparse().type()
t.sparse.to_sparse_semi_structured(t.ones(64, 64).half())
t.sparse.SparseSemiStructuredTensorCUTLASS.from_dense(t.ones(64, 64).half())
t.sparse.SparseSemiStructuredTensorCUSPARSELT.prune_dense_static_sort(t.ones(64, 64))
t.sparse.SparseSemiStructuredTensorCUTLASS(t.Size([2, 2]), *[None] * 5)
t.saddmm(t.eye(2).to_sparse(), t.eye(2).to_sparse(), t.eye(2)).to_dense()
t.functional.F is t.nn.functional, t.nn.functional.torch is t, t.torch is t
t.classes.no_such_library.NoSuchClass
t.utils.backcompat.broadcast_warning.enabled
t.utils.get_cpp_backtrace()[:10]
t.serialization.validate_cuda_device("cpu")
t.serialization.validate_cuda_device("cuda:0")
t.serialization.validate_hpu_device("hpu")
t.autograd.graph.region_activation_memory_budget(5)
t.autograd.graph.region_activation_memory_budget(0.5)
t.ones(2, requires_grad=True).sum().grad_fn.metadata
t.backends.cuda.preferred_blas_library()
t.backends.cuda.preferred_blas_library("hipblas")
t.backends.cuda.preferred_blas_library("cublaslt")
t.backends.cuda.preferred_blas_library("none")
t.backends.cuda.preferred_linalg_library()
t.backends.cuda.preferred_linalg_library("magma")
t.backends.cuda.preferred_linalg_library("none")
t.backends.cuda.preferred_rocm_fa_library()
t.backends.cuda.cufft_plan_cache[0]
t.backends.cuda.cufft_plan_cache.size
t.backends.cuda.cuFFTPlanCache(0).max_size
t.backends.cuda.cuFFTPlanCache(0).clear()
t.backends.cuda.cuBLASModule().allow_tf32
t.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
t.backends.cuda.allow_fp16_bf16_reduction_math_sdp(1)
t.nn.attention.bias.CausalVariant(2), int(t.nn.attention.bias.CausalVariant.UPPER_LEFT)
t.utils.checkpoint.GraphExecGroup._get_current_group()
t.cuda.CUDAGraph()
t.cuda.graph(None)
t.cuda.MemPool()
t.cuda.GreenContext.create(num_sms=1)
t.cuda.CUDAPluggableAllocator("no_such.so", "a", "b")
t.cuda.use_mem_pool(None).__enter__()
t.cuda.caching_allocator_enable(False)
t.cuda.list_gpu_processes()
t.cuda.FloatStorage([1.0])
t.cuda.FloatStorage.dtype, isinstance(t.FloatStorage(1), t.cuda.FloatStorage)
t.cuda.FloatStorage.from_buffer(b"1234", "little")
t.cuda.sparse.FloatTensor(1)
t.cuda.cudaStatus.ERROR_NOT_READY, t.cuda.has_half
t.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { }")(t.ones(1))
t.accelerator.Graph()
t.mtia.synchronize()
t.mtia.current_device()
t.mtia.current_stream()
t.mtia.get_device_properties()
t.mtia.set_device(0)
t.mtia.empty_cache()
t.mtia.snapshot()
t.mtia.attach_out_of_memory_observer(print)
t.mtia.graph_pool_handle()
t.mtia.MTIAGraph()
t.mtia.mtia_graph.graph(None)
t.mtia.memory.memory_stats(), t.mtia.memory.max_memory_allocated()
t.mtia.manual_seed(1), t.mtia.seed_all(), t.mtia.get_rng_state_all()
t.xpu.Stream()
t.xpu.Event()
t.xpu.XPUGraph()
t.xpu.MemPool()
t.xpu.XPUPluggableAllocator("no_such.so", "a", "b")
t.xpu.device_of(t.ones(1)) is None, t.xpu.default_generators
t.xpu.is_current_stream_capturing()
t.xpu.seed(), t.xpu.seed_all()
t.xpu.stream(None).__enter__(), t.xpu.streams.Stream is t.xpu.Stream
t.xpu.use_mem_pool(None).__enter__()
t.mps.compile_shader("")
t.mps.load_metallib("x")
t.mps.profiler.start()
t.mps.profiler.profile().__enter__()
t.mps.set_per_process_memory_fraction(0.5)
t.mps.set_per_process_memory_fraction(5)
t.mps.set_per_process_memory_fraction(5.0)
""".strip().splitlines()


def answer(library, line: str) -> str:
    try:
        found = repr(eval(line, {"t": library}))
    except Exception as error:
        return type(error).__name__
    return found.replace("taeda", "torch")


@pytest.mark.parametrize("line", SAME)
def test_both_answer_alike(line) -> None:
    assert answer(taeda, line) == answer(torch, line)


def test_records_of_a_checkpoint(tmp_path) -> None:
    path = str(tmp_path / "a.pt")
    torch.save({"a": torch.arange(6.0), "b": torch.ones(3)}, path)
    ours, real = taeda.PyTorchFileReader(path), torch.PyTorchFileReader(path)
    names = real.get_all_records()
    assert ours.get_all_records() == names
    questions = "get_record get_record_size get_record_offset get_record_header_offset"
    for name in names:
        assert ours.has_record(name)
        for question in questions.split():
            assert getattr(ours, question)(name) == getattr(real, question)(name)
    assert ours.serialization_id() == real.serialization_id()
    for cursor, size in ((0, 24), (598, 3), (1 << 33, 5), (7, 1 << 33)):
        places = [
            r.get_record_offset_no_read(cursor, "x", size, 64) for r in (ours, real)
        ]
        assert places[0] == places[1]
    tensor = ours.get_storage_from_record("data/0", 6, taeda.float32)
    assert bytes(tensor.untyped_storage().tolist()) == real.get_record("data/0")
    for reader in (ours, real):
        with pytest.raises(RuntimeError, match="failed locating file"):
            reader.get_record("none")
    with pytest.raises(RuntimeError, match="elements of"):
        ours.get_storage_from_record("data/0", 7, taeda.float32)
    for library in (taeda, torch):
        with pytest.raises(RuntimeError, match="open file failed|failed reading zip"):
            library.PyTorchFileReader(str(tmp_path / "none"))


def test_checkpoints_of_one_group_share_what_is_computed_again() -> None:
    counts = []
    for t in (taeda, torch):
        called = []

        def both(x, called=called):
            called.append(1)
            return x.exp(), x.exp().sin()

        x = t.ones(2, requires_grad=True)
        checkpoint = t.utils.checkpoint
        first, second = checkpoint.checkpoint(both, x, use_reentrant=False)
        with checkpoint.GraphExecGroup():
            first.sum().backward()
            second.sum().backward()
            with pytest.raises(RuntimeError, match="nested"):
                with checkpoint.GraphExecGroup():
                    pass
        counts.append((len(called), x.grad.tolist()))
    assert counts[0] == (2, pytest.approx(counts[1][1])) and counts[1][0] == 2


def test_policies_are_told_the_result() -> None:
    seen = []
    for t in (taeda, torch):
        checkpoint, told = t.utils.checkpoint, []

        def policy(ctx, op, *args, told=told, **kwargs):
            told.append((ctx.is_recompute, ctx.op_output is not None))
            return False

        def contexts(checkpoint=checkpoint, policy=policy):
            return checkpoint.create_selective_checkpoint_contexts(policy)

        x = t.ones(2, requires_grad=True)
        y = checkpoint.checkpoint(t.exp, x, use_reentrant=False, context_fn=contexts)
        y.sum().backward()
        seen.append(told[0])
    assert seen[0] == seen[1] == (False, True)


def test_attention_over_sequences_of_several_lengths() -> None:
    from taeda.nn.attention.varlen import AuxRequest, varlen_attn

    taeda.manual_seed(0)
    ends = [0, 2, 2, 7]
    q, k, v = (taeda.randn(7, 4, 8) for _ in range(3))
    places = taeda.tensor(ends, dtype=taeda.int32)
    for window, causal in (((-1, -1), False), ((-1, 0), True)):
        out, sums = varlen_attn(
            q,
            k,
            v,
            places,
            places,
            5,
            5,
            return_aux=AuxRequest(True),
            window_size=window,
        )
        for begin, end in ((0, 2), (2, 7)):
            parts = [torch.from_numpy(t[begin:end].numpy()) for t in (q, k, v)]
            parts = [p.transpose(0, 1)[None] for p in parts]
            want = torch.nn.functional.scaled_dot_product_attention(
                *parts, is_causal=causal
            )
            got = torch.from_numpy(out[begin:end].numpy()).transpose(0, 1)[None]
            torch.testing.assert_close(got, want)
            scores = parts[0] @ parts[1].mT / 8**0.5
            if causal:
                scores += torch.full(scores.shape[-2:], -torch.inf).triu(1)
            got = torch.from_numpy(sums[:, begin:end].numpy())[None]
            torch.testing.assert_close(got, scores.logsumexp(-1))
    with pytest.raises(ValueError, match="needs seqused_k"):
        varlen_attn(q, k, v, places, places, 5, 5, block_table=places)


def test_options_of_binding() -> None:
    ours, real = (
        importlib.import_module(f"{t}.numa.binding") for t in ("taeda", "torch")
    )
    pairs = [[(m.name, m.value) for m in b.AffinityMode] for b in (ours, real)]
    assert pairs[0] == pairs[1]
    made = [b.NumaOptions(b.AffinityMode("node")) for b in (ours, real)]
    assert repr(made[0]) == repr(made[1]) and made[0] == made[0]


def test_fuzzed_sparse_tensors() -> None:
    from taeda.utils import benchmark

    parameters = [
        benchmark.FuzzedParameter("n", 2, 9, "uniform"),
        benchmark.FuzzedParameter("density", 0.2, 0.5, "uniform"),
        benchmark.FuzzedParameter("sparse_dim", 1, 2, "uniform"),
        benchmark.FuzzedParameter("coalesced", 0, 1, "uniform"),
    ]
    tensor = benchmark.FuzzedSparseTensor(
        "x", size=("n", 4), sparse_dim="sparse_dim", coalesced="coalesced"
    )
    kinds = set()
    for tensors, properties, params in benchmark.Fuzzer(parameters, [tensor]).take(12):
        x, facts = tensors["x"], properties["x"]
        assert x.sparse_dim() == facts["sparse_dim"] == params["sparse_dim"]
        assert tuple(x.shape) == (params["n"], 4) and x.to_dense().shape == x.shape
        kinds.add(x.is_coalesced())
    assert kinds == {True, False}
