"""Settings of the compiler that programs write; nothing reads them yet."""

from __future__ import annotations

suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
automatic_dynamic_shapes = True
assume_static_by_default = True
dynamic_shapes = True
force_parameter_static_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
log_level = None
skip_fwd_side_effects_in_bwd_under_checkpoint = False


class patch:
    """Other settings inside `with`, or while a decorated function runs.

    Args:
        settings: a dictionary, or one name followed by its value.
        value: of the one name.
        more: settings by name.
    """

    def __init__(self, settings=None, value=None, **more) -> None:
        first = {settings: value} if isinstance(settings, str) else settings
        self.changes = {**(first or {}), **more}

    def __enter__(self) -> None:
        space = globals()
        self.before = {name: space[name] for name in self.changes}
        space.update(self.changes)

    def __exit__(self, *error) -> None:
        globals().update(self.before)

    def __call__(self, fn):
        from functools import wraps

        @wraps(fn)
        def patched(*args, **kwargs):
            with patch(self.changes):
                return fn(*args, **kwargs)

        return patched
