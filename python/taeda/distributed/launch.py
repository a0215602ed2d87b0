"""The launcher's older form: the local rank is given to the program as an option."""

from __future__ import annotations

from .run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args):
    """The options of a command line; `--use-env` leaves out `--local-rank`."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", default=False, action="store_true", dest="use_env"
    )
    return parser.parse_args(args)


def launch(args) -> None:
    """Launches what a command line says."""
    run(args)


def main(args=None) -> None:
    """The command."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()
