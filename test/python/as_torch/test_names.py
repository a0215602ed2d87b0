"""What classes and functions say of themselves is what they say in PyTorch."""

from __future__ import annotations

import json
import pathlib
import textwrap

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "public_names.py"


def test_names_are_those_of_pytorch(run):
    """Of 1,185 public classes and functions; the rest lie elsewhere inside."""
    real, ours = (json.loads(run(PROGRAM, real=way)) for way in (True, False))
    same, other, printed = 0, [], []
    for module, names in real.items():
        for name in names.keys() & ours[module].keys():
            kind, place, inner, shown = names[name]
            found = ours[module][name]
            assert "taeda" not in str(found[1:]), (module, name, found)
            if "native" in (kind, found[0]):
                continue
            same += found[1] == place
            if found[1] != place:
                other.append(f"{module}.{name}: {found[1]} for {place}")
            if kind == found[0] == "class" and shown and found[3] != shown:
                printed.append(f"{module}.{name}: {found[3]} for {shown}")
    print("\n".join(other + printed))
    assert same >= 1107 and len(other) <= 78 and len(printed) <= 51


def test_every_public_class_is_found_where_it_says(run):
    """As pickle looks for it: module, then the name inside of it."""
    program = """
        import importlib, pickle, sys, types
        sys.path.insert(0, sys.argv[1])
        import torch
        from public_names import MODULES

        lost, count = [], 0
        for path in MODULES:
            for name, value in list(vars(importlib.import_module(path)).items()):
                if name.startswith("_") or not isinstance(value, type):
                    continue
                if value.__module__.partition(".")[0] != "torch":
                    continue
                count += 1
                try:
                    assert pickle.loads(pickle.dumps(value)) is value
                except Exception as error:
                    lost.append(f"{path}.{name}: {error}")
        print(count, lost)
        """
    count, _, lost = run(program, HERE).partition(" ")
    assert lost == "[]" and int(count) >= 278


def test_the_source_of_a_class_is_found_in_the_file_that_defines_it(run):
    """Though the class names a public module, and whenever inspect is imported."""
    program = """
        import inspect, re, torch
        sources = [
            re.split("[(:]", inspect.getsource(c))[0]
            for c in (
                torch.optim.lr_scheduler.StepLR,
                torch.nn.Linear,
                torch.nn.MultiheadAttention,
                torch.fx.Interpreter,
                torch.utils.data.DataLoader,
            )
        ]
        from taeda import as_torch
        as_torch.uninstall()
        print(sources, hasattr(inspect.getfile, "_of_others"))
        """
    names = "StepLR Linear MultiheadAttention Interpreter DataLoader".split()
    shown = f"{[f'class {name}' for name in names]} False"
    assert run(program) == shown
    later = "import inspect\nfrom taeda.as_torch import install; install()\n"
    assert run(later + textwrap.dedent(program), real=True) == shown


def test_without_as_torch_and_after_it_names_are_this_librarys(run):
    program = """
        import sys
        import torch, torch.nn, torch.optim.lr_scheduler
        from taeda import as_torch, nn

        kinds = nn.Linear, torch.optim.lr_scheduler.OneCycleLR, torch.dtype, torch.Size
        print([f"{k.__module__}.{k.__qualname__}" for k in kinds])
        as_torch.uninstall()
        print([f"{k.__module__}.{k.__qualname__}" for k in kinds], nn.__name__)
        print(nn.Linear.forward.__module__, torch.add.__module__, torch.__name__)
        print([name for name in sys.modules if name.startswith("torch")])
        as_torch.install()
        print([f"{k.__module__}.{k.__qualname__}" for k in kinds], nn.__name__)
        """
    names = "nn.modules.linear.Linear optim.lr_scheduler.OneCycleLR dtype Size".split()
    installed = [f"torch.{name}" for name in names]
    own = [f"taeda.{name}" for name in names]
    own[1] = "taeda.optim._schedule_cycles.OneCycleLR"
    assert run(program).split("\n") == [
        str(installed),
        f"{own} taeda.nn",
        "taeda.nn.modules.linear taeda taeda",
        "[]",
        f"{installed} torch.nn",
    ]
