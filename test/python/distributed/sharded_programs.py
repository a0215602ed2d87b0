"""What ranks do in the tests of sharded training; each runs at every rank."""

from __future__ import annotations

import gc
import importlib
import warnings

import numpy as np
import taeda
import taeda.distributed as dist
from ranks import join
from taeda import nn
from taeda.distributed import fsdp
from taeda.distributed.fsdp import wrap
from taeda.utils.checkpoint import checkpoint

FSDP = fsdp.FullyShardedDataParallel
CPU = taeda.device("cpu")
STEPS, BATCH = 3, 12


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers that every rank agrees on."""
    return np.random.RandomState(seed).standard_normal(shape)


def model(library=taeda, dtype: str = "float64"):
    """Sizes that do not divide by the numbers of ranks."""
    layers = library.nn
    net = layers.Sequential(
        layers.Linear(5, 8),
        layers.Tanh(),
        layers.Linear(8, 3, bias=False),
        layers.ReLU(),
        layers.Linear(3, 4),
    ).to(getattr(library, dtype))
    with library.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(library.tensor(numbers(*p.shape, seed=100 + i) * 0.4).to(p.dtype))
    return net


def batch(library, step: int, rank: int = 0, world: int = 1, dtype: str = "float64"):
    """This rank's inputs and targets."""
    size = BATCH // world
    mine = slice(rank * size, (rank + 1) * size)
    x, y = numbers(BATCH, 5, seed=step), numbers(BATCH, 4, seed=50 + step)
    kind = getattr(library, dtype)
    return library.tensor(x[mine]).to(kind), library.tensor(y[mine]).to(kind)


def optimizer(library, parameters, name: str):
    """SGD with momentum, or AdamW."""
    if name == "sgd":
        return library.optim.SGD(parameters, lr=0.05, momentum=0.9)
    return library.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)


def loss_of(library, net, *data, call=None):
    """The mean square error of a batch."""
    x, y = data
    out = net(x) if call is None else call(net, x)
    return library.nn.functional.mse_loss(out, y)


def train(library, net, name="adam", rank=0, world=1, steps=STEPS, call=None):
    """Losses of some steps."""
    step_of = optimizer(library, net.parameters(), name)
    losses = []
    for i in range(steps):
        loss = loss_of(library, net, *batch(library, i, rank, world), call=call)
        loss.backward()
        step_of.step()
        step_of.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def by_layer() -> wrap.ModuleWrapPolicy:
    """Each linear layer a unit of its own."""
    return wrap.ModuleWrapPolicy({nn.Linear})


def wrapped(net=None, **options):
    """A wrapped model."""
    return FSDP(model() if net is None else net, device_id=CPU, **options)


def whole(net) -> dict:
    """Whole parameters by name."""
    state = net.state_dict()
    full = (getattr(v, "full_tensor", lambda v=v: v)() for v in state.values())
    return {k: v.detach().numpy() for k, v in zip(state, full, strict=True)}


def _again(net, x):
    return checkpoint(net, x, use_reentrant=False)


def _compiled(net, x):
    return taeda.compile(net, backend="aot_eager")(x)


def _beside(net, x):
    """With passes of other kinds before the backward pass."""
    out = net(x)
    with taeda.no_grad():
        net(x)
    return (out + net(x)) / 2


WRAPPED: dict = {
    "one unit": {},
    "by layer": {"auto_wrap_policy": True},
    "original": {"use_orig_params": True, "auto_wrap_policy": True},
    "kept": {"sharding_strategy": fsdp.ShardingStrategy.SHARD_GRAD_OP},
    "kept original": {
        "sharding_strategy": fsdp.ShardingStrategy.SHARD_GRAD_OP,
        "use_orig_params": True,
    },
    "whole": {"sharding_strategy": fsdp.ShardingStrategy.NO_SHARD},
    "no prefetch": {"auto_wrap_policy": True, "backward_prefetch": None},
    "late prefetch": {
        "auto_wrap_policy": True,
        "backward_prefetch": fsdp.BackwardPrefetch.BACKWARD_POST,
        "forward_prefetch": True,
    },
}


