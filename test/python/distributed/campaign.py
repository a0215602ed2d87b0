"""Random faults over distributed programs: nothing hangs, nothing is lost.

    python test/python/distributed/campaign.py --count 200 --seed 1
    python test/python/distributed/campaign.py --seed 1 --only 17

Every case draws a program, a number of ranks, a way for bytes, a fault and the moment
at which it hits (`campaign_cases.py`). Afterwards every survivor must have raised what
names a rank and a collective, within its time-out and GRACE seconds; or, where the
fault is one that a program outlives, ended with right values. The last checkpoint that
`save` had returned from, or a later one, must hold the numbers of an undisturbed run;
no process and no shared memory may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from campaign_cases import FAULTS, LIMIT, TRAININGS, Case, cases
from campaign_network import Network, is_possible
from campaign_states import check_checkpoint
from taeda._distributed import has_gloo

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
GRACE = 5.0
START = 30.0  # seconds until a program must have begun; an import under load
MARK = "TAEDA_CAMPAIGN"
CALLS = re.compile(
    "all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|barrier|send|recv|"
    "scatter|gather|init_process_group"
)


class Run:
    """One case: its processes, and what was found.

    Args:
        case: what happens.
        folder: for the ranks' files.
        network: hosts for the ranks, of a case that needs them.
    """

    def __init__(self, case: Case, folder: Path, network: Network | None) -> None:
        self.case, self.folder, self.network = case, folder, network
        self.problems: list[str] = []
        self.mark = secrets.token_hex(8)
        self.processes: dict[int, subprocess.Popen] = {}
        self.ended: dict[int, float] = {}
        self.struck = 0.0
        self.longest = 0.0

    # Starting.

    def _environment(self) -> dict[str, str]:
        case = self.case
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'python'}:{HERE}",
            "TAEDA_SHARED_MEMORY": "1" if case.route == "shared" else "0",
            "GLOO_SOCKET_IFNAME": "eth0" if case.route == "network" else "lo",
            "OMP_NUM_THREADS": "1",
            MARK: self.mark,
        }

    def _program(self) -> list[str]:
        case = self.case
        words = [case.program, self.folder, case.seconds, case.steps, case.limit]
        # Ranks of a busy machine take their time to begin.
        words.append(case.limit if case.fault == "absent" else START)
        return [str(HERE / "campaign_programs.py"), *map(str, words)]

    def _start(self, name: int, command: list[str], env: dict[str, str]) -> None:
        with open(self.folder / f"log.{name}", "wb") as log:
            # In a session of its own: where the shell that began the campaign ends
            # while a rank is stopped, the system hangs up on the whole group.
            self.processes[name] = subprocess.Popen(
                command,
                env=env,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def start_rank(self, rank: int) -> None:
        """Starts one rank's process."""
        env = self._environment()
        env |= {"RANK": str(rank), "WORLD_SIZE": str(self.case.world)}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)}
        command = [sys.executable, *self._program()]
        if self.network is not None:
            env["MASTER_ADDR"] = self.network.address(0)
            command = [*self.network.within(rank), *command]
        self._start(rank, command, env)

    def start(self) -> None:
        """Starts the ranks that come in time, or the launcher."""
        case = self.case
        if case.launched:
            options = f"--nproc-per-node={case.world} --max-restarts=2"
            options += " --standalone --shutdown-timeout=1"
            command = [sys.executable, "-m", "taeda.distributed.run", *options.split()]
            self._start(-1, [*command, *self._program()], self._environment())
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for rank in range(case.world):
            if case.fault not in ("late", "absent") or rank not in case.victims:
                self.start_rank(rank)

    # What the fault does.

    def wait_until_ready(self) -> bool:
        """Whether all ranks have done a first round."""
        end = time.monotonic() + START
        while time.monotonic() < end:
            if all(self._path("ready", r).exists() for r in range(self.case.world)):
                return True
            if any(p.poll() is not None for p in self.processes.values()):
                break
            time.sleep(0.01)
        self.problems.append("the ranks did not begin")
        return False

    def _path(self, name: str, rank: int) -> Path:
        return self.folder / f"{name}.{rank}"

    def _signal(self, rank: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self._path("pid", rank).read_text()), number)

    def strike(self) -> None:
        """Does the case's harm to its victims."""
        case = self.case
        self.struck = time.monotonic()
        if case.fault in ("agent-kill", "agent-term"):
            number = signal.SIGKILL if case.fault == "agent-kill" else signal.SIGTERM
            self.processes[-1].send_signal(number)
            return
        for rank in case.victims:
            getattr(self, "_" + case.fault.replace("-", "_"))(rank)
        if case.fault in ("pause", "blip"):
            time.sleep(case.duration)
            for rank in case.victims:
                if self.network is None:
                    self._signal(rank, signal.SIGCONT)
                else:
                    self.network.heal(rank)

    def _kill(self, rank: int) -> None:
        self._signal(rank, signal.SIGKILL)

    def _stop(self, rank: int) -> None:
        self._signal(rank, signal.SIGSTOP)

    _pause = _worker_stop = _stop
    _worker_kill = _kill

    def _raise(self, rank: int) -> None:
        self._signal(rank, signal.SIGUSR1)

    _worker_raise = _raise

    def _late(self, rank: int) -> None:
        self.start_rank(rank)

    def _absent(self, rank: int) -> None:
        """It never comes."""

    def _cut(self, rank: int) -> None:
        self.network.cut(rank)

    _blip = _cut

    def _cut_one_way(self, rank: int) -> None:
        self.network.cut(rank, one_way=True)

    def _lose(self, rank: int) -> None:
        self.network.lose(rank, self.case.share)

    def _slow(self, rank: int) -> None:
        self.network.slow(rank, megabits=50)

    # Afterwards.

    def _survivors(self) -> list[int]:
        case = self.case
        if case.launched:
            return [-1]
        gone = case.victims if case.fault in ("kill", "stop", "absent") else ()
        return [r for r in range(case.world) if r not in gone]

    def wait_for_survivors(self) -> None:
        """Waits for the processes that must end of themselves; notes when each does."""
        case, waiting = self.case, set(self._survivors())
        limit = case.seconds + START if case.is_outlived else case.limit + GRACE
        limit += START if case.launched else 0.0
        moved, saved = self.struck, self._last_saved()
        while waiting and time.monotonic() < moved + limit:
            # Training that saves one checkpoint after another does not hang.
            if case.launched and saved != self._last_saved():
                moved, saved = time.monotonic(), self._last_saved()
            for name in list(waiting):
                if self.processes[name].poll() is not None:
                    waiting.discard(name)
            time.sleep(0.01)
        for name in sorted(waiting):
            self.problems.append(f"hang: process {name} after {limit:.0f} s")

    def _last_saved(self) -> str:
        path = self.folder / "saved"
        return path.read_text() if path.exists() else ""

    def _told(self, rank: int) -> dict | None:
        path = self._path("end", rank)
        return json.loads(path.read_text()) if path.exists() else None

    def check_survivors(self) -> None:
        """What each of them ended with."""
        case = self.case
        if case.launched:
            code = self.processes[-1].poll()
            if case.is_outlived and code != 0:
                self.problems.append(f"the launcher ended with {code}")
            return
        for rank in self._survivors():
            told = self._told(rank)
            if told is None:
                self.problems.append(f"rank {rank} ended without a word")
                continue
            self.longest = max(self.longest, told["at"] - self.struck)
            problem = self._judge(rank, told["error"])
            if problem:
                self.problems.append(f"rank {rank} {problem}: {told['error']}")

    def _judge(self, rank: int, error: str | None) -> str | None:
        case = self.case
        if error and error.startswith("Wrong"):
            return "computed wrong values"
        if case.is_outlived:
            return "should have gone on" if error else None
        if error is None:
            # Too few packets were lost to be felt, or it was the last round.
            return None if case.fault in ("lose", "slow") else "did not notice"
        if case.fault == "raise" and rank in case.victims:
            # Within `save` it is the cause of what every rank raises.
            return None if "Asked: " in error else "did not raise its own"
        if error.startswith("CheckpointException"):
            # Saving ends with one exception everywhere, which names who failed.
            told = any(f"(RANK {r})" in error for r in case.victims)
            return None if told else "did not name the rank that failed to save"
        named = CALLS.search(error) and re.search(rf"\brank {rank}\b", error)
        if case.route == "shared" or case.fault == "absent":
            named = named and re.search(self._culprits(), error)
        return None if named else "did not name the rank and the collective"

    def _culprits(self) -> str:
        """How errors name one of the victims."""
        numbers = "|".join(map(str, self.case.victims))
        named = rf"\b(rank|not join:[ \d]*) ({numbers})\b"
        # Rank 0 has the store: its limit may end first, or it is who does not come.
        return named + "|lost the store|the store has gone|does not reach the store"

    def _own(self) -> list[int]:
        """Processes that carry this run's mark."""
        found, mark = [], f"{MARK}={self.mark}".encode()
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if mark in Path(f"/proc/{entry}/environ").read_bytes():
                        found.append(int(entry))
        return found

    def clear(self) -> None:
        """Ends the victims; everything else must have gone, or is an orphan."""
        if self.network is not None:
            for rank in self.case.victims:
                self.network.heal(rank)
        held = [p for p in self._survivors() if self.processes[p].poll() is None]
        for name, process in self.processes.items():
            if self.case.launched or name not in held:
                process.kill()
                process.wait()
        # A process that is being ended by the system has a moment for it.
        end = time.monotonic() + GRACE
        while (left := self._own()) and time.monotonic() < end and not held:
            time.sleep(0.01)
        if left and not held:
            self.problems.append(f"{len(left)} orphans")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes.values():
            process.wait()

    def run(self) -> None:
        """The whole case."""
        case = self.case
        before = set(shared_memory())
        self.start()
        try:
            early = case.fault in ("late", "absent")
            if early or self.wait_until_ready():
                time.sleep(case.moment)
                self.strike()
                self.wait_for_survivors()
                self.check_survivors()
        finally:
            self.clear()
        if left := set(shared_memory()) - before:
            self.problems.append(f"left in shared memory: {sorted(left)}")
        if case.program in TRAININGS:
            self.problems += check_checkpoint(self.folder, case)


