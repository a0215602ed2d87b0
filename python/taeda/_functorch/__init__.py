"""Function transforms; `taeda.func` is their public place."""
