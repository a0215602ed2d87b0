"""What goes wrong on a device is one clear error, and leaves the rest usable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda import cuda


def run(text: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", text]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_tensors_of_two_devices_are_named() -> None:
    x, y = taeda.ones(3, device="cuda:0"), taeda.ones(3, device="cuda:1")
    with pytest.raises(RuntimeError, match="same device") as error:
        x + y
    assert "cuda:0" in str(error.value) and "cuda:1" in str(error.value)
    with pytest.raises(RuntimeError, match="same device"):
        x + taeda.ones(3)
    assert (x + taeda.tensor(2.0)).cpu().tolist() == [3, 3, 3]


def test_errors_name_the_device_that_was_given() -> None:
    x = taeda.ones(2, 3, device="cuda:1")
    for call in (lambda: taeda.bmm(x, x), lambda: taeda.baddbmm(x, x, x)):
        with pytest.raises(RuntimeError, match=r"got \[2, 3\] f32 cuda:1$"):
            call()
    y = taeda.ones(2, 3, device="meta")
    with pytest.raises(RuntimeError, match=r"got \[2, 3\] f32 meta$"):
        taeda.bmm(y, y)


def test_operators_without_a_kernel_say_so() -> None:
    x = taeda.ones(1, 2, 3, 3, device="cuda")
    attention = taeda.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with pytest.raises(NotImplementedError, match=r"for_cpu'.*'CUDA' backend"):
        attention(x, x, x)
    with pytest.raises(NotImplementedError, match="CUDA"):
        taeda.randint_like(x, taeda.tensor(5))


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        taeda.ones(3, device="cuda:5")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        cuda.set_device(9)
    assert cuda.current_device() == 0


def test_numpy_and_the_host_do_not_see_device_memory() -> None:
    x = taeda.ones(3, device="cuda")
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor"):
        x.numpy()


def test_a_driver_that_is_missing_or_old_or_empty() -> None:
    text = (
        "import taeda; print(taeda.cuda.is_available()); taeda.ones(1, device='cuda')"
    )
    missing = run(text, TAEDA_CUDA_DRIVER="/nonexistent/libcuda.so")
    assert missing.stdout == "False\n" and "Found no NVIDIA driver" in missing.stderr
    assert "AssertionError" in missing.stderr
    old = run(text, TAEDA_CUDA_DRIVER="libm.so.6")
    assert old.stdout == "False\n" and "too old: it has no cu" in old.stderr
    broken = run(text, TAEDA_EMULATOR_INIT="35")
    assert "driver version is insufficient" in broken.stderr
    none = run(text, TAEDA_EMULATOR_DEVICES="0")
    assert none.stdout == "False\n" and "no device" in none.stderr


def test_no_compiler_is_one_sentence(tmp_path) -> None:
    text = (
        "import taeda; x = taeda.zeros(3, device='cuda'); print(x.cpu().tolist())\n"
        "x + 1"
    )
    empty = str(tmp_path)  # no program of another run is found
    done = run(text, TAEDA_CUDA_NVRTC="/nonexistent.so", TAEDA_CACHE_DIR=empty)
    assert done.stdout == "[0.0, 0.0, 0.0]\n"
    assert "install the package nvidia-cuda-nvrtc" in done.stderr


def test_kernels_that_do_not_compile_leave_the_rest_usable(tmp_path) -> None:
    text = """
import os, taeda
x = taeda.zeros(3, device="cuda")
before = taeda.cuda.memory_allocated()
os.environ["CXX"] = "false"
for call in (lambda: x + 1, lambda: x.cumsum(0), lambda: x.expand(1 << 16, 3).sum()):
    try:
        call()
    except RuntimeError as error:
        print(str(error).split(":")[0])
