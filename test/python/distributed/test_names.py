"""Parts that programs know from PyTorch by name: each does what it says there."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from datetime import timedelta

import pytest
import taeda
import taeda.distributed as dist
import torch
import torch.distributed._functional_collectives  # which its utils need
from taeda.distributed import argparse_util, utils
from taeda.distributed.elastic import events, metrics, rendezvous, timer
from taeda.distributed.elastic import utils as elastic_utils
from taeda.distributed.remote_device import _remote_device
from torch.distributed import utils as torch_utils
from torch.distributed.elastic import events as torch_events
from torch.distributed.remote_device import _remote_device as torch_remote_device


@pytest.fixture
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_forms_of_group_methods(group):
    """Options in the second place, values there, and either by name."""
    x = taeda.ones(2)
    op, short = dist.ReduceOp.MAX, timedelta(seconds=5)
    for works in (
        [
            group.allreduce([x]),
            group.allreduce(x, op),
            group.allreduce(tensor=x, op=op),
        ],
        [group.allreduce([x], dist.AllreduceOptions()), group.allreduce(tensors=[x])],
        [group.allreduce([x], opts=dist.AllreduceOptions()), group.barrier(short)],
        [group.broadcast(x, 0), group.broadcast(tensors=[x]), group.reduce(x, 0, op)],
        [
            group.broadcast(x, root=0, timeout=short),
            group.barrier(dist.BarrierOptions()),
        ],
        [group.reduce([x], dist.ReduceOptions()), group.barrier(opts=None)],
    ):
        for work in works:
            assert work.wait() and work.get_future_result().wait() == 0
    assert x.tolist() == [1.0, 1.0]
    for call in (
        lambda out: group.allgather([[out]], [x]),
        lambda out: group.allgather([out], x),
        lambda out: group.allgather(output_tensors=[out], input_tensor=x),
        lambda out: group.gather([out], x, 0),
        lambda out: group.gather([[out]], [x], dist.GatherOptions()),
        lambda out: group.scatter(out, [x], 0),
        lambda out: group.scatter(output_tensors=[out], input_tensors=[[x]]),
        lambda out: group.reduce_scatter(out, [x], op),
        lambda out: group.reduce_scatter(output=out, input=[x]),
        lambda out: group.reduce_scatter([out], [[x]], dist.ReduceScatterOptions()),
        lambda out: group.alltoall([out], [x]),
        lambda out: group.alltoall(output_tensors=[out], input_tensors=[x]),
        lambda out: group.alltoall(output=[out], input=[x], timeout=short),
        lambda out: group.alltoall_base(out, x, [], [], dist.AllToAllOptions()),
        lambda out: group.alltoall_base(output_tensor=out, input_tensor=x,
                                        output_split_sizes=[], input_split_sizes=[]),
        lambda out: group.all_to_all_single(output=out, input=x, output_split_sizes=[],
                                            input_split_sizes=[], timeout=short),
        lambda out: group.all_gather_single_coalesced([out], [x]),
        lambda out: group.reduce_scatter_single_coalesced([out], [x]),
    ):  # fmt: skip
        out = taeda.zeros(2)
        call(out).wait()
        assert out.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="a tensor, or a list of tensors, is missing"):
        group.allreduce(op=op)
    with pytest.raises(TypeError, match="allreduce got 2 values for argument 0"):
        group.allreduce(x, tensors=[x])
    with pytest.raises(TypeError, match="barrier takes 1 .* at most, got 2"):
        group.barrier(short, short)


def test_group_and_backend(group):
    assert group.bound_device_id is None
    assert group.split_group(new_ranks=[0]).size() == 1
    backend = group._get_backend(taeda.device("cpu"))
    assert not backend.supports_shrinking and not backend.supports_time_estimate
    assert not backend.supports_tensor_alloc(taeda.device("cpu"))
    for call, name in (
        (backend.memory_stats, "getMemoryStats"),
        (backend.suspend, "suspend"),
        (backend.resume, "resume"),
    ):
        with pytest.raises(RuntimeError, match=f"Backend gloo does not support {name}"):
            call()
    assert dist.ReduceOp.PREMUL_SUM(3.0).factor == 3.0


def test_builtin_hooks(group):
    for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType(2)):
        model = taeda.nn.Linear(3, 2)
        x = taeda.randn(4, 3)
        model(x).sum().backward()
        want = model.weight.grad.clone()
        model.zero_grad()
        wrapped = taeda.nn.parallel.DistributedDataParallel(model)
        wrapped._register_builtin_comm_hook(kind)
        wrapped(x).sum().backward()
        close = 1e-2 if kind.name == "FP16_COMPRESS" else 1e-6
        assert taeda.allclose(model.weight.grad, want, rtol=close)
        with pytest.raises(RuntimeError, match="only be called once"):
            wrapped._register_builtin_comm_hook(kind)
    kinds = torch.distributed.BuiltinCommHookType
    for name in ("ALLREDUCE", "FP16_COMPRESS"):
        ours, theirs = getattr(dist.BuiltinCommHookType, name), getattr(kinds, name)
        assert (ours.name, ours.value, repr(ours)) == (
            theirs.name, theirs.value, repr(theirs),
        )  # fmt: skip
        assert hash(ours) == hash(dist.BuiltinCommHookType(ours.value))
        assert ours == dist.BuiltinCommHookType(ours.value) and ours != 1


def test_store_barrier():
    store = dist.HashStore()
    came = []

    def come() -> None:
        store.barrier("b", 3)
        came.append(1)

    threads = [threading.Thread(target=come) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    assert not came
    store.barrier("b", 3, timedelta(seconds=10))
    for thread in threads:
        thread.join()
    assert len(came) == 2
    with pytest.raises(ValueError, match="caller 4 of 3 came to 'b'"):
        store.barrier("b", 3)
    with pytest.raises(dist.DistStoreError):
        store.barrier("alone", 2, timedelta(milliseconds=50))


@dataclasses.dataclass
class Pair:
    first: object
    second: object


Named = collections.namedtuple("Named", "a b")


@pytest.mark.parametrize(("lib", "tools"), [(taeda, utils), (torch, torch_utils)])
def test_containers(lib, tools):
    x = lib.ones(2)
    nested = {"p": Pair([x, 1], None), "n": Named(x, (x, "s")), "o": [{3}]}
    made = tools._apply_to_tensors(lambda t: t * 2, nested)
    assert made["p"].first[0].tolist() == [2.0, 2.0] and made["p"].first[1] == 1
    assert type(made["n"]) is Named and made["n"].b[0].tolist() == [2.0, 2.0]
    assert made["o"] == [{3}] and x.tolist() == [1.0, 1.0]
    ordered = collections.OrderedDict(b=x, a=x)
    assert list(tools._apply_to_tensors(lambda t: 1, ordered).items()) == [
        ("b", 1), ("a", 1),
    ]  # fmt: skip
    packed = tools._pack_kwargs(1, 2, a=3, b=4)
    assert packed == ((1, 2, 3, 4), ("a", "b"))
    assert tools._unpack_kwargs(*packed) == ((1, 2), {"a": 3, "b": 4})
    with pytest.raises(AssertionError):
        tools._unpack_kwargs((1,), ("a", "b"))
    args, kwargs = tools._cast_forward_inputs(lib.float64, x, k=lib.arange(2))
    assert args[0].dtype == lib.float64 and kwargs["k"].dtype == lib.int64
    state = {"a.x": 1, "b.y": 2}
    tools._replace_by_prefix(state, "a.", "c.a.")
    assert state == {"c.a.x": 1, "b.y": 2}
    with pytest.raises(ValueError, match="must be distinct"):
        tools._replace_by_prefix(state, "a", "a")
    with pytest.raises(AssertionError, match="told"):
        tools._p_assert(False, "told")
    inner = lib.nn.Linear(1, 1)
    outer = lib.nn.Sequential(inner)
    assert tools._get_root_modules([inner, outer]) == [outer]
    moved = tools._to_kwargs((x,), {"k": 1}, lib.device("cpu"), False)
    assert moved[0][0][0].tolist() == [1.0, 1.0] and moved[1] == ({"k": 1},)
    tensor = lib.arange(4)
    tools._free_storage(tensor)
    assert tensor.untyped_storage().nbytes() == 0 and not tools._data_ptr_allocated(
        tensor
    )
    tools._alloc_storage(tensor, lib.Size([4]))
    assert tensor.untyped_storage().nbytes() == 32


def test_sync_of_modules(group):
    module = taeda.nn.BatchNorm1d(3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    utils._sync_module_states(module, group, 16, 0, {"weight"})
    for name, value in module.state_dict().items():
        assert taeda.equal(value, before[name])


@pytest.mark.parametrize(
    "text",
    ["w1/cpu", "w1", "rank:2/cpu", "rank:2", "cpu", "w1/cpu/0", "", "w1/", "a:b/cpu",
     "rank:x", "w/no", 3, "/cpu", "a:b:c"],
)  # fmt: skip
def test_remote_devices(text):
    found = []
    for kind in (_remote_device, torch_remote_device):
        try:
            made = kind(text)
            told = made.worker_name(), made.rank(), str(made.device()), repr(made)
            found.append((*told, made == kind(text), hash(made) == hash(kind(text))))
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_options_from_the_environment(monkeypatch):
    monkeypatch.setenv("PET_COUNT", "7")
    monkeypatch.setenv("PET_FLAG", "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", action=argparse_util.env, required=True)
    parser.add_argument("--flag", action=argparse_util.check_env)
    parser.add_argument("--other", action=argparse_util.check_env)
    found = parser.parse_args([])
    assert (found.count, found.flag, found.other) == ("7", True, False)
    found = parser.parse_args(["--count", "8", "--other"])
    assert (found.count, found.other) == ("8", True)


def test_run_names(tmp_path, monkeypatch):
    from taeda.distributed import run

    args = run.parse_args(["--master-addr=h", "--master-port=5", "x.py"])
    assert run.get_rdzv_endpoint(args) == "h:5" and run.get_use_env(args)
    args = run.parse_args(["--rdzv-backend=c10d", "--rdzv-endpoint=e:1", "x.py"])
    assert run.get_rdzv_endpoint(args) == "e:1"
    script = tmp_path / "s.py"
    script.write_text("import sys; open(sys.argv[1], 'w').write(__name__)")
    monkeypatch.setattr(sys, "argv", ["before"])
    run.run_script_path(str(script), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "__main__"


def test_metrics(capsys):
    class Keep(metrics.MetricHandler):
        def __init__(self) -> None:
            self.seen = []

        def emit(self, metric_data) -> None:
            self.seen.append(metric_data)

    keep = Keep()
    metrics.configure(keep, "mine")

    @metrics.prof(group="mine")
    def step(fails: bool) -> None:
        if fails:
            raise ValueError("x")

    step(False)
    with pytest.raises(ValueError, match="x"):
        step(True)
    names = [(seen.group_name, seen.name.rpartition(">.")[2]) for seen in keep.seen]
    ends = ["step.success", "step.duration.ms", "step.failure", "step.duration.ms"]
    assert names == [("mine", end) for end in ends]
    metrics.configure(metrics.ConsoleMetricHandler(), "shown")
    metrics.publish_metric("shown", "count", 3)
    metrics.put_metric("dropped", 1)
    assert capsys.readouterr().out.endswith("[shown]: count=3\n")


def test_events(caplog):
    one = events.Event("e", events.EventSource.WORKER, 5, {"a": 1})
    other = torch_events.Event("e", torch_events.EventSource.WORKER, 5, {"a": 1})
    assert str(one) == str(other) and events.Event.deserialize(str(one)) == one
    kept = []
    handler = logging.Handler()
    handler.emit = lambda record: kept.append(record.getMessage())
    events.handlers._log_handlers["kept"] = handler
    try:
        events.record(one, "kept")
    finally:
        del events.handlers._log_handlers["kept"]
    assert kept == [str(one)]
    node = events.RdzvEvent("n", "r", "m", "h", 1, events.NodeState.INIT)
    assert events.RdzvEvent.deserialize(node.serialize()) == node


def test_tools_of_launchers(monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    with pytest.raises(ValueError, match="NOT_THERE expected, but not set"):
        elastic_utils.get_env_variable_or_raise("NOT_THERE")
    with elastic_utils.get_socket_with_port() as listener:
        assert listener.getsockname()[1] > 0
    given = ["--r=${local_rank}", 3, "$other"]
    assert elastic_utils.macros.substitute(given, "2") == ["--r=2", 3, "$other"]


def wait_too_long(queue, seconds: float) -> None:
    timer.configure(timer.LocalTimerClient(queue))
    with timer.expires(after=0.2):
        time.sleep(seconds)


def test_timers_end_who_is_late():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    server = timer.LocalTimerServer(queue, max_interval=0.05)
    workers = [
        context.Process(target=wait_too_long, args=(queue, seconds))
        for seconds in (0.0, 30.0)
    ]
    for worker in workers:
        worker.start()
    server.start()
    for worker in workers:
        worker.join(10)
    server.stop()
    assert [worker.exitcode for worker in workers] == [0, -signal.SIGKILL]
    with pytest.raises(RuntimeError, match="Configure timer client"):
        with timer.expires(after=1):
            pass


def meet(node: int, port: int, told) -> None:
    """One of two nodes: they meet, again, and then the job is closed."""
    parameters = rendezvous.RendezvousParameters(
        "c10d", f"localhost:{port}", "job", 2, 2, timeout="20", is_host=node == 0
    )
    handler = rendezvous.rendezvous_handler_registry.create_handler(parameters)
    found = []
    for _ in range(2):
        info = handler.next_rendezvous()
        place = rendezvous.RendezvousStoreInfo.build(info.rank, info.store)
        info.store.barrier("met", 2)
        found.append((info.rank, info.world_size, tuple(place)))
    found.append(handler.num_nodes_waiting())
    info.store.barrier("before the end", 2)
    found.append(handler.shutdown() and handler.is_closed())
    try:
        handler.next_rendezvous()
    except rendezvous.RendezvousClosedError:
        found.append("closed")
    told.put(found)
    info.store.add("left", 1)
    while node == 0 and info.store.add("left", 0) < 2:
        time.sleep(0.01)


def test_rendezvous():
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    with elastic_utils.get_socket_with_port() as free:
        port = free.getsockname()[1]
    nodes = [context.Process(target=meet, args=(n, port, told)) for n in range(2)]
    for node in nodes:
        node.start()
    found = [told.get(timeout=40) for _ in nodes]
    for node in nodes:
        node.join(20)
    for (one, size, place), (other, _, same) in zip(
        *(f[:2] for f in found), strict=True
    ):
        assert {one, other} == {0, 1} and size == 2 and place == same
    assert [f[2:] for f in found] == [[0, True, "closed"]] * 2


def test_rendezvous_parameters():
    make = rendezvous.RendezvousParameters
    given = make("b", "e", "r", 1, 2, flag="yes", count="3", odd="x")
    assert given.get_as_bool("flag") is True and given.get_as_int("count") == 3
    assert given.get("none", 5) == 5 and given.get_as_int("none") is None
    with pytest.raises(ValueError, match="valid boolean"):
        given.get_as_bool("odd")
    with pytest.raises(ValueError, match="valid integer"):
        given.get_as_int("odd")
    with pytest.raises(ValueError, match="non-empty"):
        make("", "e", "r", 1, 2)
    with pytest.raises(ValueError, match="greater than zero"):
        make("b", "e", "r", 3, 2)
    registry = rendezvous.RendezvousHandlerRegistry()
    registry.register("b", dict)
    with pytest.raises(ValueError, match="already registered"):
        registry.register("b", list)
    with pytest.raises(ValueError, match="'c' is not registered"):
        registry.create_handler(make("c", "e", "r", 1, 2))


def test_log_of_collectives():
    from taeda.distributed import c10d_logger

    kept = []
    handler = logging.Handler()
    handler.emit = lambda record: kept.append(record.msg)
    c10d_logger._c10d_logger.addHandler(handler)
    try:
        with pytest.raises(KeyError):
            c10d_logger._exception_logger(lambda: {}["x"])()
        assert c10d_logger._time_logger(os.getpid)() == os.getpid()
    finally:
        c10d_logger._c10d_logger.removeHandler(handler)
    assert kept[0]["error"] == "'x'" and kept[1]["time_spent"].endswith("ns")
