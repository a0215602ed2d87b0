"""What workers of remote calls do in `test_rpc.py`, with either library.

Functions that are called remotely are found by their names in this module.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import threading
import time

from ranks import is_done_with, is_ending, until_done_with

lib = rpc = dist_autograd = None


def begin(rank: int, world: int, name: str = "taeda", **options) -> None:
    """Joins as the worker w0, w1, ... with a library."""
    global lib, rpc, dist_autograd
    lib = importlib.import_module(name)
    rpc = importlib.import_module(f"{name}.distributed.rpc")
    dist_autograd = importlib.import_module(f"{name}.distributed.autograd")
    url = f"file://{os.getcwd()}/workers"
    options = rpc.TensorPipeRpcBackendOptions(init_method=url, **options)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=world, rpc_backend_options=options)


def told(function, *args, **kwargs) -> str:
    """The class of what a function raises, and its text."""
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# Called at other workers.


def look(tensor) -> tuple:
    values = tensor.tolist()
    return tuple(tensor.shape), tensor.stride(), tensor.requires_grad, values


def same(value):
    return value


def next_number(future) -> int:
    return future.wait() + 1


def fail_locally():
    class Local(Exception):
        pass

    raise Local("text")


def slow(seconds: float, value=None):
    time.sleep(seconds)
    return value


def fail(text: str):
    raise ValueError(text)


def fail_by_key(key: str):
    raise KeyError(key)


class Odd(Exception):
    def __init__(self, first, second) -> None:
        super().__init__(first, second)


def fail_oddly():
    raise Odd(1, 2)


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.value = start
        self.lock = threading.Lock()

    def add(self, by: int = 1) -> int:
        with self.lock:
            self.value += by
            return self.value

    def fail(self):
        raise ValueError("counter")


def add_to(rref, by: int) -> int:
    return rref.rpc_sync().add(by)


def value_of(rref):
    return rref.to_here()


def own(rref):
    return rref.is_owner(), rref.owner_name(), rref.local_value().value


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def deep(count: int, mine: str, other: str) -> int:
    """Calls go back and forth, each waiting for the next."""
    if count == 0:
        return 0
    return 1 + rpc.rpc_sync(other, deep, args=(count - 1, other, mine))


def mixed(to: str, x, weight=None):
    """A tensor that is used here, sent on, and used again with what came."""
    y = x * 2
    z = rpc.rpc_sync(to, product, args=(y, x))
    if weight is not None:
        z = z * weight
    return (z + y**2).sum()


def product(a, b):
    return a * b


def split_in_two(x):
    return x * 3, x.exp()


def linear():
    module = lib.nn.Linear(2, 3)
    with lib.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.fill_(0.5 + index)
    return module


def weights(rref) -> list:
    return [p.tolist() for p in rref.local_value().parameters()]


def chained(to: str):
    """Marked by `calls`, since the mark is the library's."""
    future = rpc.rpc_async(to, lib.add, args=(lib.ones(2), 1))
    return future.then(lambda f: f.wait() + 1)


# Programs.


def forked(rank: int, world: int, name: str, workers: int) -> list:
    """`calls` by forks of this process, which has imported the library once."""
    for part in ("rpc", "autograd", "nn", "optim"):
        importlib.import_module(f"{name}.distributed.{part}")
    children = []
    for worker in range(workers):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                found = calls(worker, workers, name)
                with open(f"part.{worker}", "wb") as file:
                    pickle.dump(found, file)
            finally:
                os._exit(0)
    for child in children:
        os.waitpid(child, 0)
    results = []
    for worker in range(workers):
        with open(f"part.{worker}", "rb") as file:
            results.append(pickle.load(file))
    return results


