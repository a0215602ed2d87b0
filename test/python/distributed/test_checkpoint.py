"""Checkpoints of real ranks: other numbers of ranks, faults, exchange with torch."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import taeda
import taeda.distributed.checkpoint as dcp
from checkpoint_programs import plain, state, whole
from ranks import run
from taeda.distributed.checkpoint import format_utils
from taeda.distributed.checkpoint.staging import DefaultStager, StagingOptions
from taeda.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from taeda.distributed.checkpoint.state_dict_saver import AsyncSaveResponse

pytestmark = pytest.mark.filterwarnings("ignore")
WANTED = plain(state(1))


def in_torch(script: str, *arguments: str) -> str:
    """What a script prints in a process with torch and without this library."""
    head = "import sys, torch\nimport torch.distributed.checkpoint as dcp\n"
    environment = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", head + script, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def folder(tmp_path, name: str):
    made = tmp_path / name
    made.mkdir()
    return made


@pytest.mark.parametrize(("saved", "loaded"), [(3, 1), (1, 2), (2, 3)])
def test_any_number_of_ranks_loads(tmp_path, saved, loaded):
    path = str(tmp_path / "kept")
    if saved == 1:
        dcp.save(state(1), checkpoint_id=path)
    else:
        for names in run(
            folder(tmp_path, "a"), "checkpoint_programs.save", saved, path
        ):
            assert names == [".metadata", *(f"__{r}_0.distcp" for r in range(saved))]
    name = "checkpoint_programs.load"
    for found in run(folder(tmp_path, "b"), name, loaded, path):
        assert found == WANTED


def test_boxes_of_strided_parts(tmp_path):
    path = str(tmp_path / "kept")
    assert run(tmp_path, "checkpoint_programs.strided", 4, path) == [True] * 4


def test_failures_are_raised_at_every_rank(tmp_path):
    path = str(tmp_path / "kept")
    ranks = run(tmp_path, "checkpoint_programs.failures", 2, path)
    absent, one, size, broken, whole_again = ranks[0]
    assert ranks[1] == ranks[0]
    assert absent == (
        [0, 1],
        "RuntimeError: Missing key in checkpoint state_dict: absent.",
    )
    assert one[0] == [0]
    assert "Size mismatch between saved" in size[1]
    assert broken[0] == [1] and "cannot be saved" in broken[1]
    assert whole_again is True


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_training_goes_on_while_saving(tmp_path, kind):
    path = str(tmp_path / "kept")
    name = "checkpoint_programs.asynchronous"
    assert run(tmp_path, name, 2, path, kind) == [(True, True)] * 2


def test_a_kill_at_any_point_leaves_a_whole_checkpoint(tmp_path):
    path, seen = str(tmp_path / "kept"), set()
    for calls in range(9):
        dcp.save(state(1), checkpoint_id=path)
        place = folder(tmp_path, f"run{calls}")
        run(place, "checkpoint_programs.killed", 1, path, calls)
        found = state(1, 0.0)
        dcp.load(found, checkpoint_id=path)
        found = plain(found)
        assert found in (WANTED, plain(state(1, 9.0)))
        seen.add(found == WANTED)
    assert seen == {True, False}  # it was killed before and after the decisive step


def test_overwriting_leaves_one_checkpoint(tmp_path):
    for _ in range(3):
        dcp.save({"a": taeda.ones(2)}, checkpoint_id=tmp_path)
    assert len(os.listdir(tmp_path)) == 2
    with pytest.raises(dcp.CheckpointException, match="already exists"):
        writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
        dcp.save({"a": taeda.ones(2)}, storage_writer=writer)


def test_states_under_plain_names(tmp_path):
    path = str(tmp_path / "kept")
    for found in run(tmp_path, "checkpoint_programs.trained", 2, path):
        assert found["names"] == ["0.bias", "0.weight", "2.bias", "2.weight"]
        assert found["result"] == []
        assert found["losses"][0] == found["losses"][1]


def test_settings_of_another_rank_are_refused():
    # Of ranks with different parameters one list of names is saved.
    model = taeda.nn.Linear(2, 2)
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    weights, moments = get_state_dict(model, optimizer)
    group = moments["param_groups"][0]
    moments["param_groups"] = [{**group, "lr": 0.1, "params": ["of.a.stage"]}]
    given = {"model_state_dict": weights, "optim_state_dict": moments}
    with pytest.raises(RuntimeError, match="flatten_optimizer_state_dict=True"):
        set_state_dict(model, optimizer, **given)
    lenient = StateDictOptions(strict=False)
    set_state_dict(model, optimizer, **given, options=lenient)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_whole_states_are_spread(tmp_path):
    for rank, found in enumerate(run(tmp_path, "checkpoint_programs.spread", 2)):
        assert found["kinds"] == ["DTensor", "DTensor", "Tensor", "Tensor"]
        assert found["whole"] and found["doubled"]
        assert found["at_first"] == (0 if rank else 4)
        assert found["buffers"] == [5.0] * 4


LOAD = """
zeros = torch.zeros(7, 5, dtype=torch.float64)
state = {"rows": zeros, "columns": zeros.clone(), "all": zeros.clone(), "text": "",
         "nested": {"list": [torch.zeros(2), 0]}}