def wrappings(rank: int, world: int) -> dict:
    """Weights after training with each choice of the wrapper."""
    join(".", rank, world)
    found = {}
    for name, options in WRAPPED.items():
        options = dict(options)
        if "auto_wrap_policy" in options:
            options["auto_wrap_policy"] = by_layer()
        net = wrapped(**options)
        train(taeda, net, rank=rank, world=world)
        found[name] = whole(net)
    for call in (_again, _compiled, _beside):
        net = wrapped(auto_wrap_policy=by_layer())
        train(taeda, net, rank=rank, world=world, call=call)
        found[call.__name__] = whole(net)
    return found


def shard(net=None, layers: bool = True, **options):
    """A model after `fully_shard`, its linear layers before it."""
    net = model() if net is None else net
    for layer in net if layers else ():
        if isinstance(layer, nn.Linear):
            fsdp.fully_shard(layer, **options)
    return fsdp.fully_shard(net, **options)


def shardings(rank: int, world: int) -> dict:
    """Weights after training with each choice of `fully_shard`."""
    join(".", rank, world)
    found = {}
    mesh = dist.init_device_mesh("cpu", (world,))
    for name, options in {
        "by layer": {},
        "one unit": {"layers": False},
        "kept": {"reshard_after_forward": False},
    }.items():
        net = shard(mesh=mesh, **options)
        train(taeda, net, rank=rank, world=world)
        found[name] = whole(net)
    for call in (_again, _compiled, _beside):
        net = shard(mesh=mesh)
        train(taeda, net, rank=rank, world=world, call=call)
        found[call.__name__] = whole(net)
    net = model()
    fsdp.fully_shard([net[0], net[2]], mesh=mesh)
    fsdp.fully_shard(net, mesh=mesh)
    net[0].set_modules_to_forward_prefetch([net])
    train(taeda, net, rank=rank, world=world)
    found["in one group"] = whole(net)
    return found