def shared_memory() -> list[str]:
    """Segments that have a name still, and whose maker has ended."""
    names = [n for n in os.listdir("/dev/shm") if n.startswith("taeda-")]
    return [n for n in names if not Path("/proc", n.split("-")[1]).exists()]


def possible_ways() -> list[str]:
    """The ways for bytes that this build and this machine have."""
    missing = set()
    if not has_gloo():
        missing = {"gloo", "network"}
    elif not is_possible():
        missing = {"network"}
    return [way for way in FAULTS if way not in missing]


def run_case(case: Case, keep: Path | None = None) -> Run:
    """Runs one case in a folder of its own.

    Args:
        case: it.
        keep: where folders of cases with problems are kept.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        needs = case.route == "network"
        network = stack.enter_context(Network(case.world)) if needs else None
        run = Run(case, folder, network)
        run.run()
        if run.problems and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            folder.rename(keep / f"case{case.number}")
            folder.mkdir()
    return run


def main() -> None:
    """Runs a campaign, and prints a row for each fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case")
    parser.add_argument("--keep", type=Path, help="folder for cases with problems")
    options = parser.parse_args()
    ways = possible_ways()
    print(f"seed {options.seed}, limit {LIMIT:g} s, ways {' '.join(ways)}", flush=True)
    chosen = cases(options.seed, options.count, ways)
    counts, problems, longest = Counter(), Counter(), Counter()
    for case in chosen:
        if options.only not in (None, case.number):
            continue
        run = run_case(case, options.keep)
        counts[case.fault] += 1
        problems[case.fault] += bool(run.problems)
        if counts.total() % 20 == 0:
            print(f"{counts.total()} faults", flush=True)
        if not case.is_outlived:
            longest[case.fault] = max(longest[case.fault], run.longest - case.limit)
        for text in run.problems:
            print(f"{case}\n    {text}", flush=True)
    for fault, count in sorted(counts.items()):
        print(
            f"{fault:12} {count:4} cases, {problems[fault]:3} with problems, survivors "
            f"at most {longest[fault]:+.2f} s after their limit"
        )
    print(f"{counts.total()} faults, {problems.total()} with problems")
    sys.exit(problems.total() > 0)


if __name__ == "__main__":
    main()