dcp.load(state, checkpoint_id=sys.argv[1])
print([state["text"], state["nested"]["list"][1], state["nested"]["list"][0].tolist(),
       [state[k].tolist() for k in ("rows", "columns", "all")]])
"""


def test_torch_reads_what_ranks_saved(tmp_path):
    path = str(tmp_path / "kept")
    run(folder(tmp_path, "a"), "checkpoint_programs.save", 2, path)
    text, number, values, tensors = eval(in_torch(LOAD, path))
    assert (text, number, values) == ("kept", 3, [1.0, 2.0])
    for seed, found in enumerate(tensors):
        np.testing.assert_array_equal(found, whole(seed))


SAVE = """
import numpy as np
from pathlib import Path
tensors = {n: torch.from_numpy(np.random.RandomState(i).standard_normal((7, 5)))
           for i, n in enumerate(("rows", "columns", "all"))}
dcp.save({**tensors, "text": "kept", "nested": {"list": [torch.tensor([1.0, 2.0]), 3]}},
         checkpoint_id=Path(sys.argv[1]))
"""


def test_what_torch_saved_is_read(tmp_path):
    path = str(tmp_path / "kept")
    in_torch(SAVE, path)
    for found in run(folder(tmp_path, "a"), "checkpoint_programs.load", 2, path):
        assert found == WANTED
    metadata = dcp.FileSystemReader(path).read_metadata()
    assert str(metadata.storage_meta.checkpoint_id) == path
    assert metadata.state_dict_metadata["rows"].size == (7, 5)


def test_one_file_and_back(tmp_path):
    dcp.save(state(1), checkpoint_id=tmp_path / "kept")
    format_utils.dcp_to_torch_save(tmp_path / "kept", tmp_path / "one.pt")
    assert plain(taeda.load(tmp_path / "one.pt")) == WANTED
    format_utils.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "back")
    found = state(1, 0.0)
    dcp.load(found, checkpoint_id=tmp_path / "back")
    assert plain(found) == WANTED


class Harmful:
    """Its pickle asks for a function to be called."""

    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_descriptions_are_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dcp.save({"a": taeda.ones(2), "b": 1}, checkpoint_id="kept")
    name = tmp_path / "kept" / ".metadata"
    good = name.read_bytes()
    name.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(dcp.CheckpointException, match="blocked"):
        dcp.load({"a": taeda.ones(2)}, checkpoint_id="kept")
    away = good.replace(b"__0_0.distcp", b"../__.distcp")
    assert away != good
    name.write_bytes(away)
    with pytest.raises(dcp.CheckpointException, match="outside the checkpoint"):
        dcp.load({"a": taeda.ones(2)}, checkpoint_id="kept")
    for cut in range(0, len(good) - 1, 7):
        name.write_bytes(good[:cut])
        with pytest.raises(dcp.CheckpointException):
            dcp.load({"a": taeda.ones(2)}, checkpoint_id="kept")
    assert not (tmp_path / "harm").exists()


def test_stateful_and_options_of_writers(tmp_path):
    class Counter:
        def __init__(self, count: float) -> None:
            self.count = taeda.tensor([count])

        def state_dict(self) -> dict:
            return {"count": self.count}

        def load_state_dict(self, state: dict) -> None:
            self.loaded = state["count"].item()

    options = {"many": {"single_file_per_rank": False}, "threads": {"thread_count": 3}}
    for name, option in options.items():
        writer = dcp.FileSystemWriter(tmp_path / name, sync_files=False, **option)
        dcp.save({"c": Counter(4.0), **state(1)}, storage_writer=writer)
        files = [f for f in os.listdir(tmp_path / name) if f.endswith("distcp")]
        assert len(files) == (7 if name == "many" else 3)
        found = {"c": Counter(0.0), **state(1, 0.0)}
        dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path / name))
        assert found.pop("c").loaded == 4.0
        assert plain(found) == WANTED


def test_plans_that_do_not_change_are_not_sent(tmp_path):
    for value in (1.0, 2.0):
        planner = dcp.DefaultSavePlanner(enable_plan_caching=True)
        kept = {"a": taeda.full((3,), value)}
        dcp.save(kept, checkpoint_id=tmp_path, planner=planner)
        planner.set_up_planner(kept, None, True)
        assert not planner.create_local_plan().usable
        found = {"a": taeda.zeros(3)}
        dcp.load(found, checkpoint_id=tmp_path)
        assert found["a"].tolist() == [value] * 3


def test_staging_in_a_thread(tmp_path):
    stager = DefaultStager(StagingOptions(False, False, True, False))
    kept = {"a": taeda.ones(3)}
    found = dcp.async_save(kept, checkpoint_id=tmp_path, async_stager=stager)
    assert isinstance(found, AsyncSaveResponse)
    assert found.staging_completion.result() is None
    kept["a"].zero_()
    assert found.upload_completion.result().version == "1.0.0"
    stager.close()
    dcp.load(kept, checkpoint_id=tmp_path)
    assert kept["a"].tolist() == [1.0] * 3


SAFETENSORS = """
for kept, back in zip(sys.argv[1::2], sys.argv[2::2]):
    state = {"a": torch.zeros(2, 3), "b": {"c": torch.zeros(5, dtype=torch.bfloat16)}}
    dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(kept))
    print(state["a"].tolist(), state["b"]["c"].tolist())
    dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(back))