def calls(rank: int, world: int, name: str) -> dict:
    """Calls of every kind from worker 0; what came of them, as plain data."""
    begin(rank, world, name)
    module = sys.modules[__name__]
    module.chained = rpc.functions.async_execution(module.chained)
    found = {}
    if rank == 0:
        x = lib.arange(6.0).reshape(2, 3)
        found = {
            "sync": rpc.rpc_sync("w1", lib.add, args=(x, 1)).tolist(),
            "info": repr(rpc.rpc_sync(1, rpc.get_worker_info)),
            "by info": rpc.rpc_sync(rpc.get_worker_info("w2"), os.getpid) > 0,
            "kwargs": rpc.rpc_sync(
                "w1", lib.sum, args=(x,), kwargs={"dim": 1}
            ).tolist(),
            "strided": rpc.rpc_sync("w1", look, args=(x.t(),)),
            "part": rpc.rpc_sync("w1", same, args=(x[:, 1],)).tolist(),
            "grad": rpc.rpc_sync("w1", look, args=(x.clone().requires_grad_(),)),
            "returned": look(rpc.rpc_sync("w2", same, args=(x.t(),))),
            "self": rpc.rpc_sync("w0", same, args=({"a": [1, (2, None)]},)),
            "chained": rpc.rpc_sync("w1", chained, args=("w2",)).tolist(),
            "then": rpc.rpc_async("w1", same, args=(2,)).then(next_number).wait(),
            **failures(),
            **references(),
            **gradients(),
        }
    rpc.shutdown()
    found["after"] = told(rpc.rpc_sync, "w1", same, args=(1,)).split(" Call ")[0]
    return found


def failures() -> dict:
    found = {
        "unknown": told(rpc.get_worker_info, "nobody"),
        "no worker": told(rpc.rpc_sync, None, same, args=(1,)),
        "no function": told(rpc.rpc_sync, "w1", 3)[:38],
        "local": told(rpc.rpc_sync, "w1", lambda: 1)[:40],
        "late": told(rpc.rpc_sync, "w1", slow, args=(1.0,), timeout=0.1),
        "raised": told(rpc.rpc_sync, "w1", fail, args=("some text",)),
    }
    late = "RPC ran for more than set timeout (100 ms)"
    found["late"] = found["late"].startswith("RuntimeError") and late in found["late"]
    raised = "ValueError: On WorkerInfo(id=1, name=w1):\nValueError('some text')\n"
    found["raised"] = raised in found["raised"].replace("Error: ValueError:", "Error:")
    return found


def references() -> dict:
    made = rpc.remote("w1", Counter, args=(5,))
    mine = rpc.RRef(Counter(7))
    late = rpc.remote("w1", slow, args=(0.2, 4))
    return {
        "rref": (made.owner_name(), made.is_owner(), mine.is_owner(), mine.owner().id),
        "methods": (made.rpc_sync().add(2), made.rpc_async().add().wait()),
        "remote method": made.remote().add(10).to_here(),
        "passed on": rpc.rpc_sync("w2", add_to, args=(made, 100)),
        "passed home": rpc.rpc_sync("w1", own, args=(made,)),
        "mine": rpc.rpc_sync("w2", add_to, args=(mine, 1)),
        "came back": rpc.rpc_sync("w2", same, args=(mine,)).local_value().value,
        "to here": (late.to_here(), mine.to_here() is mine.local_value()),
        "confirmed": (made.confirmed_by_owner(), mine.confirmed_by_owner()),
        "text": repr(mine).split("(")[0] + " " + repr(made).split("(")[0],
        "failed": told(rpc.remote("w1", fail, args=("x",)).to_here)[:42],
        "not here": "can't call localValue() on user" in told(made.local_value),
        "no pickle": told(__import__("pickle").dumps, mine)[:50],
    }


def gradients() -> dict:
    found = {}
    a = lib.arange(1.0, 4.0).requires_grad_()
    w = lib.full((3,), 0.5).requires_grad_()
    with dist_autograd.context() as context:
        loss = rpc.rpc_sync("w1", mixed, args=("w2", a)) * 3
        loss = loss + rpc.rpc_sync("w2", mixed, args=("w0", a * 2, w))
        dist_autograd.backward(context, [loss], retain_graph=True)
        got = dist_autograd.get_gradients(context)
        found["once"] = [got[t].tolist() for t in (a, w)]
        dist_autograd.backward(context, [loss])
        got = dist_autograd.get_gradients(context)
        found["twice"] = [got[t].tolist() for t in (a, w)]
        found["apart"] = (a.grad, w.grad)
    with dist_autograd.context() as context:
        value = rpc.remote("w1", product, args=(a, w))
        dist_autograd.backward(context, [(value.to_here() * a).sum()])
        got = dist_autograd.get_gradients(context)
        found["through a reference"] = [got[t].tolist() for t in (a, w)]
    return found | refusals(context, a) | {"modules": modules()}


