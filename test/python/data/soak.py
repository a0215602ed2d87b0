"""Random kills and Ctrl-C over data loaders: a clear error in time, nothing left.

    python test/python/data/soak.py --minutes 30 --count 200 --seed 1
    python test/python/data/soak.py --seed 1 --only 17

A program (`programs/soaked.py`) passes over loaders that every case draws anew
(`soak_cases.py`), for as long as it lives; at a random moment a fault hits it or one of
its workers. It must tell the fault within LIMIT seconds, with the exception that names
it, and hold no descriptor, thread, process or memory more than before; what a killed
program leaves may live no longer than that. Values of all passes are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from soak_cases import CTRL_C, PROGRAM, WORKER, Case, cases

HERE = Path(__file__).parent
LIMIT = 5.0
START = 60.0  # for a program to begin, on a busy machine
SLOT = 1.5  # seconds in which a fault comes unless the minutes say so
STOPPED = 1.5  # `TIMEOUT` of the program's loaders
MARK = "TAEDA_SOAK"
SIGNALS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "fault": signal.SIGSEGV,
    "stop": signal.SIGSTOP,
    "program kill": signal.SIGKILL,
    "program terminate": signal.SIGTERM,
}


class Program:
    """A program that passes over loaders, and all processes that come from it."""

    def __init__(self, folder: Path) -> None:
        self.mark, self._rest = secrets.token_hex(8), b""
        self.log = folder / "log"
        env = {**os.environ, MARK: self.mark, "OMP_NUM_THREADS": "1"}
        env["PYTHONPATH"] = str(HERE.parents[2] / "python")
        env["TMPDIR"] = str(folder)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "programs" / "soaked.py")],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def ask(self, case: Case) -> None:
        """Begin a case."""
        self.process.stdin.write(json.dumps(vars(case)).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, seconds: float) -> dict | None:
        """Its next line; None if none comes in time, or ever."""
        end = time.monotonic() + seconds
        out = self.process.stdout
        while b"\n" not in self._rest:
            rest = max(0.0, end - time.monotonic())
            if not select.select([out], [], [], rest)[0]:
                return None
            more = os.read(out.fileno(), 1 << 16)
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def own(self) -> list[int]:
        """Processes that came from it and run, or that nobody has waited for."""
        found, mark = [], f"{MARK}={self.mark}".encode()
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if mark in Path(f"/proc/{entry}/environ").read_bytes():
                        found.append(int(entry))
        return found

    def end(self) -> None:
        """End it, and all of its processes."""
        for pid in {self.process.pid, *self.own()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def described(pid: int) -> str:
    """A process's state, and how long it has had a processor."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return f"{pid} has ended"
    seconds = sum(map(int, text[11:13])) / os.sysconf("SC_CLK_TCK")
    return f"{pid} in state {text[0]} after {seconds:.2f} s of processor time"