"""


def test_safetensors(tmp_path):
    every = [
        {},
        {"fqn_to_index_mapping": {"a": 1, "b.c": 2}},
        {"save_distributed": True},
        {"save_distributed": True, "enable_consolidation": True},
    ]
    kept = {
        "a": taeda.arange(6.0).reshape(2, 3),
        "b": {"c": taeda.ones(5, dtype=taeda.bfloat16)},
    }
    places = [str(tmp_path / f"{kind}{i}") for i in range(4) for kind in "kb"]
    for options, path in zip(every, places[::2], strict=True):
        dcp.save(kept, storage_writer=dcp.HuggingFaceStorageWriter(path, **options))
    lines = in_torch(SAFETENSORS, *places).splitlines()
    assert lines == ["[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] " + str([1.0] * 5)] * 4
    for path in places:
        found = dcp.utils.map_tensors(kept, taeda.zeros_like)
        reader = dcp.HuggingFaceStorageReader(path, thread_count=2)
        dcp.load(found, storage_reader=reader)
        assert taeda.equal(found["a"], kept["a"])
        assert taeda.equal(found["b"]["c"], kept["b"]["c"])


def test_quantized_safetensors(tmp_path):
    import json

    from taeda._io.safetensors import save_file

    rng = np.random.RandomState(0)
    blocks = rng.randint(0, 256, (2, 3, 4, 16)).astype("uint8")
    scales = rng.randint(120, 130, (2, 3, 4)).astype("uint8")
    weight = taeda.from_numpy(rng.standard_normal((10, 7)).astype("float32"))
    weight = weight.to(taeda.float8_e4m3fn)
    factors = rng.rand(3, 2).astype("float32")
    tensors = {
        "w_blocks": taeda.from_numpy(blocks),
        "w_scales": taeda.from_numpy(scales),
        "a.weight": weight,
        "a.weight_scale_inv": taeda.from_numpy(factors),
    }
    save_file(tensors, tmp_path / "model-00001-of-00001.safetensors")
    index = dict.fromkeys(tensors, "model-00001-of-00001.safetensors")
    text = json.dumps({"weight_map": index})
    (tmp_path / "model.safetensors.index.json").write_text(text)
    found = {"w_blocks": taeda.zeros(2, 3, 128), "a.weight": taeda.zeros(10, 7)}
    reader = dcp.QuantizedHuggingFaceStorageReader(str(tmp_path), block_size=4)
    dcp.load(found, storage_reader=reader)
    bits = np.stack([blocks & 15, blocks >> 4], -1).reshape(2, 3, 4, 32)
    exponent, mantissa = (bits >> 1) & 3, bits & 1
    normal = (1 + mantissa / 2) * 2.0 ** (exponent.astype(int) - 1)
    value = np.where(exponent > 0, normal, mantissa / 2) * np.where(bits & 8, -1, 1)
    want = value * 2.0 ** (scales.astype(int) - 127)[..., None]
    np.testing.assert_array_equal(found["w_blocks"].numpy(), want.reshape(2, 3, 128))
    wide = factors.repeat(4, 0).repeat(4, 1)[:10, :7] * weight.float().numpy()
    np.testing.assert_allclose(found["a.weight"].numpy(), wide, rtol=1e-6)
