"""What ranks do in the tests of pipelines."""

from __future__ import annotations

import taeda
import taeda.distributed as dist
from ranks import join
from taeda import nn
from taeda.distributed import pipelining
from taeda.distributed.pipelining import _rules, schedules

LAYERS = 8


def whole():
    """The same model at every rank; layers of several widths."""
    taeda.manual_seed(0)
    sizes = [4, 5, 6, 5, 7, 4, 6, 5, 3]
    parts = [
        nn.Sequential(nn.Linear(a, b), nn.Tanh())
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]
    return nn.Sequential(*parts).double()


def batch(rows: int = 8) -> tuple:
    taeda.manual_seed(1)
    return (
        taeda.randn(rows, 4, dtype=taeda.float64),
        taeda.randn(rows, 3, dtype=taeda.float64),
    )


def mean_square(output, target):
    return nn.functional.mse_loss(output, target)


def alone(count: int, rows: int = 8) -> tuple[list, list]:
    """Losses and gradients of one process."""
    model, (x, y) = whole(), batch(rows)
    pairs = zip(x.tensor_split(count), y.tensor_split(count), strict=True)
    losses = [mean_square(model(a), b) for a, b in pairs]
    (sum(losses) / count).backward()
    return [x.item() for x in losses], [p.grad for p in model.parameters()]


def build(name: str, rank: int, world: int, per_rank: int, count: int, loss):
    """A schedule, the whole model, and the numbers of this rank's stages."""
    stages = world * per_rank
    in_v = name in ("ZBVZeroBubble", "DualPipeV")
    place = (_rules.v_shaped if in_v else _rules.looped)(world, stages)
    mine = [stage for stage, owner in place.items() if owner == rank]
    model, each = whole(), LAYERS // stages
    parts = [
        pipelining.PipelineStage(
            model[s * each : (s + 1) * each], s, stages, taeda.device("cpu")
        )
        for s in mine
    ]
    kind = schedules.get_schedule_class(name)
    several = issubclass(kind, schedules.PipelineScheduleMulti)
    schedule = kind(parts if several else parts[0], count, loss_fn=loss)
    return schedule, model, mine, each


def gradients_agree(model, mine: list, each: int, wanted: list) -> bool:
    own = {i for s in mine for i in range(s * each, (s + 1) * each)}
    for i, layer in enumerate(model):
        for j, param in enumerate(layer.parameters()):
            if i in own and not taeda.allclose(param.grad, wanted[2 * i + j]):
                return False
    return True


def schedule(rank: int, world: int, cases: list) -> list:
    """Losses and gradients of schedules against those of one process."""
    join(".", rank, world)
    found = []
    for name, per_rank, count, rows in cases:
        one, model, mine, each = build(name, rank, world, per_rank, count, mean_square)
        x, y = batch(rows)
        losses: list = []
        last = world * per_rank - 1 in mine
        output = one.step(
            *((x,) if 0 in mine else ()), target=y if last else None, losses=losses
        )
        wanted_losses, wanted = alone(count, rows)
        right = gradients_agree(model, mine, each, wanted)
        if last:
            got = taeda.tensor([loss.item() for loss in losses])
            right &= taeda.allclose(got, taeda.tensor(wanted_losses))
            right &= taeda.allclose(output, whole()(x))
        else:
            right &= output is None and losses == []
        found.append((name, bool(right)))
    return found


def steps(rank: int, world: int) -> list:
    """Training with an optimizer, evaluation between, batches of other sizes."""
    join(".", rank, world)
    one, model, mine, each = build("1F1B", rank, world, 1, 2, mean_square)
    part = model[mine[0] * each : (mine[0] + 1) * each]
    optimizer = taeda.optim.SGD(part.parameters(), lr=0.1)
    reference = whole()
    again = taeda.optim.SGD(reference.parameters(), lr=0.1)
    right = []
    for rows in (8, 6, 5):
        x, y = batch(rows)
        last = rank == world - 1
        losses: list = []
        with taeda.no_grad():
            value = one.eval(*(() if rank else (x,)), target=y if last else None)
            if last:
                right.append(taeda.allclose(value, reference(x)))
        one.step(*(() if rank else (x,)), target=y if last else None, losses=losses)
        optimizer.step()
        optimizer.zero_grad()
        pairs = zip(x.tensor_split(2), y.tensor_split(2), strict=True)
        (sum(mean_square(reference(a), b) for a, b in pairs) / 2).backward()
        again.step()
        again.zero_grad()
    own = model[mine[0] * each : (mine[0] + 1) * each].parameters()
    like = reference[mine[0] * each : (mine[0] + 1) * each].parameters()
    right += [taeda.allclose(a, b) for a, b in zip(own, like, strict=True)]
    return [bool(x) for x in right]


