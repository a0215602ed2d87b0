"""The old place of `taeda.hub.load_state_dict_from_url`."""

from __future__ import annotations

from taeda.hub import _tqdm
from taeda.hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]

tqdm = _tqdm()