def refusals(ended: int, a) -> dict:
    with dist_autograd.context() as context:
        y = rpc.rpc_sync("w1", product, args=(a, a))
        texts = {
            "no roots": told(dist_autograd.backward, context, []),
            "no scalar": told(dist_autograd.backward, context, [y]),
            "no grad": told(dist_autograd.backward, context, [lib.ones(())]),
        }
        dist_autograd.backward(context, [y.sum()])
        again = told(dist_autograd.backward, context, [y.sum()])
    wanted = {
        "no roots": "No tensors provided for gradient computation",
        "no scalar": "is not a scalar, all roots need to be scalar",
        "no grad": "requires_grad not set on root",
    }
    unknown = told(dist_autograd.get_gradients, ended)
    return {
        **{key: wanted[key] in text for key, text in texts.items()},
        "again": "Trying to backward through the graph a second time" in again,
        "ended": "Could not find autograd context with id" in unknown,
    }


def modules() -> dict:
    optimizer = importlib.import_module(f"{lib.__name__}.distributed.optim")
    api = importlib.import_module(f"{lib.__name__}.distributed.nn")
    module = api.RemoteModule("w1/cpu", linear)
    x = lib.arange(8.0).reshape(4, 2)
    parameters = module.remote_parameters()
    steps = optimizer.DistributedOptimizer(lib.optim.Adam, parameters, lr=0.1)
    losses = []
    for _ in range(3):
        with dist_autograd.context() as context:
            loss = (module(x) ** 2).mean()
            dist_autograd.backward(context, [loss])
            steps.step(context)
            losses.append(loss.item())
    return {
        "losses": losses,
        "weights": rpc.rpc_sync("w1", weights, args=(module.get_module_rref(),)),
        "later": module.forward_async(x).wait().tolist(),
        "no parameters": told(module.parameters),
        "no other": told(module.state_dict),
        "no module": told(api.RemoteModule, "w1/cpu", dict).split(":")[0],
    }


def unused(rank: int, world: int) -> dict:
    """Backward passes that do not come by all that was sent."""
    begin(rank, world)
    found = {}
    if rank == 0:
        a = lib.arange(1.0, 4.0).requires_grad_()
        with dist_autograd.context() as context:
            used, other = rpc.rpc_sync("w1", split_in_two, args=(a,))
            rpc.rpc_sync("w1", product, args=(a, other))
            b = used * a
            rpc.rpc_sync("w2", same, args=(b,))
            dist_autograd.backward(context, [(used * b).sum()])
            found["unused"] = dist_autograd.get_gradients(context)[a].tolist()
        with dist_autograd.context() as context:
            # The second call of w1 waits there for the third, which nobody uses.
            first = rpc.rpc_sync("w1", product, args=(a, a))
            second = rpc.rpc_sync("w1", mixed, args=("w2", first))
            rpc.rpc_sync("w1", mixed, args=("w2", first * second))
            dist_autograd.backward(context, [second])
            found["waiting"] = dist_autograd.get_gradients(context)[a].tolist()
        deadline = time.monotonic() + 5
        while rpc.rpc_sync("w2", contexts) and time.monotonic() < deadline:
            time.sleep(0.01)
        found["contexts"] = rpc.rpc_sync("w2", contexts)
    rpc.shutdown()
    return found


def contexts() -> int:
    return int(rpc._get_debug_info()["num_autograd_contexts"])


def busy(rank: int, world: int) -> dict:
    """Many threads with many calls, and chains longer than there are threads."""
    begin(rank, world, num_worker_threads=2)
    found = {}
    counter = rpc.remote(f"w{(rank + 1) % world}", Counter)
    failed = []

    def work(seed: int) -> None:
        try:
            futures = [counter.rpc_async().add() for _ in range(20)]
            tensor = lib.full((1000,), float(seed))
            echoes = [rpc.rpc_async(r, same, args=(tensor,)) for r in range(world)] * 4
            assert len({f.wait() for f in futures}) == 20
            assert all(f.wait()[0] == seed for f in echoes)
        except BaseException as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    found["deep"] = rpc.rpc_sync("w1", deep, args=(24, "w1", "w0"), timeout=30)
    for thread in threads:
        thread.join()
    found["odd"] = told(rpc.rpc_sync, "w1", fail_oddly)
    found["local"] = told(rpc.rpc_sync, "w1", fail_locally)
    found["by key"] = told(rpc.rpc_sync, "w1", fail_by_key, args=("k",))
    found["twice"] = told(rpc.init_rpc, "w0", rank=0, world_size=3)
    found["failed"], found["count"] = failed, counter.rpc_sync().add(0)
    large = lib.arange(1_000_000)
    back = [rpc.rpc_async("w1", same, args=(large,)) for _ in range(2)]
    found["large"] = all(lib.equal(f.wait(), large) for f in back)
    rpc.shutdown()
    return found


