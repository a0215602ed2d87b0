"""What autocast does to operators of users: casts, or a kernel for one device.

The dispatcher has one key for autocast. The kernel that stands there for an operator
looks up what was registered for the devices on which autocast is enabled, calls it if
there is something, and otherwise goes on without autocast.
"""

from __future__ import annotations

from taeda import _C
from taeda._ops import OpOverload

__all__ = ["DEVICES", "casting", "register"]

# Device of autocast by the name of its dispatch key in PyTorch.
DEVICES = {
    "AutocastCPU": "cpu",
    "AutocastCUDA": "cuda",
    "AutocastXPU": "xpu",
    "AutocastMPS": "mps",
    "AutocastPrivateUse1": "privateuseone",
}


def _present() -> tuple[str, ...]:
    """Devices on which autocast can be enabled here."""
    return ("cpu", "cuda", _C._get_privateuse1_backend_name())


def _without_autocast(target: OpOverload, args, keywords):
    from contextlib import ExitStack

    from taeda.amp.autocast_mode import autocast

    with ExitStack() as stack:
        for device in _present():
            if _C.is_autocast_enabled(device):
                stack.enter_context(autocast(device, enabled=False))
        return target(*args, **keywords)


def register(target: OpOverload, device: str, rule, library) -> None:
    """Lets `rule` answer calls of an operator while autocast is on for a device.

    Args:
        target: the operator.
        device: a value of DEVICES; a rule of one that is not there is never asked.
        rule: called with the operator's arguments.
        library: the Library that holds the kernel.
    """
    rules = target.__dict__.setdefault("_autocast_rules", {})
    rules[device] = rule
    if len(rules) == 1:  # one kernel serves all devices
        library.impl(target, _kernel(target, rules), "Autocast")


def _kernel(target: OpOverload, rules: dict):
    def kernel(*args, **keywords):
        for device in _present():
            named = device if device in ("cpu", "cuda") else "privateuseone"
            rule = rules.get(named)
            if rule is not None and _C.is_autocast_enabled(device):
                return rule(*args, **keywords)
        return _without_autocast(target, args, keywords)

    return kernel


def casting(target: OpOverload, device: str, dtype):
    """A rule that casts floating-point tensors of a device, float64 apart."""

    def rule(*args, **keywords):
        from taeda.amp.autocast_mode import _cast

        named = device
        if device == "privateuseone":
            named = _C._get_privateuse1_backend_name()
        args, keywords = _cast((args, keywords), named, dtype)
        return _without_autocast(target, args, keywords)

    return rule
