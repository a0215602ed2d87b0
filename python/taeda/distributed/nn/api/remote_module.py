"""A module that lives at another worker."""

from __future__ import annotations

import types
from typing import Any

import taeda
from taeda import nn
from taeda.distributed import rpc
from taeda.distributed.remote_device import _remote_device
from taeda.distributed.rpc.internal import register_reducer

__all__ = ["RemoteModule"]

# Where programs would look for parameters or change the module, which is not here.
_REFUSED = (
    "add_module apply bfloat16 buffers children cpu cuda double float"
    " half ipu load_state_dict modules named_buffers named_children named_modules"
    " named_parameters register_backward_hook register_buffer register_parameter"
    " requires_grad_ share_memory"
    " state_dict to type xpu zero_grad"
).split()


def _unsupported(name: str) -> ValueError:
    return ValueError(f"Method ``{name}`` not supported for RemoteModule")


class RemoteModule(nn.Module):
    """A module made at a worker, whose forward pass runs there.

    Distributed autograd records its calls. In remote calls it travels as a reference.
    Of the methods of modules `forward`, `train` and `eval` are there, and
    `forward_async` returns a future; parameters are reached by `remote_parameters`.

    Args:
        remote_device: "worker/device" or "rank:0/device"; the CPU by default.
        module_cls: called at the worker, makes the module.
        args: what it is given.
        kwargs: and by name.

    Raises:
        ValueError: what `module_cls` makes is no module.
        RuntimeError: `init_rpc` was not called, or the worker is lost.

    Example::

        linear = RemoteModule("worker1/cpu", nn.Linear, args=(20, 30))
        linear(taeda.randn(128, 20)).shape  # torch.Size([128, 30])
    """

    on: Any
    device: taeda.device
    module_rref: rpc.RRef

    def __init__(
        self,
        remote_device: str,
        module_cls: type[nn.Module],
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._place(remote_device)
        given = (module_cls, args or (), kwargs or {}, self.device)
        self.module_rref = rpc.rpc_sync(self.on, _make, given)

    @staticmethod
    def init_from_module_rref(
        remote_device: str, module_rref: rpc.RRef, _module_interface_cls: Any = None
    ) -> RemoteModule:
        """A remote module around a module that is at a worker already.

        Args:
            remote_device: of the worker that owns it.
            module_rref: refers to it.

        Raises:
            NotImplementedError: an interface of TorchScript is given.
        """
        if _module_interface_cls is not None:
            raise NotImplementedError(
                "RemoteModule.init_from_module_rref: _module_interface_cls: remote "
                "modules of TorchScript's interfaces are not there"
            )
        made = RemoteModule.__new__(RemoteModule)
        nn.Module.__init__(made)
        made._place(remote_device)
        made.module_rref = module_rref
        return made

    def _place(self, remote_device: str) -> None:
        place = _remote_device(remote_device)
        name, rank = place.worker_name(), place.rank()
        self.on = name if name is not None else rank
        if self.on is None:
            self.on = rpc.get_worker_info()
        self.device = place.device()

    def forward(self, *args, **kwargs) -> Any:
        """The module's forward pass at its worker; the result is brought here."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args, **kwargs):
        """A future of the module's forward pass at its worker."""
        given = (self.module_rref, self.device, args, kwargs)
        return rpc.rpc_async(self.module_rref.owner(), _forward, given)

    def remote_parameters(self, recurse: bool = True) -> list[rpc.RRef]:
        """References to the module's parameters, as optimizers over workers take them.

        Args:
            recurse: with those of submodules.
        """
        return rpc.rpc_sync(self.on, _parameters, args=(self.module_rref, recurse))

    def get_module_rref(self) -> rpc.RRef:
        """A reference to the module."""
        return self.module_rref

    def train(self, mode: bool = True) -> RemoteModule:
        """Switches the module at its worker to training, or to evaluation."""
        rpc.rpc_sync(self.module_rref.owner(), _train, (self.module_rref, mode))
        self.training = mode
        return self

    def eval(self) -> RemoteModule:
        """Switches the module at its worker to evaluation."""
        return self.train(False)

    def extra_repr(self) -> str:
        return f"on={self.module_rref.owner_name()!r}, device={self.device}"

    def register_forward_hook(self, hook, prepend=False, with_kwargs=False):
        """Not there: hooks run where the module is."""
        raise _unsupported("register_forward_hook")

    def register_forward_pre_hook(self, hook, prepend=False, with_kwargs=False):
        """Not there: hooks run where the module is."""
        raise _unsupported("register_forward_pre_hook")

    def parameters(self, recurse: bool = True):
        raise ValueError(
            "Method ``parameters`` not supported for RemoteModule. Please use "
            "``remote_parameters`` instead."
        )

    def __reduce_ex__(self, protocol):
        raise RuntimeError(
            "Cannot pickle RemoteModule in python pickler. RemoteModule can only be "
            "pickled when using RPC"
        )


def _refuse(name: str):
    """A method with the signature of modules that raises."""
    original = getattr(nn.Module, name, None)

    def refused(self, *args, **kwargs):
        raise _unsupported(name)

    if original is not None:
        refused.__wrapped__ = original
    refused.__name__ = name
    refused.__qualname__ = f"RemoteModule.{name}"
    refused.__doc__ = f"Not there: a remote module has no `{name}`."
    return refused


for _name in _REFUSED:
    setattr(RemoteModule, _name, _refuse(_name))


def _make(module_cls, args, kwargs, device) -> rpc.RRef:
    made = module_cls(*args, **kwargs)
    if isinstance(made, nn.Module):
        return rpc.RRef(made.to(device))
    raise ValueError(
        f"RemoteModule: module_cls returned {type(made)}, not an instance of <class "
        "nn.Module>"
    )


def _forward(module_rref, device, args, kwargs):
    module = module_rref.local_value()
    if device.type == "cpu":
        return module(*args, **kwargs)
    args, kwargs = _moved(args, device), _moved(kwargs, device)
    return _moved(module(*args, **kwargs), taeda.device("cpu"))


def _train(module_rref, mode: bool) -> None:
    module_rref.local_value().train(mode)


def _moved(value, device):
    from taeda.utils import _pytree

    def move(leaf):
        return leaf.to(device) if isinstance(leaf, taeda.Tensor) else leaf

    return _pytree.tree_map(move, value)


def _parameters(module_rref, recurse: bool) -> list[rpc.RRef]:
    return [rpc.RRef(p) for p in module_rref.local_value().parameters(recurse)]


def _receive(on, device, module_rref) -> RemoteModule:
    made = RemoteModule.__new__(RemoteModule)
    nn.Module.__init__(made)
    made.on, made.device, made.module_rref = on, device, module_rref
    return made


def _reduce(module: RemoteModule) -> tuple[types.FunctionType, tuple]:
    return _receive, (module.module_rref.owner(), module.device, module.module_rref)


register_reducer(RemoteModule, _reduce)