def counted(rank: int, world: int) -> dict:
    """How many values the owner keeps while references come and go."""
    begin(rank, world)
    found = {}
    if rank == 0:
        rref = rpc.remote("w1", Counter)
        rpc.rpc_sync("w2", keep, args=(rref,))
        found["two"] = rpc.rpc_sync("w1", entries)
        del rref
        time.sleep(0.1)
        found["kept"] = rpc.rpc_sync("w1", entries)
        found["still there"] = rpc.rpc_sync("w2", use_kept)
        rpc.rpc_sync("w2", keep, args=(None,))
        mine = rpc.RRef([1])
        rpc.rpc_sync("w2", keep, args=(mine,))
        found["mine"] = entries()
        rpc.rpc_sync("w2", keep, args=(None,))
        found["none"] = (
            until(entries, 0),
            until(lambda: rpc.rpc_sync("w1", entries), 0),
        )
    rpc.shutdown()
    return found


_kept = None


def keep(rref) -> None:
    global _kept
    _kept = rref


def use_kept() -> int:
    return _kept.rpc_sync().add(3)


def entries() -> int:
    return int(rpc._rref_context_get_debug_info()["num_owner_rrefs"])


def until(function, wanted):
    deadline = time.monotonic() + 5
    while function() != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return function()


def killed(rank: int, world: int) -> list:
    begin(rank, world, rpc_timeout=8)
    if rank == 1:
        time.sleep(30)
    started = time.monotonic()
    rref = rpc.remote("w1", Counter)
    rref.rpc_sync().add()
    other = rpc.rpc_async("w1", slow, args=(20,))
    is_done_with(rank, 1)
    until_done_with(1, (0, 2))
    found = [told(rpc.rpc_sync, "w1", die)] if rank == 0 else []
    found += [told(other.wait), told(rref.rpc_sync().add), told(rref.to_here)]
    found.append(told(rpc.shutdown, timeout=10))
    found.append(time.monotonic() - started)
    is_ending(1)
    return found


def stopped(rank: int, world: int) -> list:
    begin(rank, world, rpc_timeout=1)
    if rank == 1:
        time.sleep(30)
    pid = rpc.rpc_sync("w1", os.getpid)
    rpc.rpc_async("w1", stop)
    started = time.monotonic()
    large = lib.zeros(2_000_000)
    many = [rpc.rpc_async("w1", same, args=(large,)) for _ in range(3)]
    sent = time.monotonic() - started
    found = [told(future.wait) for future in many]
    found += [told(rpc.shutdown, timeout=1), sent, time.monotonic() - started]
    os.kill(pid, signal.SIGKILL)
    is_ending(1)
    return found


def coming_and_going(rank: int, world: int) -> str:
    """Workers that were not counted before."""
    global lib, rpc
    import taeda as lib
    import taeda.distributed.rpc as rpc

    port = int(os.environ.get("PORT", "0"))
    if rank == 0:
        with __import__("socket").socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open("new_port", "w") as file:
            file.write(str(port))
        os.rename("new_port", "port")
    while not os.path.exists("port"):
        time.sleep(0.01)
    with open("port") as file:
        port = int(file.read())
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    time.sleep(0.3 * rank)
    rpc.init_rpc(f"w{rank}", rank=rank, rpc_backend_options=options)
    found = ""
    if rank == 2:
        found = repr([rpc.rpc_sync(f"w{r}", os.getpid) > 0 for r in range(3)])
        found += told(rpc.rpc_sync, "w7", os.getpid)
    while rank < 2 and not os.path.exists("done"):
        time.sleep(0.01)
    open("done", "w").close()
    rpc.shutdown()
    return found