taeda.cuda.synchronize()
print(taeda.cuda.memory_allocated() == before, x.cpu().tolist())
del os.environ["CXX"]
print((x + 1).cpu().tolist())
"""
    done = run(text, TAEDA_CACHE_DIR=str(tmp_path))
    *refused, kept, last = done.stdout.splitlines()
    assert len(refused) == 3 and len(set(refused)) == 1, done.stdout + done.stderr
    assert kept == "True [0.0, 0.0, 0.0]" and last == "[1.0, 1.0, 1.0]"


def test_damaged_programs_are_compiled_again(tmp_path) -> None:
    text = "import taeda; print((taeda.zeros(3, device='cuda') + 5).cpu().tolist())"
    folder = str(tmp_path)
    assert run(text, TAEDA_CACHE_DIR=folder).stdout == "[5.0, 5.0, 5.0]\n"
    files = sorted((tmp_path / "cuda").glob("*.cubin"))
    assert files
    for number, file in enumerate(files):
        content = file.read_bytes()
        middle = len(content) // 2
        damaged = content[:middle] + b"!" + content[middle + 1 :]
        file.write_bytes(damaged if number % 2 == 0 else content[:40])
    assert run(text, TAEDA_CACHE_DIR=folder).stdout == "[5.0, 5.0, 5.0]\n"


def test_packed_programs_need_no_compiler(tmp_path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
    from devtool import cubins

    text = "import taeda; print((taeda.zeros(3, device='cuda') + 5).cpu().tolist())"
    first, other = tmp_path / "first", tmp_path / "other"
    texts = tmp_path / "texts"
    texts.mkdir()
    launches = tmp_path / "launches"
    run(
        text,
        TAEDA_CACHE_DIR=str(first),
        TAEDA_EMULATOR_TEXTS=str(texts),
        TAEDA_EMULATOR_LAUNCHES=str(launches),
    )
    (name,) = cubins.most_launched(launches.read_text())
    assert cubins.most_launched("1 b\n3 a\n2 b\n9 c", 2) == ["c", "a"]
    (file,) = (first / "cuda").glob("*.cubin")
    key, _, code = file.read_bytes().split(b"\n", 2)
    packed = tmp_path / "programs.bin"
    mine = cubins.text_key((texts / name).read_bytes())
    assert key.decode().endswith(mine)
    cubins.pack(
        [
            (f"taeda cuda 1 sm_90a {cubins.headers_key(first)} text 9 0", b"another"),
            (f"taeda cuda 1 sm_90a {cubins.headers_key(first)} {mine}", code),
        ],
        packed,
    )
    places = {
        "TAEDA_CUDA_PROGRAMS": str(packed),
        "TAEDA_CUDA_NVRTC": "/nonexistent.so",
        "TAEDA_CACHE_DIR": str(other),
    }
    assert run(text, **places).stdout == "[5.0, 5.0, 5.0]\n"
    assert not other.exists()
    content = packed.read_bytes()
    packed.write_bytes(content[:-9] + b"!" + content[-8:])
    assert "install the package nvidia-cuda-nvrtc" in run(text, **places).stderr


def test_a_forked_process_is_told() -> None:
    text = """
import os, taeda
taeda.ones(2, device="cuda").cpu()
child = os.fork()
if child == 0:
    try:
        taeda.ones(2, device="cuda") + 1
    except RuntimeError as error:
        told = "forked subprocess" in str(error) and taeda.cuda._is_in_bad_fork()
        os._exit(3 if told else 4)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(text).stdout == "3\n"


def test_a_stream_after_its_devices_reset() -> None:
    text = """
import ctypes, os, taeda
from taeda import cuda
stream = cuda.Stream()
with cuda.stream(stream):
    x = taeda.ones(4, device="cuda") + 1
there = taeda.ones(3, device="cuda:1")
ctypes.CDLL(os.environ["TAEDA_CUDA_DRIVER"]).cuDevicePrimaryCtxReset_v2(0)
calls = (
    stream.synchronize,
    lambda: x + 1,
    lambda: x.cpu(),
    lambda: taeda.empty(1 << 22, device="cuda"),
    lambda: cuda.Event(enable_timing=True).record(),
)
for call in calls:
    try:
        call()
    except RuntimeError as error:
        print("context is destroyed" in str(error), "was reset" in str(error))
del x, stream
print((there + 1).cpu().tolist())
"""
    done = run(text)
    assert done.stdout == "True True\n" * 5 + "[2.0, 2.0, 2.0]\n", done.stderr
    assert done.returncode == 0


def test_two_processes_on_one_device(tmp_path) -> None:
    text = """
import sys, taeda
from taeda import cuda
free, total = cuda.mem_get_info()
print(free < total // 4, flush=True)
try:
    taeda.empty(total // 2, dtype=taeda.uint8, device="cuda")
except cuda.OutOfMemoryError as error:
    print("MiB is in use by other processes" in str(error), flush=True)
sys.stdin.readline()
x = taeda.zeros(total // 2, dtype=taeda.uint8, device="cuda")
print(x[-9:].cpu().tolist() == [0] * 9, flush=True)
"""
    shared = {"TAEDA_EMULATOR_SHARED": str(tmp_path / "devices")}
    first = """
import sys, taeda
from taeda import cuda
x = taeda.zeros(400 << 20, dtype=taeda.uint8, device="cuda")
print("ready", flush=True)
sys.stdin.readline()
print(x[-9:].cpu().tolist() == [0] * 9)
del x
cuda.empty_cache()
print("gone", flush=True)
sys.stdin.readline()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = os.environ | shared
    with subprocess.Popen(
        [sys.executable, "-c", first], env=environment, **pipes
    ) as one:
        assert one.stdout.readline() == "ready\n"
        command = [sys.executable, "-c", text]
        with subprocess.Popen(command, env=environment, **pipes) as other:
            assert other.stdout.readline() == "True\n"
            assert other.stdout.readline() == "True\n"
            one.stdin.write("\n")
            one.stdin.flush()
            assert one.stdout.readline() == "True\n"
            assert one.stdout.readline() == "gone\n"
            assert other.communicate("\n")[0] == "True\n"
        one.communicate("\n")
        assert one.returncode == other.returncode == 0


def test_device_memory_without_mapping() -> None:
    text = """
import taeda
from taeda import cuda
kept = [taeda.full((n << 18,), float(n), device="cuda") for n in (1, 4, 9, 30)]
assert [t.cpu().unique().tolist() for t in kept] == [[1], [4], [9], [30]]
assert not any(s["is_expandable"] for s in cuda.memory_snapshot())
before = cuda.memory_reserved()
del kept
cuda.empty_cache()
print(before > cuda.memory_reserved() == 0)
"""
    assert run(text, TAEDA_EMULATOR_NO_MAPPING="1").stdout == "True\n"
