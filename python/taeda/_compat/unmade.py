"""Classes and functions of devices that are not there, from their parameter lists.

Programs name them, ask `isinstance` and read their signatures; PyTorch's build without
the device has them for that as well, and refuses like this when they are used.
"""

from __future__ import annotations

import taeda

__all__ = ["CLASSES", "refusing_function", "unmade_class"]

# Members of classes, by class: `name(parameters)` for a method, `@name(parameters)` for
# a static one, `name` for a property. The first is the class's own parameter list.
CLASSES = {
    "cuda.GreenContext": (
        "() @create(*,num_sms=None,workqueue_scope=None,"
        "workqueue_concurrency_limit=None,device_id=None)"
        " @max_workqueue_concurrency(device_id=None) set_context() pop_context()"
        " Stream()"
    ),
    "mps.Event": (
        "(enable_timing=False) record() wait() query() synchronize()"
        " elapsed_time(end_event)"
    ),
    "mtia.MTIAGraph": (
        "(keep_graph=False) capture_begin(pool) capture_end() instantiate() replay()"
        " reset() pool()"
    ),
    "mtia.graph": "(mtia_graph,pool=None,stream=None) __enter__() __exit__(*args)",
    "xpu.Event": (
        "(enable_timing=False) record(stream=None) wait(stream=None) query()"
        " synchronize() elapsed_time(end_event)"
    ),
    "xpu.MemPool": (
        "(allocator=None,use_on_oom=False) allocator id snapshot() use_count()"
    ),
    "xpu.Stream": (
        "(device=None,priority=0,**kwargs) wait_event(event) wait_stream(stream)"
        " record_event(event=None) query() synchronize()"
    ),
    "xpu.XPUGraph": (
        "(keep_graph=False) capture_begin(pool=None) capture_end() instantiate()"
        " replay() reset() pool() enable_debug_mode() debug_dump(debug_path)"
        " raw_xpu_graph() raw_xpu_graph_exec()"
    ),
    "xpu.graph": "(xpu_graph,pool=None,stream=None) __enter__() __exit__(*args)",
}


def refusing_function(path: str, parameters: str, fail, doc: str):
    """A function that takes these arguments, and refuses.

    Args:
        path: its full name without the library's.
        parameters: its parameter list; arguments that do not fit are a TypeError.
        fail: called without arguments; raises the error.
        doc: its docstring.
    """
    # The text is this package's own, from tables like CLASSES.
    refuse = eval(f"lambda {parameters}: fail()", {"fail": fail})
    module, _, name = path.rpartition(".")
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = f"{taeda.__name__}.{module}".rstrip(".")
    refuse.__doc__ = doc
    return refuse


def _dummy(name: str):
    def fail():
        raise RuntimeError(
            f"Tried to instantiate dummy base class {name}: this build of taeda does "
            "not use such a device"
        )

    return fail


def unmade_class(path: str, fail=None) -> type:
    """The class of this name in `CLASSES`; making one refuses.

    Args:
        path: its full name without the library's, "cuda.GreenContext".
        fail: raises the error, as for `refusing_function`; a RuntimeError without.
    """
    module, _, name = path.rpartition(".")
    fail = fail or _dummy(name)
    space: dict = {
        "__module__": f"{taeda.__name__}.{module}",
        "__doc__": "Of a device that is not there: making one raises what PyTorch's "
        "build without the device raises.",
    }
    own, *members = CLASSES[path].split()
    for text in [f"__init__{own}", *members]:
        static = text.startswith("@")
        member, bracket, rest = text.lstrip("@").partition("(")
        parameters = rest[:-1] if static else f"self,{rest[:-1]}".rstrip(",")
        made = refusing_function(f"{path}.{member}", parameters, fail, "See the class.")
        made.__qualname__, made.__module__ = f"{name}.{member}", space["__module__"]
        if not bracket:
            made = property(made)
        space[member] = staticmethod(made) if static else made
    return type(name, (), space)