class Strike:
    """One case on a program: the fault, what came of it, what was wrong.

    Args:
        case: it. program: one that waits for a case.
    """

    def __init__(self, case: Case, program: Program) -> None:
        self.case, self.program = case, program
        self.problems: list[str] = []
        self.seconds: float | None = None  # from the fault to what it led to
        self.felt = True
        self._victim = 0

    def run(self) -> Strike:
        """The whole case."""
        self.program.ask(self.case)
        begun = self.program.answer(START)
        if begun is None:
            self.problems.append("the program did not begin")
            return self
        time.sleep(self.case.moment)
        struck = self._strike(set(begun["others"]))
        if self.case.fault in PROGRAM:
            self._await_the_end(struck)
        else:
            self._await_the_answer(struck)
        return self

    def _strike(self, others: set[int]) -> float:
        """Do the harm; returns when."""
        fault, pid = self.case.fault, self.program.process.pid
        if fault in PROGRAM:
            struck = time.monotonic()
            os.kill(pid, SIGNALS[fault])
        elif fault in CTRL_C:
            struck = time.monotonic()
            os.killpg(pid, signal.SIGINT)
            if fault == "ctrl-c twice":
                time.sleep(self.case.again)
                os.killpg(pid, signal.SIGINT)
        else:
            struck = self._strike_a_worker(others | {pid})
        return struck

    def _strike_a_worker(self, others: set[int]) -> float:
        """The newest worker that runs; there may be none for a moment."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for pid in sorted(set(self.program.own()) - others, reverse=True):
                with contextlib.suppress(ProcessLookupError):
                    struck = time.monotonic()
                    os.kill(pid, SIGNALS[self.case.fault])
                    self._victim = pid
                    return struck
            time.sleep(0.001)
        return time.monotonic()

    def _await_the_end(self, struck: float) -> None:
        while own := self.program.own():
            # The program itself is this process's child.
            self.program.process.poll()
            if time.monotonic() > struck + LIMIT:
                self.problems.append(f"orphans: {', '.join(map(described, own))}")
                return
            time.sleep(0.005)
        self.seconds = time.monotonic() - struck

    def _await_the_answer(self, struck: float) -> None:
        waits = LIMIT + (STOPPED if self.case.fault == "stop" else 0.0)
        told = self.program.answer(waits)
        if told is None and self.program.process.poll() is None:
            # It may have been a worker that had done all of its work.
            self.program.process.send_signal(signal.SIGUSR1)
            told = self.program.answer(LIMIT)
        if told is None:
            self.problems.append(f"hang: no answer; {self.program.log.read_text()}")
            return
        error, self.felt = told["error"], told["error"] is not None
        if self.felt:
            self.seconds = told["at"] - struck
            if self.seconds > waits:
                self.problems.append(f"late: {error} after {self.seconds:.2f} s")
        self._judge(error, told)
        if told["left"]:
            self.problems.append(f"left behind: {told['left']}")

    def _judge(self, error: str | None, told: dict) -> None:
        if error is None:
            # Only a worker that nobody waits for any more may go unnoticed.
            if self.case.fault in CTRL_C or self.case.persistent:
                self.problems.append("the fault was not told")
            return
        if not re.search(self._expected(), error):
            self.problems.append(f"not a clear error: {error}")

    def _expected(self) -> str:
        fault = self.case.fault
        if fault in CTRL_C:
            return r"^KeyboardInterrupt: $"
        if fault == "stop":
            return rf"^RuntimeError: DataLoader timed out after {STOPPED} seconds"
        number = SIGNALS[fault]
        return (
            rf"^RuntimeError: DataLoader worker \d+ \(pid {self._victim}\) is killed "
            rf"by signal: {signal.strsignal(number)} \(exit code -{int(number)}\)"
        )


def strikes(chosen, pace: float):
    """Runs cases, each in its time; a program goes on until a case ends it.

    Args:
        chosen: the cases. pace: seconds from one's start to the next one's.
    """
    program, begun = None, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for turn, case in enumerate(chosen):
                time.sleep(max(0.0, begun + turn * pace - time.monotonic()))
                program = program or Program(Path(folder))
                strike = Strike(case, program).run()
                if strike.problems or case.fault in PROGRAM:
                    program.end()
                    program = None
                yield strike
        finally:
            if program is not None:
                program.end()


def summary(done: list[Strike]) -> Iterator[str]:
    """A line for each fault, and one for all."""
    for fault in (*WORKER, *CTRL_C, *PROGRAM):
        of = [s for s in done if s.case.fault == fault]
        if of:
            longest = max((s.seconds or 0.0 for s in of), default=0.0)
            yield (
                f"{fault:18} {len(of):4} faults, {sum(not s.felt for s in of):3} not "
                f"felt, {sum(bool(s.problems) for s in of):3} with problems, "
                f"told after at most {longest:.2f} s"
            )
    yield f"{len(done)} faults, {sum(bool(s.problems) for s in done)} with problems"


def main() -> None:
    """Runs a soak; a line a fault, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="the faults are spread over them")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case")
    options = parser.parse_args()
    pace = 60 * options.minutes / options.count if options.minutes else 0.0
    chosen = cases(options.seed, options.count, pace or SLOT)
    done = []
    chosen = (c for c in chosen if options.only in (None, c.number))
    for strike in strikes(chosen, pace):
        done.append(strike)
        case, told = strike.case, "not felt" if not strike.felt else "no answer"
        if strike.seconds is not None:
            told = f"after {strike.seconds:.2f} s"
        print(f"{case.number:4} {case.fault:18} {case.method:10} {told}", flush=True)
        for text in strike.problems:
            print(f"    {case}\n    {text}", flush=True)
    print("\n".join(summary(done)))
    sys.exit(any(s.problems for s in done))


if __name__ == "__main__":
    main()