def grids(rank: int, world: int) -> dict:
    """Four ranks in two dimensions: copies and parts, tensor parallel and parts."""
    from taeda.distributed.tensor import parallel

    join(".", rank, world)
    found = {}
    grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("copy", "part"))
    net = shard(mesh=grid)
    train(taeda, net, rank=rank, world=world)
    found["copies"] = whole(net)
    hybrid = fsdp.ShardingStrategy.HYBRID_SHARD
    net = wrapped(
        device_mesh=grid, sharding_strategy=hybrid, auto_wrap_policy=by_layer()
    )
    train(taeda, net, rank=rank, world=world)
    found["hybrid"] = whole(net)
    flat = dist.init_device_mesh("cpu", (4,))
    net = shard(mesh=flat, reshard_after_forward=2)
    train(taeda, net, rank=rank, world=world)
    found["smaller group"] = whole(net)
    grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    net = model()
    plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
    parallel.parallelize_module(net, grid["tp"], plan)
    shard(net, mesh=grid["dp"])
    train(taeda, net, rank=rank // 2, world=2)
    found["tensor parallel"] = whole(net)
    return found


def _held() -> int:
    """Bytes of all tensors that Python can reach, and of their gradients."""
    gc.collect()
    found = [t for t in gc.get_objects() if issubclass(type(t), taeda.Tensor)]
    found += [t.grad for t in found if t.is_leaf and t.grad is not None]
    storages = [getattr(t, "_local_tensor", t).untyped_storage() for t in found]
    return sum({s.data_ptr(): s.size() for s in storages}.values())


def memory(rank: int, world: int) -> dict:
    """Bytes held between steps, over bytes of the parameters by the number of ranks."""
    join(".", rank, world)

    def large():
        layers = [nn.Linear(401, 401) for _ in range(6)]
        return nn.Sequential(*layers)

    def mesh():
        return dist.init_device_mesh("cpu", (world,))

    found = {}
    for name, make in {
        "flat": lambda: wrapped(large(), auto_wrap_policy=by_layer()),
        "original": lambda: wrapped(large(), use_orig_params=True),
        "kept": lambda: wrapped(
            large(), sharding_strategy=fsdp.ShardingStrategy.SHARD_GRAD_OP
        ),
        "fully_shard": lambda: shard(large(), mesh=mesh()),
    }.items():
        before = _held()
        net = make()
        size = 4 * 6 * (401 * 401 + 401)
        x = taeda.ones(2, 401)
        for _ in range(2):
            net(x).sum().backward()
        grads = _held() - before - x.untyped_storage().size()
        net.zero_grad()
        held = _held() - before - x.untyped_storage().size()
        found[name] = held / (size / world), grads / (2 * size / world)
        del net, x
    return found


def states(rank: int, world: int) -> dict:
    """State dicts of each type load back, in another wrapping too."""
    warnings.simplefilter("ignore", FutureWarning)
    join(".", rank, world)
    found = {}
    net = wrapped()
    without = optimizer(taeda, [net.module._flat_param], "sgd")
    assert not FSDP.optim_state_dict(net, without)["state"]
    for kind in fsdp.StateDictType:
        for keeps in (False, True):
            options = {"auto_wrap_policy": by_layer(), "use_orig_params": keeps}
            net, other = wrapped(**options), wrapped(**options)
            step_of = optimizer(taeda, net.parameters(), "adam")
            loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
            step_of.step()
            again = optimizer(taeda, other.parameters(), "adam")
            with FSDP.state_dict_type(net, kind):
                state = net.state_dict()
                moments = FSDP.optim_state_dict(net, step_of)
            with FSDP.state_dict_type(other, kind):
                keys = other.load_state_dict(state)
                again.load_state_dict(
                    FSDP.optim_state_dict_to_load(other, again, moments)
                )
            for trained, its in ((net, step_of), (other, again)):
                its.zero_grad()
                loss_of(taeda, trained, *batch(taeda, 1, rank, world)).backward()
                its.step()
            a, b = whole(net), whole(other)
            same = all(np.array_equal(a[k], b[k]) for k in a)
            found[kind.name, keeps] = same, list(keys.missing_keys), list(state)
    return found


def saved(rank: int, world: int):
    """A model's and its optimizer's whole states at the first rank, after two steps."""
    join(".", rank, world)
    net = wrapped(auto_wrap_policy=by_layer())
    step_of = optimizer(taeda, net.parameters(), "adam")
    for i in range(2):
        step_of.zero_grad()
        loss_of(taeda, net, *batch(taeda, i, rank, world)).backward()
        step_of.step()
    kind = fsdp.StateDictType.FULL_STATE_DICT
    first = (
        fsdp.FullStateDictConfig(rank0_only=True),
        fsdp.FullOptimStateDictConfig(rank0_only=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FSDP.set_state_dict_type(net, kind, *first)
    model_state, moments = net.state_dict(), FSDP.optim_state_dict(net, step_of)
    if rank:
        return len(model_state), len(moments)
    taeda.save({"model": model_state, "optimizer": moments}, "../state.pt")
    return sorted(model_state), sorted(moments["state"])


def resumed(rank: int, world: int) -> dict:
    """The third step, from what `saved` has saved on another number of ranks."""
    join(".", rank, world)
    state = taeda.load("../state.pt")
    net = wrapped(use_orig_params=True)
    net.load_state_dict(state["model"])
    step_of = optimizer(taeda, net.parameters(), "adam")
    FSDP.optim_state_dict_to_load(net, step_of, state["optimizer"], load_directly=True)
    step_of.zero_grad()
    loss_of(taeda, net, *batch(taeda, 2, rank, world)).backward()
    step_of.step()
    return whole(net)


def summons(rank: int, world: int) -> dict:
    """What a wrapped model shows within `summon_full_params`."""
    join(".", rank, world)
    net = wrapped(auto_wrap_policy=by_layer())
    found: dict = {"outside": [n for n, _ in net.named_parameters()]}
    with FSDP.summon_full_params(net):
        found["within"] = [(n, tuple(p.shape)) for n, p in net.named_parameters()]
        with taeda.no_grad():
            net.module[0].weight.fill_(2.0)
    found["changed"] = whole(net)["0.weight"]
    with FSDP.summon_full_params(net, writeback=False), taeda.no_grad():
        net.module[0].weight.fill_(3.0)
    found["not changed"] = whole(net)["0.weight"]
    net = wrapped(use_orig_params=True)
    loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
    with FSDP.summon_full_params(net, with_grads=True):
        found["gradients"] = [p.grad.numpy().copy() for p in net.parameters()]
    refused = []
    for options in ({"rank0_only": True}, {"offload_to_cpu": True}):
        other = wrapped(sharding_strategy=fsdp.ShardingStrategy.NO_SHARD)
        try:
            with FSDP.summon_full_params(other, **options):
                refused.append("nothing")
        except NotImplementedError as error:
            refused.append(str(error))
    found["refused"] = refused
    return found


def accumulations(rank: int, world: int) -> dict:
    """Gradients that are added up before they are sent."""
    join(".", rank, world)
    found = {}
    for name, options in {
        "flat": {},
        "original": {"use_orig_params": True},
        "kept": {"sharding_strategy": fsdp.ShardingStrategy.SHARD_GRAD_OP},
    }.items():
        net = wrapped(auto_wrap_policy=by_layer(), **options)
        with net.no_sync():
            loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
        loss_of(taeda, net, *batch(taeda, 1, rank, world)).backward()
        taeda.optim.SGD(net.parameters(), lr=1.0).step()
        found[name] = whole(net)
    net = shard(mesh=dist.init_device_mesh("cpu", (world,)))
    net.set_requires_gradient_sync(False)
    loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
    none = all(p.grad is None for p in net.parameters())
    net.set_requires_gradient_sync(True)
    loss_of(taeda, net, *batch(taeda, 1, rank, world)).backward()
    taeda.optim.SGD(net.parameters(), lr=1.0).step()
    found["fully_shard"] = whole(net)
    found["none before"] = none
    return found


def precisions(rank: int, world: int) -> dict:
    """Dtypes of activations, gradients, parameters, buffers and states."""
    join(".", rank, world)

    def kind(t):
        return str(t.dtype).rpartition(".")[2]

    found: dict = {}
    for name, make in {
        "wrapper": lambda net: wrapped(
            net,
            mixed_precision=fsdp.MixedPrecision(
                param_dtype=taeda.bfloat16,
                reduce_dtype=taeda.float32,
                buffer_dtype=taeda.float16,
            ),
        ),
        "fully_shard": lambda net: shard(
            net,
            mesh=dist.init_device_mesh("cpu", (world,)),
            mp_policy=fsdp.MixedPrecisionPolicy(
                param_dtype=taeda.bfloat16, output_dtype=taeda.float32
            ),
        ),
    }.items():
        net = model(dtype="float32")
        net.register_buffer("scale", taeda.ones(2))
        seen = []
        net[2].register_forward_hook(
            lambda _m, i, o, seen=seen: seen.extend([kind(i[0]), kind(o)])
        )
        net = make(net)
        x, y = batch(taeda, 0, rank, world, "float32")
        out = net(x)
        nn.functional.mse_loss(out.float(), y).backward()
        found[name] = {
            "inside": seen,
            "output": kind(out),
            "gradients": {kind(p.grad) for p in net.parameters()},
            "parameters": {kind(p) for p in net.parameters()},
            "buffer": [kind(b) for b in net.buffers()],
            "saved": {kind(v) for v in net.state_dict().values()},
        }
    return found


def frozen_and_unused(rank: int, world: int) -> dict:
    """Parameters without gradients, some of them needed to the end of the pass."""
    join(".", rank, world)

    def mixed():
        net = model()
        net[0].requires_grad_(False)
        net[4].weight.requires_grad_(False)
        return net

    found = {}
    x, y = batch(taeda, 0, rank, world)
    for name, make in {
        "wrapper": lambda: wrapped(mixed(), use_orig_params=True),
        "fully_shard": lambda: shard(
            mixed(), False, mesh=dist.init_device_mesh("cpu", (world,))
        ),
    }.items():
        net, inputs = make(), x.clone().requires_grad_()
        loss_of(taeda, net, inputs, y).backward()
        taeda.optim.SGD([p for p in net.parameters() if p.requires_grad], 1.0).step()
        found[name] = whole(net), inputs.grad.numpy()
    return found


def clippings(rank: int, world: int) -> list:
    """Norms of gradients before they were made smaller, in two norms."""
    join(".", rank, world)
    found = []
    for power in (2.0, float("inf")):
        net = wrapped(auto_wrap_policy=by_layer())
        loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
        before = float(net.clip_grad_norm_(0.1, power))
        after = float(net.clip_grad_norm_(100.0, power))
        net = shard(mesh=dist.init_device_mesh("cpu", (world,)))
        loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1, power)
        found.append((before, after, float(norm.full_tensor())))
    return found


def scalings(rank: int, world: int) -> list:
    """Factors of a scaler; one rank's gradients overflow in the second step."""
    from taeda.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    join(".", rank, world)
    net = wrapped(model(dtype="float32"))
    step_of = taeda.optim.SGD(net.parameters(), lr=0.1)
    scaler, found = ShardedGradScaler("cpu", init_scale=8.0, growth_interval=100), []
    for i in range(3):
        before = whole(net)["0.weight"].copy()
        loss = loss_of(taeda, net, *batch(taeda, i, rank, world, "float32"))
        scaler.scale(loss).backward()
        if i == 1 and rank == world - 1:
            next(net.parameters()).grad[0] = float("inf")
        scaler.step(step_of)
        scaler.update()
        step_of.zero_grad()
        moved = not np.array_equal(before, whole(net)["0.weight"])
        found.append((scaler.get_scale(), moved))
    return found


def beginnings(rank: int, world: int) -> dict:
    """Models that begin on the meta device, or with other values at each rank."""
    join(".", rank, world)
    found: dict = {}

    def fill(module):
        module.to_empty(device="cpu", recurse=False)
        with taeda.no_grad():
            for p in module.parameters(recurse=False):
                p.fill_(rank + 1.0)

    with taeda.device("meta"):
        net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    net = wrapped(
        net, param_init_fn=fill, auto_wrap_policy=by_layer(), sync_module_states=True
    )
    found["sent"] = {k: set(v.reshape(-1).tolist()) for k, v in whole(net).items()}
    with taeda.device("meta"):
        net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    shard(net, mesh=dist.init_device_mesh("cpu", (world,)))
    found["on meta"] = all(p.is_meta for p in net.parameters())
    try:
        net(taeda.ones(1, 3))
    except RuntimeError as error:
        found["refused"] = str(error)
    net.to_empty(device="cpu")
    with taeda.no_grad():
        for p in net.parameters():
            p.fill_(0.5)
    found["output"] = net(taeda.ones(1, 3)).tolist()
    return found


def handles(rank: int, world: int) -> dict:
    """What modules say and do after `fully_shard`."""
    join(".", rank, world)
    mesh = dist.init_device_mesh("cpu", (world,))
    net = shard(mesh=mesh)
    found: dict = {"names": [type(m).__name__ for m in net.modules()]}
    found["part"] = type(net[0:2]).__name__
    handle = net[0].unshard(async_op=True)
    handle.wait()
    found["whole"] = tuple(net[0].weight.shape), type(net[0].weight).__name__
    net[0].reshard()
    found["again"] = type(net[0].weight).__name__
    rows = net[2].weight.to_local().shape[0]
    found["rows"] = rows
    seen: list = []
    net[0].set_all_reduce_hook(lambda part: seen.append(part.numel()))
    net[4].set_gradient_divide_factor(2.0 * world)
    loss_of(taeda, net, *batch(taeda, 0, rank, world)).backward()
    found["hook"] = seen
    found["halved"] = net[4].bias.grad.full_tensor().numpy()
    found["outside"] = None
    try:
        fsdp.fully_shard(nn.Linear(2, 2), mesh=dist.init_device_mesh("cpu", (1,)))
    except ValueError as error:
        found["outside"] = str(error)
    refused = {}
    for name, call in {
        "twice": lambda: fsdp.fully_shard(net, mesh=mesh),
        "container": lambda: fsdp.fully_shard(nn.ModuleList(), mesh=mesh),
        "scalar": lambda: fsdp.fully_shard(_Scalar(), mesh=mesh),
        "factor": lambda: fsdp.fully_shard(
            nn.Linear(2, 2), mesh=mesh, reshard_after_forward=5
        ),
        "uneven": lambda: fsdp.fully_shard(
            nn.Linear(5, 2), mesh=mesh, shard_placement_fn=_second
        ),
        "copy": lambda: importlib.import_module("copy").deepcopy(net),
    }.items():
        try:
            call()
            refused[name] = "nothing"
        except Exception as error:
            refused[name] = type(error).__name__
    found["refused"] = refused
    return found


class _Scalar(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(taeda.ones(()))


def _second(parameter):
    from taeda.distributed.tensor import Shard

    return Shard(1) if parameter.dim() > 1 else None


def failures(rank: int, world: int) -> dict:
    """A step after one that ended by an exception is as if that had not been."""
    join(".", rank, world)

    class Broken(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("broken")

    found = {}
    for name, net in {
        "wrapper": wrapped(auto_wrap_policy=by_layer()),
        "fully_shard": shard(mesh=dist.init_device_mesh("cpu", (world,))),
    }.items():
        x, y = batch(taeda, 0, rank, world)
        middle = net[1] if name == "fully_shard" else net.module[1]
        hook = middle.register_forward_pre_hook(lambda _m, a: Broken.apply(a[0]))
        try:
            loss_of(taeda, net, x, y).backward()
        except ValueError:
            pass
        hook.remove()
        if name == "fully_shard":
            net.reset_iter_state()
        net.zero_grad()
        loss_of(taeda, net, x, y).backward()
        taeda.optim.SGD(net.parameters(), lr=1.0).step()
        found[name] = whole(net)
    return found


def composed(rank: int, world: int) -> dict:
    """`replicate` and recomputation in place."""
    from taeda.distributed import _composable
    from taeda.distributed.algorithms._checkpoint import checkpoint_wrapper as again

    join(".", rank, world)
    found = {}
    net = _composable.replicate(model())
    train(taeda, net, rank=rank, world=world)
    found["replicate"] = whole(net)
    net = model()
    for layer in net:
        _composable.checkpoint(layer)
    shard(net, mesh=dist.init_device_mesh("cpu", (world,)))
    train(taeda, net, rank=rank, world=world)
    found["checkpoint"] = whole(net)
    net = model()
    again.apply_activation_checkpointing(
        net, check_fn=lambda m: isinstance(m, nn.Linear)
    )
    net = wrapped(net, auto_wrap_policy=by_layer())
    train(taeda, net, rank=rank, world=world)
    found["checkpoint_wrapper"] = whole(net)
    return found


def others(rank: int, world: int) -> dict:
    """Hooks, offloading, ignored and shared parameters, unused ones at some ranks."""
    from taeda.distributed.algorithms._comm_hooks import default_hooks as hooks

    join(".", rank, world)
    everyone = dist.group.WORLD
    found: dict = {}
    for name, strategy, hook, state in (
        ("scatter", "FULL_SHARD", hooks.reduce_scatter_hook, hooks.DefaultState),
        ("reduce", "NO_SHARD", hooks.allreduce_hook, hooks.DefaultState),
        ("bf16", "FULL_SHARD", hooks.bf16_compress_hook, hooks.LowPrecisionState),
    ):
        net = wrapped(
            model(dtype="float32"),
            sharding_strategy=fsdp.ShardingStrategy[strategy],
            use_orig_params=True,
        )
        net.register_comm_hook(state(everyone), hook)
        loss_of(taeda, net, *batch(taeda, 0, rank, world, "float32")).backward()
        taeda.optim.SGD(net.parameters(), lr=1.0).step()
        found[name] = whole(net)
    mesh = dist.init_device_mesh("cpu", (world,))
    for name, make in {
        "wrapper": lambda: wrapped(cpu_offload=fsdp.CPUOffload(offload_params=True)),
        "fully_shard": lambda: shard(
            mesh=mesh, offload_policy=fsdp.CPUOffloadPolicy(pin_memory=False)
        ),
    }.items():
        net = make()
        train(taeda, net, rank=rank, world=world)
        found[f"offload {name}"] = whole(net)
    net = shard(mesh=mesh)
    net.set_reduce_scatter_max_input_buffers(3)
    net.set_separate_reduce_scatter_group()
    train(taeda, net, rank=rank, world=world)
    found["offload apart"] = whole(net)
    net = model()
    kept = net[2].weight
    fsdp.fully_shard(net, mesh=mesh, ignored_params={kept})
    found["ignored"] = net[2].weight is kept, type(net[0].weight).__name__
    parts = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    parts.forward = lambda x: parts["b" if rank else "a"](x)
    net = nn.Sequential(parts)
    fsdp.fully_shard(net, mesh=mesh)
    net.set_reduce_scatter_unused_params(True)
    net(taeda.ones(1, 2)).sum().backward()
    found["unused"] = [
        p.grad.full_tensor().reshape(-1)[0].item() for p in net.parameters()
    ]
    return found
