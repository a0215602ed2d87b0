"""What `serialization.skip_data` asks for, in each thread."""

from __future__ import annotations

from _thread import _local


class Skipping(_local):
    """Whether storages are left out, and fake tensors written as real ones."""

    skip_data = False
    materialize_fake_tensors = False


skipping = Skipping()
