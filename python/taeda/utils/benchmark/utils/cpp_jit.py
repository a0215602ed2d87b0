"""Statements in C++, compiled to be timed."""

from __future__ import annotations

__all__ = ["CppTimer"]

_SOURCE = """
#include <chrono>
{global_setup}
double timeit(int64_t number) {{
  {setup}
  for (int i = 0; i < 2; ++i) {{
    {stmt};
  }}
  auto start = std::chrono::steady_clock::now();
  for (int64_t taeda_run = 0; taeda_run < number; ++taeda_run) {{
    {stmt};
  }}
  auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - start).count();
}}
"""


class CppTimer:
    """Compiles a statement; `timeit(number)` gives the seconds of so many runs."""

    def __init__(self, stmt: str, setup: str, global_setup: str) -> None:
        import hashlib

        from taeda.utils.cpp_extension import load_inline

        text = _SOURCE.format(stmt=stmt, setup=setup, global_setup=global_setup)
        name = "timer_" + hashlib.sha256(text.encode()).hexdigest()[:16]
        module = load_inline(name, text, functions="timeit", extra_cflags=["-O2"])
        self.timeit = module.timeit
