"""Launches a program on several processes, here and on other nodes.

    python -m taeda.distributed.run --standalone --nproc-per-node=4 train.py --lr 0.1

Each process gets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and others in
its environment. When one fails the others are ended, and all are started again as often
as --max-restarts says.
"""

from __future__ import annotations

import os
import sys
import uuid
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable

from .argparse_util import check_env as _Flag
from .argparse_util import env as _FromEnvironment
from .elastic.multiprocessing.errors import record
from .elastic.multiprocessing.logs import DefaultLogsSpecs, Std
from .launcher.api import LaunchConfig, elastic_launch

__all__ = [
    "config_from_args",
    "get_args_parser",
    "get_rdzv_endpoint",
    "get_use_env",
    "main",
    "parse_args",
    "run",
    "run_script_path",
]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def get_args_parser() -> ArgumentParser:
    """The command line's options."""
    parser = ArgumentParser(
        prog="taedarun", description="Launches a program on several processes."
    )

    def option(name: str, *short: str, **kwargs) -> None:
        both = dict.fromkeys((f"--{name}", "--" + name.replace("-", "_")))
        action = kwargs.pop("action", _FromEnvironment)
        parser.add_argument(*short, *both, action=action, **kwargs)

    option("nnodes", type=str, default="1:1", help="nodes, or MIN:MAX of them")
    option(
        "nproc-per-node",
        type=str,
        default="1",
        help="workers of each node: a number, cpu, gpu or auto",
    )
    option("rdzv-backend", type=str, default="static", help="static or c10d")
    option("rdzv-endpoint", type=str, default="", help="HOST:PORT where nodes meet")
    option("rdzv-id", type=str, default="none", help="the job's name")
    option("rdzv-conf", type=str, default="", help="KEY=VALUE,... of the meeting")
    option("standalone", action=_Flag, help="one node, at a port that is free")
    option("max-restarts", type=int, default=0, help="how often workers start again")
    option("monitor-interval", type=float, default=0.1, help="seconds between looks")
    option(
        "start-method",
        type=str,
        default="spawn",
        choices=["spawn", "fork", "forkserver"],
        help="of workers that are functions",
    )
    option("event-log-handler", type=str, default="null", help="of no effect")
    option("role", type=str, default="default", help="the workers' name")
    option("module", "-m", action=_Flag, help="the program is a module")
    option("no-python", action=_Flag, help="the program is not Python's")
    option("run-path", action=_Flag, help="run the script by runpy")
    option("log-dir", type=str, default=None, help="where logs are kept")
    option("redirects", "-r", type=str, default="0", help="what goes to files: 0-3")
    option("tee", "-t", type=str, default="0", help="to files and shown: 0-3")
    option("local-ranks-filter", type=str, default="", help="whose output is shown")
    option("duplicate-stdout-filters", type=_words, default=[], help="not there")
    option("duplicate-stderr-filters", type=_words, default=[], help="not there")
    option("node-rank", type=int, default=0, help="of a static meeting")
    option("master-addr", type=str, default="127.0.0.1", help="of a static meeting")
    option("master-port", type=int, default=None, help="of a static meeting")
    option("local-addr", type=str, default=None, help="this node's address")
    option("logs-specs", type=str, default=None, help="not there")
    option(
        "numa-binding",
        type=str,
        default=None,
        choices=["node", "socket", "exclusive", "core-complex"],
        help="not there",
    )
    option(
        "signals-to-handle",
        type=str,
        default="SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        help="which end the workers",
    )
    option("shutdown-timeout", type=int, default=None, help="seconds before SIGKILL")
    option("virtual-local-rank", action=_Flag, help="each worker sees rank 0")
    parser.add_argument("training_script", type=str, help="the program")
    parser.add_argument("training_script_args", nargs=REMAINDER)
    return parser


def parse_args(args) -> Namespace:
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """Reads "2" or "1:4".

    Raises:
        RuntimeError: another text.
    """
    parts = nnodes.split(":")
    if len(parts) not in (1, 2):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many workers "4", "cpu", "gpu" or "auto" are.

    Raises:
        ValueError: another text.
    """
    if nproc_per_node in ("cpu", "auto"):
        return os.cpu_count() or 1
    if nproc_per_node == "gpu":
        raise ValueError("Cuda is not available.")
    try:
        return int(nproc_per_node)
    except ValueError:
        raise ValueError(
            f"Unsupported nproc_per_node value: {nproc_per_node}"
        ) from None


def _configs(text: str) -> dict[str, str]:
    found = {}
    for pair in text.split(",") if text else []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"rdzv_conf: expected KEY=VALUE, got {pair!r}")
        found[key.strip()] = value.strip()
    return found


def config_from_args(args) -> tuple[LaunchConfig, Callable | str, list[str]]:
    """How a command line wants its program launched.

    Returns:
        The configuration, the program, its arguments.
    """
    min_nodes, max_nodes = parse_min_max_nnodes(args.nnodes)
    if not 0 < min_nodes <= max_nodes or args.max_restarts < 0:
        raise ValueError(
            f"nnodes={args.nnodes} and max_restarts={args.max_restarts} make no sense"
        )
    for name in ("logs_specs", "numa_binding"):
        if getattr(args, name):
            raise NotImplementedError(f"taedarun: --{name.replace('_', '-')}")
    configs = _configs(args.rdzv_conf)
    endpoint, backend, run_id = args.rdzv_endpoint, args.rdzv_backend, args.rdzv_id
    if args.standalone:
        backend, endpoint, run_id = "c10d", "localhost:0", str(uuid.uuid4())
    elif backend == "static":
        configs.setdefault("rank", str(args.node_rank))
        endpoint = get_rdzv_endpoint(args)
    shown = {int(r) for r in args.local_ranks_filter.split(",") if r}
    logs = DefaultLogsSpecs(
        args.log_dir,
        Std.from_str(args.redirects),
        Std.from_str(args.tee),
        shown or None,
    )
    config = LaunchConfig(
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        nproc_per_node=determine_local_world_size(args.nproc_per_node),
        run_id=run_id,
        role=args.role,
        rdzv_endpoint=endpoint,
        rdzv_backend=backend,
        rdzv_configs=configs,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template=os.getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        local_addr=args.local_addr,
        logs_specs=logs,
        signals_to_handle=args.signals_to_handle,
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
    )
    return config, *_program(args)


def get_rdzv_endpoint(args) -> str:
    """Where the nodes meet: HOST:PORT; of the static kind the master's."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return f"{args.master_addr}:{args.master_port or 29500}"
    return args.rdzv_endpoint


def get_use_env(args) -> bool:
    """Whether the program finds its local rank in the environment alone."""
    return getattr(args, "use_env", True)


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Runs a program in this interpreter, as the main one.

    Args:
        training_script: its path.
        training_script_args: what it finds in `sys.argv` behind it.
    """
    import runpy

    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def _program(args) -> tuple[str, list[str]]:
    rest = list(args.training_script_args)
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and '--module'.")
        return args.training_script, rest
    words = ["-u"]
    if args.run_path:
        words += [
            "-c",
            "import runpy, sys; runpy.run_path(sys.argv[1], None, '__main__')",
        ]
    elif args.module:
        words.append("-m")
    words.append(args.training_script)
    if not get_use_env(args):
        words.append("--local-rank=${local_rank}")
    return os.getenv("PYTHON_EXEC", sys.executable), words + rest


def run(args) -> None:
    """Launches what a command line says."""
    config, program, arguments = config_from_args(args)
    elastic_launch(config, program)(*arguments)


@record
def main(args=None) -> None:
    """The command `taedarun`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
