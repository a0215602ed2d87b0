"""The lints fire on what they forbid, and on nothing else."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "lint"))

import layers
import readmes
import requirements
import sizes


def _line(place: str, line: str) -> str | None:
    path = pathlib.Path(place)
    return layers.check_line(path, layers.layer_of(path) or "", line)


@pytest.mark.parametrize(
    ("place", "line", "message"),
    [
        ("c10/core/a.h", "#include <taeda/aten/core/x.h>", "c10 may not include"),
        ("c10/core/a.h", "#include <taeda/gen/ops/add.h>", "c10 may not include"),
        ("aten/core/a.cpp", "#include <taeda/csrc/autograd/n.h>", "aten may not"),
        ("aten/core/a.cpp", "#include <taeda/gen/autograd/n.h>", "aten may not"),
        ("csrc/autograd/a.cpp", "#include <taeda/csrc/python/p.h>", "csrc may not"),
        ("csrc/autograd/a.cpp", "#include <Python.h>", "only csrc/python"),
        ("aten/core/a.cpp", "#  include <pybind11/pybind11.h>", "only csrc/python"),
        ("c10/util/a.h", "#include <fmt/format.h>", "belongs into .cpp"),
        ("aten/native/blas/a.cpp", "#include <cblas.h>", "only plugin folders"),
        ("aten/native/dnn/a.cpp", "#include <oneapi/dnnl/dnnl.h>", "only plugin"),
        ("aten/core/a.cpp", '#include "tensor.h"', "write <taeda/...>"),
        ("aten/core/a.cpp", "#include <taeda/taeda.h>", "front end's"),
        ("aten/core/a.cpp", "#include <taeda/c10/no_such_file.h>", "does not exist"),
    ],
)
def test_layers_refuses(place: str, line: str, message: str) -> None:
    found = _line(place, line)
    assert found is not None and message in found


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("aten/core/a.cpp", "#include <taeda/gen/ops/add.h>"),
        ("aten/core/a.cpp", "#include <fmt/format.h>"),
        ("aten/core/a.h", "#include <vector>"),
        ("csrc/python/a.cpp", "#include <Python.h>"),
        ("csrc/python/a.cpp", "#include <taeda/gen/python/x.h>"),
        ("aten/native/blas/plugin/a.cpp", "#include <cblas.h>"),
        ("aten/native/blas/a.cpp", "// #include <Python.h>"),
    ],
)
def test_layers_accepts(place: str, line: str) -> None:
    assert _line(place, line) is None


def test_torch_import_in_the_package_is_found(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    import torch.nn\n    from .torch import x\n")
    (found,) = layers.check_python(bad)
    assert ":2: the package imports torch.nn" in found


CPP = """
#define WRAP(x) { x
namespace taeda {
struct Point {
  int x = 0;
  int norm() const {
    return x < 0 ? -x : x;  // }
  }
};
Point::Point(int a, int b)
    : x_{a}, y_(b) {
  check();
}
const char* kBrace = "{";
int table[] = {1, 2, 3};
template <typename T>
std::vector<T> twice(const std::vector<T>& in) {
  auto add = [](T a) {
    return a + a;
  };

  return {add(in[0])};
}
bool operator==(const Point& a, const Point& b) { return a.x == b.x; }
}  // namespace taeda
"""


def test_cpp_functions_are_found_with_their_lengths() -> None:
    found = {name: (first, size) for name, first, size in sizes.cpp_functions(CPP)}
    assert found == {
        "norm": (6, 3),
        "Point::Point": (10, 4),
        "twice": (16, 7),
        "operator==": (24, 1),
    }


def test_python_functions_count_code_without_docstring_and_comments() -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    # why\n    return 1\n'
    assert list(sizes.python_functions(text)) == [("f", 1, 1)]


def test_machine_paths_are_found() -> None:
    assert readmes.MACHINE.search("see " + "/ho" + "me/me/x")
    assert not readmes.MACHINE.search("build/tmp/x and https://a.org/work")


@pytest.mark.parametrize("name", sorted(requirements.HEADERS))
def test_requirements_notices_a_library_that_is_not_included(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert requirements.included(*requirements.HEADERS[name])
    monkeypatch.setattr(requirements, "included", lambda *_: False)
    assert requirements.main() == 1


def test_requirements_notices_a_requirement_without_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert requirements.main() == 0
    monkeypatch.setattr(requirements, "required", lambda: {"cmake", "boost"})
    assert requirements.main() == 1
