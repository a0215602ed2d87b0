"""The inputs of a trace: placeholders for the parameters of a function."""

from __future__ import annotations

import inspect
import types
import warnings
from inspect import CO_VARARGS, CO_VARKEYWORDS

import taeda
from taeda.utils import _pytree as pytree

from .graph import _PyTreeCodeGen, _PyTreeInfo
from .node import base_types
from .proxy import Proxy

__all__ = ["PH", "Inputs", "PHBase", "PHWithMeta"]


class PHBase:
    """Stands in `concrete_args` for an input that is not fixed."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """The same, with attributes that the node of the input gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


class Inputs:
    """The part of a tracer that makes placeholders."""

    def create_args_for_root(self, root_fn, is_module: bool, concrete_args=None):
        """The placeholders.

        Returns:
            The function to be called and its arguments. Its `*args` and `**kwargs` have
            become parameters, so that each is one proxy.
        """
        analysed = inspect.unwrap(root_fn)
        code, signature = analysed.__code__, inspect.signature(analysed)
        count = code.co_argcount + code.co_kwonlyargcount
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args = [self.root] if is_module else []
        stars = code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
        if isinstance(concrete_args, tuple) and concrete_args and stars and count == 1:
            return root_fn, args + [
                _marked(self.create_proxy("placeholder", f"input_{i}", (), {}), given)
                for i, given in enumerate(concrete_args)
            ]
        names = list(code.co_varnames[len(args) : count])
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got "
                    f"{len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        starred = iter(code.co_varnames[count:])
        names += [f"*{next(starred)}"] if stars & CO_VARARGS else []
        names += [f"**{next(starred)}"] if stars & CO_VARKEYWORDS else []
        for name in names:
            args.append(
                self._proxy_placeholder(name, concrete_args, signature, analysed)
            )
        if stars or code.co_kwonlyargcount:
            root_fn = _with_plain_parameters(root_fn, len(args))
        return self._flattened(root_fn, args, list(code.co_varnames[:count]))

    def _flattened(self, root_fn, args, names):
        """The same where arguments are structures of inputs: leaves in, leaves out."""
        leaves, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))
        self.graph.set_codegen(codegen)

        def flat(*leaves):
            result = root_fn(*pytree.tree_unflatten(list(leaves), spec))
            outputs, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return outputs

        return flat, leaves

    def _proxy_placeholder(self, name: str, concrete_args, sig, fn_for_analysis):
        default = ()
        if name[0] != "*" and sig.parameters[name].default is not sig.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            kind = fn_for_analysis.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        made = 0

        def place(given):
            nonlocal made
            made += 1
            proxy = self.create_proxy("placeholder", f"{name}_{made}", default, {})
            return self._fixed(name, proxy, given)

        return pytree.tree_map(place, concrete_args[name])

    def _fixed(self, name: str, proxy: Proxy, given):
        """The value that was given for an input; the graph checks that it gets it."""
        if isinstance(given, PHBase):
            return _marked(proxy, given)
        message = (
            f"{name} has been specialized to have value {given} but got another value"
        )
        if given is None:
            check = (self._none_check, (proxy, message))
        elif type(given) in base_types and type(given) is not taeda.Tensor:
            check = (taeda._assert, (proxy == given, message))
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to "
                "specialized function: inputs must match those it was specialized for",
                stacklevel=2,
            )
            return given
        self.create_proxy("call_function", *check, {})
        return given


def _marked(proxy: Proxy, given) -> Proxy:
    """Gives a placeholder's node what its stand-in knows."""
    if isinstance(given, PHBase):
        new = {k: v for k, v in vars(given).items() if not hasattr(proxy.node, k)}
        vars(proxy.node).update(new)
    return proxy


def _with_plain_parameters(fn, count: int):
    code = fn.__code__.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~(CO_VARARGS | CO_VARKEYWORDS),
    )
    return types.FunctionType(
        code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
