"""Options of a command line whose defaults come from the environment."""

from __future__ import annotations

import os
from argparse import Action

__all__ = ["check_env", "env"]


class env(Action):
    """An option whose default the variable PET_NAME may set.

    Args:
        dest: the option's name.
        default: where the variable is not set.
        required: whether it must be given if neither is there.

    Example:
        >>> from argparse import ArgumentParser
        >>> from taeda.distributed.argparse_util import env
        >>> parser = ArgumentParser()
        >>> _ = parser.add_argument("--nproc-per-node", action=env, default="1")
        >>> parser.parse_args([]).nproc_per_node
        '1'
    """

    def __init__(self, dest, default=None, required=False, **kwargs) -> None:
        default = os.environ.get(f"PET_{dest.upper()}", default)
        required = required and default is None
        super().__init__(dest=dest, default=default, required=required, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        setattr(namespace, self.dest, values)


class check_env(Action):
    """The same for an option without a value: PET_NAME=1 switches it on.

    Args:
        dest: the option's name.
        default: where the variable is not set.
    """

    def __init__(self, dest, default=False, **kwargs) -> None:
        value = os.environ.get(f"PET_{dest.upper()}", "1" if default else "0")
        on = value == "1"
        super().__init__(dest=dest, nargs=0, const=True, default=on, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        setattr(namespace, self.dest, True)
