"""What goes by the names of classes and functions goes on under as_torch."""

from __future__ import annotations

MODEL = """
import sys
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.TransformerEncoderLayer(4, 2, 8))
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
data = torch.utils.data.TensorDataset(torch.arange(3.0))
normal = torch.distributions.Normal(torch.zeros(1), torch.ones(1))
functions = nn.functional.relu, nn.Linear, type(schedule), torch.float32, torch.strided
states = optimizer.state_dict(), schedule.state_dict()
rest = {"states": states, "data": data, "kinds": functions}
torch.save({"model": model, "normal": normal, **rest}, sys.argv[1])
"""
READ = """
import sys
import taeda as torch

read = torch.load(sys.argv[1], weights_only=False)
print(*(type(value).__name__ for value in read.values()), *read["kinds"][2:])
assert read["kinds"][0] is torch.nn.functional.relu
assert read["kinds"][1] is torch.nn.Linear
assert len(read["data"]) == 3 and read["model"][0].weight.shape == (3, 2)
assert read["states"][1]["total_steps"] == 10
"""


def test_files_of_whole_models_go_to_and_fro(run, tmp_path):
    """From as_torch to PyTorch, to a program without as_torch, and back."""
    readers = {
        "as_torch": (READ.replace("import taeda as torch", "import torch"), False),
        "PyTorch": (READ.replace("import taeda as torch", "import torch"), True),
        "taeda": (READ, True),  # without as_torch
    }
    for writer, real in (("as_torch", False), ("PyTorch", True)):
        path = tmp_path / f"{writer}.pt"
        run(MODEL, path, real=real)
        assert b"taeda" not in path.read_bytes()
        for reader, (text, plain) in readers.items():
            library = "taeda" if reader == "taeda" else "torch"
            place = "lr_scheduler"
            if library == "taeda":
                place = "_schedule_cycles"
            assert run(text, path, real=plain) == (
                "Sequential Normal tuple TensorDataset tuple"
                f" <class '{library}.optim.{place}.OneCycleLR'>"
                f" {library}.float32 {library}.strided"
            ), (writer, reader)


def test_pickle_copy_hints_and_source(run):
    program = """
        import copy, inspect, pickle, typing
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        text = pickle.dumps(model)
        print(b"taeda" in text, type(pickle.loads(text)[0]) is nn.Linear)
        print(type(copy.deepcopy(model)), type(copy.copy(model[0])))
        print(typing.get_type_hints(nn.Linear.forward)["input"])
        print(inspect.getsource(nn.Linear).partition("(")[0])
        owner = inspect.getmodule(nn.Linear)
        print(owner.__name__, nn.__name__, nn.functional.__name__)
        print(inspect.getfile(torch.optim.SGD).rpartition("/")[2])
        for call in ("torch.foo", "nn.foo", "torch.optim.foo", "torch.utils.data.foo"):
            try:
                eval(call)
            except AttributeError as error:
                print(str(error).partition(":")[0])
        """
    assert run(program).split("\n") == [
        "False True",
        "<class 'torch.nn.modules.container.Sequential'>"
        " <class 'torch.nn.modules.linear.Linear'>",
        "<class 'torch.Tensor'>",
        "class Linear",
        "torch.nn.modules.linear torch.nn torch.nn.functional",
        "sgd.py",
        "module 'torch' has no attribute 'foo'",
        "module 'torch.nn' has no attribute 'foo'",
        "module 'torch.optim' has no attribute 'foo'",
        "module 'torch.utils.data' has no attribute 'foo'",
    ]


PACKAGED = """
import pathlib, sys
import torch
from torch import nn, package

path = pathlib.Path(sys.argv[1])
if not path.exists():
    with package.PackageExporter(path) as exporter:
        exporter.save_pickle("model", "model.pkl", nn.Linear(2, 3))
loaded = package.PackageImporter(path).load_pickle("model", "model.pkl")
print(type(loaded), loaded.weight.shape)
"""


def test_packages_go_to_and_fro(run, tmp_path):
    shown = "<class 'torch.nn.modules.linear.Linear'> torch.Size([3, 2])"
    for writer in (False, True):
        path = tmp_path / f"{writer}.pt"
        for reader in (writer, not writer):
            assert run(PACKAGED, path, real=reader) == shown
            assert b"taeda" not in path.read_bytes()


TRACED = """
import pickle
import torch
from torch import fx, nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.linear(x)))
        return torch.sigmoid(x).sum(dtype=torch.float32) + x

traced = fx.symbolic_trace(Model())
print(traced.code.strip())
again = pickle.loads(pickle.dumps(traced))
print(torch.equal(again(torch.ones(2, 2)), traced(torch.ones(2, 2))))
print([node.op for node in traced.graph.nodes])
"""


def test_generated_code_is_that_of_pytorch(run, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TRACED)
    found = run(program)
    assert found == run(program, real=True)
    assert "call_module" in found and "torch._C._nn.gelu" in found


def test_compiled_code_knows_the_librarys_classes(run, tmp_path):
    """Layers, optimizers and sizes are the library's own under both names."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.compile(fullgraph=True)
def predict(x, size=torch.Size([4, 1])):
    return model(x).expand(size) + len(size)

@torch.compile
def step():
    optimizer.step()

for _ in range(2):
    loss = predict(torch.ones(4, 2)).sum()
    loss.backward()
    before = model[0].weight.detach().clone()
    step()
    assert not torch.equal(before, model[0].weight)
    optimizer.zero_grad()
explained = torch._dynamo.explain(lambda x: model(x))(torch.ones(4, 2))
print(explained.graph_break_count, loss.shape)
"""
    )
    assert run(program) == "0 torch.Size([])"


def test_workers_by_spawn_take_classes_and_models(run, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import torch
from torch import nn

def told(index, model, kind, results):
    results.put((str(type(model)), kind is nn.Linear, model(torch.ones(1, 2)).shape))

if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    model = nn.Linear(2, 3)
    torch.multiprocessing.spawn(told, (model, nn.Linear, results), nprocs=1)
    print(*results.get())
"""
    )
    shown = "<class 'torch.nn.modules.linear.Linear'> True torch.Size([1, 3])"
    assert run(program) == shown
