"""All public names of the reference are there, but for those listed here.

Loops over the modules; the list holds both ways, so that it gets shorter when a name is
built and nothing disappears unseen.
"""

from __future__ import annotations

import importlib
import types

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = """
 nn nn.functional nn.init nn.parameter nn.modules nn.parallel nn.attention
nn.attention.bias nn.attention.flex_attention nn.utils nn.utils.rnn
nn.utils.parametrize nn.utils.parametrizations nn.utils.prune nn.utils.stateless
optim optim.lr_scheduler optim.swa_utils optim.adadelta optim.adagrad optim.adam
optim.adamax optim.adamw optim.asgd optim.nadam optim.radam optim.rmsprop optim.rprop
optim.sgd linalg fft special sparse signal.windows
masked nested autograd autograd.function autograd.functional autograd.forward_ad
autograd.graph autograd.profiler func utils utils.data utils.checkpoint utils._pytree
utils.dlpack utils.benchmark utils.hooks utils.cpp_extension cuda cuda.amp cuda.random
cuda.memory cuda.nvtx cpu cpu.amp amp accelerator accelerator.memory
accelerator.graphs xpu xpu.memory xpu.random xpu.graphs mps mtia backends backends.cpu
backends.cuda backends.cudnn backends.mkl backends.mkldnn backends.openmp
backends.opt_einsum backends.mps backends.quantized random distributions
distributions.constraints distributions.transforms distributions.utils
distributions.kl profiler testing serialization hub multiprocessing overrides library
futures monitor types return_types version
"""
# Quantized tensors, integers of fewer than 8 bits, TorchScript's own forms.
ABSENT = {
    "torch": """
AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig
BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code
CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext
DictType DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan
FileCheck FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState
IODescriptor InferredType IntType InterfaceType ListType LiteScriptModule LockingLogger
ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict
PyObjectType RRefType ScriptClass ScriptClassFunction ScriptDict
ScriptDictIterator ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod
ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext
StaticModule StreamObjType StringType SymBoolType SymIntType ThroughputBenchmark
TracingState TupleType Type UnionType Use Value bit bits16 bits1x8 bits2x4 bits4x2 bits8
cpp
empty_quantized float4_e2m1fn_x2 import_ir_module import_ir_module_from_buffer int1 int2
int3 int4 int5 int6 int7 int_repr merge_type_from_type_comment mkldnn_rnn_layer parse_ir
parse_type_comment q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
q_scale q_zero_point quantize_per_channel quantize_per_tensor
quantize_per_tensor_dynamic quantized_batch_norm quantized_gru_cell quantized_lstm_cell
quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell
quantized_rnn_tanh_cell quint2x4 uint1 uint2 uint3 uint4 uint5 uint6
uint7 unify_type_list
""",
    "torch.nn.functional": "GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES"
    " TYPE_CHECKING Tensor reproducibility_notes sparse_support_notes tf32_notes",
    "torch.nn.attention": "WARN_FOR_UNFUSED_KERNELS",
    "torch.linalg": "common_notes",
    "torch.fft": "Tensor",
    "torch.monitor": "TYPE_CHECKING",
    "torch.sparse": "solve",
}


def public(module: types.ModuleType) -> list[str]:
    """The names that a module lists, or else its own that are no modules: which of
    those are there depends on what was imported before."""
    names = getattr(module, "__all__", None)
    if names is not None:
        return list(names)
    found = [n for n in vars(module) if not n.startswith("_")]
    return [n for n in found if own(getattr(module, n))]


def own(value) -> bool:
    place = getattr(value, "__module__", None)
    if isinstance(value, types.ModuleType):
        return False
    return place is None or str(place).startswith("torch")


def missing(path: str) -> set[str]:
    real = importlib.import_module(f"torch.{path}".rstrip("."))
    ours = importlib.import_module(f"taeda.{path}".rstrip("."))
    absent = set()
    for name in public(real):
        if not hasattr(ours, name):
            try:
                importlib.import_module(f"{ours.__name__}.{name}")
            except ImportError:
                absent.add(name)
    return absent


@pytest.mark.parametrize("path", ["", *MODULES.split()])
def test_names(path) -> None:
    absent = set(ABSENT.get(f"torch.{path}".rstrip("."), "").split())
    assert missing(path) == absent
