"""Hosts of their own for ranks: network namespaces on a bridge.

Loss is a filter of a few instructions on the wire's end: kernels have it where they
have no netem.
"""

from __future__ import annotations

import os
import shutil
import subprocess

# Instructions "code jt jf k" of a classic packet filter: a random word is at or above
# the threshold (then 2, drop, else 0, go on).
_DROP = "4,32 0 0 4294963256,53 1 0 {threshold},6 0 0 0,6 0 0 2"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def is_possible() -> bool:
    """Whether this process may make namespaces and filter in them."""
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
        return False
    try:
        with Network(1) as network:
            network.lose(0, 0.5)
    except subprocess.CalledProcessError:
        return False
    return True


class Network:
    """A bridge in one namespace, and one host at it for each rank.

    Args:
        hosts: how many. Host r has the address 10.77.0.(r + 1) on `eth0`.

    Used with `with`; its end deletes all namespaces.
    """

    def __init__(self, hosts: int) -> None:
        self._hosts, self._prefix = hosts, f"taeda{os.getpid()}"
        self._hub = f"{self._prefix}hub"
        self._made: list[str] = []

    def _host(self, host: int) -> str:
        return f"{self._prefix}h{host}"

    def __enter__(self) -> Network:
        try:
            self._make(self._hub)
            _run("ip", "-n", self._hub, "link", "add", "bridge0", "type", "bridge")
            _run("ip", "-n", self._hub, "link", "set", "bridge0", "up")
            for host in range(self._hosts):
                self._connect(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self, name: str) -> None:
        _run("ip", "netns", "add", name)
        self._made.append(name)
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def _connect(self, host: int) -> None:
        name, wire = self._host(host), f"wire{host}"
        self._make(name)
        _run(
            *("ip", "-n", self._hub, "link", "add", wire, "type", "veth"),
            *("peer", "name", "eth0", "netns", name),
        )
        for words in (f"link set {wire} master bridge0", f"link set {wire} up"):
            _run("ip", "-n", self._hub, *words.split())
        for words in (
            f"address add {self.address(host)}/24 dev eth0",
            "link set eth0 up",
        ):
            _run("ip", "-n", name, *words.split())

    def __exit__(self, *_error) -> None:
        while self._made:
            name = self._made.pop()
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def address(self, host: int) -> str:
        """Where the others find a host."""
        return f"10.77.0.{host + 1}"

    def within(self, host: int) -> list[str]:
        """What stands before a command that runs on a host."""
        return ["ip", "netns", "exec", self._host(host)]

    def _ends(self, host: int) -> list[tuple[str, str]]:
        """What the host sends, what is sent to it."""
        return [(self._host(host), "eth0"), (self._hub, f"wire{host}")]

    def cut(self, host: int, *, one_way: bool = False) -> None:
        """Drops all that it sends and, unless `one_way`, all that it is sent."""
        for name, device in self._ends(host)[: 1 if one_way else 2]:
            _run(
                "tc",
                "-n",
                name,
                *f"qdisc replace dev {device} root".split(),
                "blackhole",
            )

    def lose(self, host: int, share: float) -> None:
        """Drops so many of the packets from and to it, at random."""
        threshold = int((1.0 - share) * 2**32)
        code = _DROP.format(threshold=threshold)
        for name, device in self._ends(host):
            _run("tc", "-n", name, "qdisc", "add", "dev", device, "clsact")
            _run(
                *("tc", "-n", name, "filter", "add", "dev", device, "egress"),
                *("bpf", "da", "bytecode", code),
            )

    def slow(self, host: int, megabits: int) -> None:
        """Lets it send so many megabits a second."""
        name, device = self._ends(host)[0]
        words = f"qdisc replace dev {device} root tbf rate {megabits}mbit"
        _run("tc", "-n", name, *words.split(), "burst", "16k", "latency", "50ms")

    def heal(self, host: int) -> None:
        """Undoes all of the above."""
        for name, device in self._ends(host):
            for kind in ("root", "clsact"):
                command = ["tc", "-n", name, "qdisc", "del", "dev", device, kind]
                subprocess.run(command, capture_output=True)
