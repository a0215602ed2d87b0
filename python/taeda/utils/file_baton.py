"""A lock between processes that is a file's existence."""

from __future__ import annotations

import os

__all__ = ["FileBaton"]


class FileBaton:
    """Who makes the file has the baton; the others wait until it is gone.

    A process that dies leaves the file behind, and whoever waits then waits for ever.

    Args:
        lock_file_path: the file.
        wait_seconds: how often `wait` looks.
        warn_after_seconds: after so many `wait` warns, once; None never.
    """

    def __init__(
        self,
        lock_file_path,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Makes the file; whether it was not there."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Returns when the file is gone."""
        import time
        import warnings

        limit = self.warn_after_seconds
        start = time.monotonic()
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if limit is not None and time.monotonic() - start > limit:
                text = (
                    f'Waited on lock file "{self.lock_file_path}" for {limit} seconds.'
                )
                warnings.warn(text, stacklevel=2)
                limit = None

    def release(self) -> None:
        """Removes the file.

        Raises:
            FileNotFoundError: it is not there.
        """
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