class Forked(nn.Module):
    """Two tensors go from stage to stage, one of which needs no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, *, scale):
        mask = (x > 0).float()
        h = self.a(x)
        pipelining.pipe_split()
        h2 = self.b(h).relu() * mask
        pipelining.pipe_split()
        return {"out": self.c(h2 + h), "mask": mask * scale}


def traced(rank: int, world: int) -> list:
    """A model cut by its graph, with a skip over a stage, keywords, a dictionary."""
    join(".", rank, world)
    taeda.manual_seed(0)
    model = Forked()
    x, scale = taeda.randn(6, 4), taeda.full((6, 1), 2.0)
    pipe = pipelining.pipeline(model, (x[:2],), {"scale": scale[:2]})
    stage = pipe.build_stage(rank, taeda.device("cpu"))
    names = [name for name, _ in stage.submod.named_parameters()]

    def loss(result, target):
        return (result["out"] - target).square().mean() + result["mask"].mean()

    one = schedules.ScheduleGPipe(stage, 3, loss_fn=loss)
    last = rank == world - 1
    args = ((x,), {"scale": scale}) if rank == 0 else ((), {})
    target = taeda.zeros(6, 4) if last else None
    result = one.step(*args[0], target=target, **args[1])
    taeda.manual_seed(0)
    reference = Forked()
    outputs = [
        reference(a, scale=b) for a, b in zip(x.chunk(3), scale.chunk(3), strict=True)
    ]
    (sum(loss(o, 0.0) for o in outputs) / 3).backward()
    wanted = dict(reference.named_parameters())
    right = [
        taeda.allclose(param.grad, wanted[name].grad)
        for name, param in stage.submod.named_parameters()
    ]
    if last:
        joined = taeda.cat([o["out"] for o in outputs])
        right.append(taeda.allclose(result["out"], joined))
    return [names, [bool(r) for r in right]]


def troubles(rank: int, world: int) -> list:
    """What is refused, and an error in a stage."""
    join(".", rank, world)
    found = []

    def attempt(function, *args, **kwargs) -> None:
        try:
            function(*args, **kwargs)
            found.append("nothing")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}"[:60])

    part, cpu = whole()[:4], taeda.device("cpu")
    stage = pipelining.PipelineStage
    attempt(stage, part, 2, 2, cpu)
    attempt(stage, part, 0, 1, cpu)
    attempt(pipelining.Schedule1F1B, stage(part, 1 - rank, 2, cpu), 2)
    attempt(pipelining.ScheduleZBVZeroBubble, [stage(part, rank, 2, cpu)], 2)
    attempt(schedules.get_schedule_class, "none")
    one = pipelining.ScheduleGPipe(stage(part, rank, 2, cpu), 4, loss_fn=mean_square)
    with taeda.no_grad():
        attempt(one.step)
    attempt(one.step, taeda.zeros(2, 4), target=None)
    dist.barrier()
    return found


def custom(rank: int, world: int, path: str) -> list:
    """Functions in place of actions, and a table out of a file."""
    join(".", rank, world)
    one, model, mine, each = build("DualPipeV", rank, world, 2, 4, mean_square)
    calls = []

    def overlapped(action, context) -> None:
        calls.append(str(action))
        stages = {s.stage_index: s for s in context.schedule_ref._stages}
        for part in action.sub_actions:
            stage, number = stages[part.stage_index], part.microbatch_index
            if part.computation_type is schedules.FORWARD:
                output = stage.forward_one_chunk(number, context.arg_mbs[number])
                if stage.is_last:
                    loss = mean_square(output, context.target_mbs[number])
                    context.losses[number] = loss
            else:
                loss = context.losses[number] if stage.is_last else None
                stage.backward_one_chunk(number, loss=loss)

    one.register_custom_function(schedules.OVERLAP_F_B, overlapped)
    one._dump_csv(f"{path}.{rank}")
    one._load_csv(f"{path}.{rank}")
    x, y = batch()
    one.step(*((x,) if 0 in mine else ()), target=y if rank == 0 else None)
    _, wanted = alone(4)
    return [bool(calls), gradients_agree(model, mine, each, wanted)]


def with_data_parallel(rank: int, world: int, kind: str) -> bool:
    """Two pipelines of two ranks; the copies of a stage average their gradients."""
    from taeda.distributed.device_mesh import init_device_mesh

    join(".", rank, world)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    pipe, copies = mesh["pp"].get_group(), mesh["dp"].get_group()
    number = mesh.get_local_rank("pp")
    model, (x, y) = whole(), batch(8)
    part = model[number * 4 : number * 4 + 4]
    if kind == "ddp":
        held = nn.parallel.DistributedDataParallel(part, process_group=copies)
    else:
        from taeda.distributed.fsdp import fully_shard

        held = fully_shard(part, mesh=mesh["dp"])
    stage = pipelining.PipelineStage(held, number, 2, taeda.device("cpu"), group=pipe)
    one = pipelining.Schedule1F1B(stage, 2, loss_fn=mean_square)
    rows = slice(4 * mesh.get_local_rank("dp"), 4 * mesh.get_local_rank("dp") + 4)
    one.step(*((x[rows],) if number == 0 else ()), target=y[rows] if number else None)
    _, wanted = alone(4)
    mine = wanted[8 * number : 8 * number + 8]
    found = [
        p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad
        for p in held.parameters()
    ]
    return all(taeda.allclose(a, b) for a, b in zip(found, mine, strict=True))
