"""Tensors that have everything but data: a program's shapes without its memory."""

from __future__ import annotations

import contextlib
import contextvars
import weakref

import taeda
from taeda import _C
from taeda.utils._mode_utils import no_dispatch
from taeda.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
    return_and_correct_aliasing,
)
from taeda.utils._pytree import tree_leaves, tree_map, tree_map_only

from ._symbolic_rules import has_symbols, rule_of, symbolic_getitem, tensor_indices

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]

_META = taeda.device("meta")
# The mode whose fake kernel runs (`library.get_ctx`), each thread's own.
running_mode = contextvars.ContextVar("running_mode", default=None)


class _OperatorError(RuntimeError):
    def __init__(self, func) -> None:
        super().__init__(str(func))
        self.func = func


class DataDependentOutputException(_OperatorError):
    """An operator's result depends on values, which a fake tensor does not have.

    Attributes: func, the operator.
    """


class DynamicOutputShapeException(_OperatorError):
    """The shape of an operator's result depends on values.

    Attributes: func, the operator.
    """


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors of different devices meet in one operator."""


class FakeTensor(taeda.Tensor):
    """A tensor without data, on any device whether it is here or not.

    Args:
        fake_mode: the mode that computes its operators.
        elem: a meta tensor of the same geometry and dtype.
        device: where it pretends to be.
        constant: the real tensor that it stands for, while that is known.

    Attributes: fake_mode, fake_device, constant.
    """

    @staticmethod
    def __new__(cls, fake_mode, elem, device, constant=None):
        device = _with_index(taeda.device(device))
        if elem.layout is taeda.strided:
            made = taeda.Tensor._make_wrapper_subclass(
                cls,
                elem.shape,
                strides=elem.stride(),
                storage_offset=elem.storage_offset(),
                dtype=elem.dtype,
                device=device,
            )
        else:
            made = _C._make_sparse_wrapper(cls, elem, device)
        made.fake_mode = fake_mode
        made.fake_device = device
        made.constant = constant
        made._elem = elem
        made._item = None
        return made

    def __init__(self, fake_mode, elem, device, constant=None) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        modes = [t.fake_mode for t in tree_leaves((args, kwargs)) if is_fake(t)]
        return modes[0].__torch_dispatch__(func, types, args, kwargs)

    @staticmethod
    def from_tensor(t, fake_mode):
        """What `fake_mode.from_tensor(t)` gives."""
        return fake_mode.from_tensor(t)

    def without_history(self):
        """A fake tensor like this one that autograd knows nothing of."""
        return FakeTensor(self.fake_mode, self._elem, self.fake_device)

    def item(self):
        """The value: a symbol without a hint, where the mode has a shape_env."""
        return self.fake_mode._item(self)

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.dtype.is_complex:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self.item())

    def tolist(self):
        """Nested lists of values: there are none, unless it has no elements."""
        if self.dim() == 0:
            return self.item()
        return [element.tolist() for element in self]

    def __getitem__(self, key):
        found, indices = symbolic_getitem(self, key), tensor_indices(self, key)
        if indices is not None:
            return taeda.ops.aten.index.Tensor(self, indices)
        return super().__getitem__(key) if found is None else found

    def to(self, *args, **kwargs):
        """As of other tensors; over symbols a change of dtype is the operator's."""
        alone = len(args) == 1 and not kwargs and isinstance(args[0], taeda.dtype)
        if not alone or not has_symbols(self):
            return super().to(*args, **kwargs)
        if args[0] is self.dtype:
            return self
        return taeda.ops.aten._to_copy.default(self, dtype=args[0])

    def __setitem__(self, key, value) -> None:
        part, indices = symbolic_getitem(self, key), tensor_indices(self, key)
        if indices is not None:
            if not isinstance(value, taeda.Tensor):
                value = self.new_full([], value)
            taeda.ops.aten.index_put_.default(self, indices, value)
        elif part is None:
            super().__setitem__(key, value)
        elif isinstance(value, taeda.Tensor):
            part.copy_(value)
        else:
            part.fill_(value)

    def __deepcopy__(self, memo):
        made = memo.get(id(self))
        if made is None:
            made = FakeTensor(self.fake_mode, self._elem.clone(), self.fake_device)
            made.requires_grad_(self.requires_grad)
            memo[id(self)] = made
        return made


def _cast_to(name: str, dtype):
    def cast(self, *args, **kwargs):
        if args or kwargs or not has_symbols(self):
            return getattr(super(FakeTensor, self), name)(*args, **kwargs)
        return self.to(dtype)

    cast.__name__, cast.__doc__ = name, f"The tensor as {dtype}."
    return cast


for _name in "float double half bfloat16 long int short char byte bool".split():
    _dtype = {"char": "int8", "byte": "uint8"}.get(_name, _name)
    setattr(FakeTensor, _name, _cast_to(_name, getattr(taeda, _dtype)))


class FakeTensorConverter:
    """Gives the fake tensors of modes, for programs that ask a converter for them."""

    def from_real_tensor(self, fake_mode, t, make_constant: bool = False, **options):
        """What `fake_mode.from_tensor(t)` gives.

        Args:
            fake_mode: the mode whose tensor it is.
            t: a real tensor.
            make_constant: whether `t` is remembered as its value.
            options: of `from_tensor`.
        """
        made = fake_mode.from_tensor(t, **options)
        if make_constant:
            made.constant = t
        return made

    def from_meta_and_device(self, fake_mode, t, device):
        """A fake tensor on a device, of a meta tensor's geometry."""
        return FakeTensor(fake_mode, t, device)


class FakeTensorMode(TorchDispatchMode):
    """A context in which operators compute geometry, dtype and device alone.

    Kernels run on meta tensors; nothing is allocated. Tensors that are made inside are
    fake; real ones are refused or, on request, made fake.

    Args:
        allow_non_fake_inputs: real tensors may be arguments.
        shape_env: the `ShapeEnv` of the symbols that sizes of tensors become.
        static_shapes: sizes stay integers; by default where there is no shape_env.

    Raises:
        DataDependentOutputException: an operator gives values (`item`, where there
            is no shape_env to give it a symbol).
        DynamicOutputShapeException: a result's shape depends on values (`nonzero`).
        FakeTensorDeviceMismatchError: tensors of two devices in one operator.
        AssertionError: a real tensor, or another mode's.

    Example:
        >>> with FakeTensorMode():
        ...     taeda.ones(2, 3, device="cuda") @ taeda.ones(3, 4, device="cuda")
        FakeTensor(..., device='cuda:0', size=(2, 4))
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env=None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if static_shapes is False and shape_env is None:
            raise ValueError("FakeTensorMode: symbolic sizes need a shape_env")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        if static_shapes is None:
            static_shapes = shape_env is None
        self.static_shapes = static_shapes
        self.shape_env = shape_env
        # By the id of a real tensor: what stands for it, as long as that one lives.
        self._fakes: dict[int, tuple] = {}
        self._was_active: list[bool] = []
        # Called with a tensor and the symbol that its `item()` has become.
        self.on_item = None

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: programs do not write it."""
        return True

    def __enter__(self):
        # Inside of itself it changes nothing.
        active = _innermost_fake_mode() is self
        self._was_active.append(active)
        return self if active else super().__enter__()

    def __exit__(self, *exception) -> None:
        if not self._was_active.pop():
            super().__exit__(*exception)

    def from_tensor(
        self, tensor, *, static_shapes=None, source=None, sizes=None, **ignored
    ):
        """The fake tensor that stands for a real one: the same one each time.

        Where sizes are symbolic, those of 0 and 1 stay integers and equal ones share a
        symbol; a dim of `taeda._dynamo.mark_dynamic` has a symbol of its own, one of
        `mark_static` an integer. What stands for a sparse tensor has no entries, since
        how many there are is data, and integers for sizes.

        Args:
            tensor: a real tensor.
            static_shapes: its sizes stay integers; by default the mode's.
            source: what guards call it.
            sizes: those that it gets, integers and symbols, where they are known.

        Raises:
            AssertionError: a fake tensor of another mode.
        """
        if is_fake(tensor):
            self._check_own(tensor)
            return tensor
        key, fakes = id(tensor), self._fakes
        known = fakes.get(key)
        if known is not None and known[0]() is tensor:
            return known[1]
        static = self.static_shapes if static_shapes is None else static_shapes
        with _disable_current_modes(), no_dispatch():
            if tensor.layout is not taeda.strided:
                elem = tensor.detach().to(_META)
            else:
                name = source or f"t{len(fakes)}"
                env = None if static else self.shape_env
                elem = _meta_like(tensor, sizes, env, name)
        made = FakeTensor(self, elem, tensor.device)
        made.requires_grad_(tensor.requires_grad)
        if isinstance(tensor, taeda.nn.Parameter):
            made._is_param = True
        fakes[key] = (weakref.ref(tensor, lambda _: fakes.pop(key, None)), made)
        return made

    def _check_own(self, tensor) -> None:
        if tensor.fake_mode is not self:
            raise AssertionError(
                f"Mixing fake modes: a tensor of {tensor.fake_mode} in {self}"
            )

    def _checked(self, func, values):
        """Real tensors made fake where that is allowed."""

        def fake(t):
            if is_fake(t):
                self._check_own(t)
                return t
            if not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate "
                    f"FakeTensorMode with 'allow_non_fake_inputs'. Found in {func} "
                    f"(a tensor of shape {tuple(t.shape)})"
                )
            return self.from_tensor(t)

        return tree_map_only(taeda.Tensor, fake, values)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(not issubclass(t, (FakeTensor, taeda.nn.Parameter)) for t in types):
            return NotImplemented
        if func is taeda.ops.aten.lift_fresh.default and not is_fake(args[0]):
            made = self.from_tensor(args[0], static_shapes=True)
            made.constant = args[0] if args[0].numel() == 1 else None
            return made
        if func is taeda.ops.aten._local_scalar_dense.default:
            return self._constant_of(func, args[0])
        env = self.shape_env
        counts = env is not None and env.allow_dynamic_output_shape_ops
        if func is taeda.ops.aten.index.Tensor and _has_mask(args[1]):
            result = self.masked(*args)
            if result is not NotImplemented:
                return result
            raise DynamicOutputShapeException(taeda.ops.aten.nonzero.default)
        if counts and func in _counted_results():
            return self._unbacked_result(func, args)
        if taeda.Tag.data_dependent_output in func.tags:
            raise DataDependentOutputException(func)
        counted = kwargs.get("output_size") is not None
        dynamic = taeda.Tag.dynamic_output_shape in func.tags
        if (dynamic and not counted) or func in _sized_by_lengths():
            raise DynamicOutputShapeException(func)
        args, kwargs = self._checked(func, (args, kwargs))
        rule = None if env is None else rule_of(func, args, kwargs)
        result = NotImplemented if rule is None else rule(*args, **kwargs)
        if result is NotImplemented:
            return self._compute(func, args, kwargs)
        for t in tree_leaves(_written(func, args, kwargs)):
            _follow(t)
        return result

    def _item(self, tensor):
        """What `tensor.item()` gives, the same each time until it is written to."""
        func = taeda.ops.aten._local_scalar_dense.default
        if tensor.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar"
            )
        if tensor.constant is not None or self.shape_env is None:
            return self._constant_of(func, tensor)
        if not self.shape_env.allow_scalar_outputs or tensor.dtype.is_complex:
            raise DataDependentOutputException(func)
        if tensor._item is None:
            tensor._item = self._new_value(tensor.dtype)
            if self.on_item is not None:
                self.on_item(tensor, tensor._item)
        return tensor._item

    def _new_value(self, dtype):
        if dtype.is_floating_point:
            return self.shape_env.create_unbacked_symfloat()
        if dtype is taeda.bool:
            return self.shape_env.create_unbacked_symbool()
        return self.shape_env.create_unbacked_symint(size=False)

    def _constant_of(self, func, tensor):
        if not is_fake(tensor) or tensor.constant is None:
            raise DataDependentOutputException(func)
        with no_dispatch():
            return tensor.constant.item()

    def _unbacked_result(self, func, args):
        """Of an operator whose number of results is a size without a hint."""
        (args, _) = self._checked(func, (args, {}))
        count = self.shape_env.create_unbacked_symint()
        by_index = func is taeda.ops.aten.nonzero.default
        sizes = (count, args[0].dim()) if by_index else (count,)
        dtype = taeda.int64 if by_index else args[0].dtype
        with no_dispatch():
            elem = taeda.empty(sizes, dtype=dtype, device=_META)
        return FakeTensor(self, elem, args[0].fake_device)

    def masked(self, x, indices):
        """What one mask chooses: a size without a hint takes the place of its dims.

        NotImplemented for other indices, and without a shape_env that has such sizes.
        """
        env = self.shape_env
        counts = env is not None and env.allow_dynamic_output_shape_ops
        if not counts or sum(t is not None for t in indices) != 1:
            return NotImplemented
        ((x, indices), _) = self._checked(
            taeda.ops.aten.index.Tensor, ((x, indices), {})
        )
        ((at, mask),) = [(i, t) for i, t in enumerate(indices) if t is not None]
        count, sizes = self.shape_env.create_unbacked_symint(), list(x.shape)
        sizes[at : at + mask.dim()] = [count]
        with no_dispatch():
            elem = taeda.empty(sizes, dtype=x.dtype, device=_META)
        return FakeTensor(self, elem, x.fake_device)

    def _compute(self, func, args, kwargs):
        tensors = [t for t in tree_leaves((args, kwargs)) if is_fake(t)]
        device = kwargs.get("device") or _common_device(func, tensors)
        meta_args, meta_kwargs = tree_map(_to_meta, (args, kwargs))
        if not tensors and any(a.name == "device" for a in func._schema.arguments):
            meta_kwargs["device"] = _META
        before = None if func.namespace == "aten" else running_mode.set(self)
        try:
            with no_dispatch():
                out = func(*meta_args, **meta_kwargs)
        finally:
            if before is not None:
                running_mode.reset(before)
        for value in _written(func, args, kwargs):
            for t in tree_leaves(value):
                _follow(t)
        wrap = lambda t: FakeTensor(self, t, device)
        wrapped = tree_map_only(taeda.Tensor, wrap, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


def _counted_results():
    aten = taeda.ops.aten
    return (aten.nonzero.default, aten.masked_select.default)


def _sized_by_lengths():
    """Of whose results one is as long as the longest sequence: a number in a tensor."""
    aten = taeda.ops.aten
    return (aten._ctc_loss.Tensor, aten._ctc_loss_backward.Tensor)


def _meta_like(tensor, sizes, env, name: str):
    """A meta tensor of this geometry; of given sizes, or symbols where env is given."""
    if sizes is None and env is not None:
        sizes = _symbolic_sizes(tensor, env, name)
    strides = tensor.stride() if sizes is None else _strides_by(tensor, sizes)
    sizes = tuple(tensor.shape) if sizes is None else sizes
    return taeda.empty_strided(sizes, strides, dtype=tensor.dtype, device=_META)


def _symbolic_sizes(tensor, env, name: str) -> tuple:
    """Sizes as symbols, as far as nothing else is marked on the tensor."""
    marked = getattr(tensor, "_dynamo_dynamic_indices", ())
    static = getattr(tensor, "_dynamo_static_indices", ())
    sizes = []
    for i, n in enumerate(tensor.shape):
        how = "marked" if i in marked else "static" if i in static else "duck"
        sizes.append(env.create_size(n, f"{name}.size()[{i}]", how))
    return tuple(sizes)


def _strides_by(tensor, sizes: tuple) -> tuple:
    """Strides as the products of sizes that they are."""
    hints, steps = tensor.shape, tensor.stride()
    # Innermost first; of equal strides the dim further right is the inner one.
    order = sorted(range(len(sizes)), key=lambda d: (steps[d], -d))
    strides = list(steps)
    product, seen = 1, 1
    for d in order:
        if steps[d] != seen:
            # Not dense here: what follows counts from this stride on.
            product = seen = steps[d]
        strides[d] = product
        product, seen = product * sizes[d], seen * hints[d]
    return tuple(strides)


def _common_device(func, tensors):
    """Where the results of an operator are. Numbers may meet any device."""
    found = taeda.get_default_device()
    for i, t in enumerate(sorted(tensors, key=_is_number)):
        if i == 0:
            found = t.fake_device
        elif t.fake_device != found and not _is_number(t):
            raise FakeTensorDeviceMismatchError(
                f"{func}: Expected all tensors to be on the same device, but found at "
                f"least two devices, {found} and {t.fake_device}!"
            )
    return found


def _has_mask(indices) -> bool:
    masks = (taeda.bool, taeda.uint8)
    return any(t is not None and t.dtype in masks for t in indices)


def _is_number(t) -> bool:
    return t.dim() == 0 and t.fake_device.type == "cpu"


def _written(func, args, kwargs) -> list:
    arguments = func._schema.arguments
    given = dict(zip((a.name for a in arguments), args, strict=False)) | kwargs
    return [given[a.name] for a in arguments if a.written and a.name in given]


def _to_meta(value):
    if is_fake(value):
        return value._elem
    return _META if isinstance(value, taeda.device) else value


def _follow(t) -> None:
    """After a change in place: the geometry that it left, and no known value."""
    if not is_fake(t):
        return
    t.constant = t._item = None
    elem = t._elem
    if elem.layout is not taeda.strided:
        return
    if t.shape != elem.shape or t.stride() != elem.stride():
        _C._set_geometry(t, tuple(elem.shape), elem.stride(), elem.storage_offset())


def _with_index(device):
    if device.type in ("cpu", "meta") or device.index is not None:
        return device
    return taeda.device(device.type, 0)


def _innermost_fake_mode():
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, FakeTensorMode):
            return mode
    return None


def is_fake(x) -> bool:
    """Whether a tensor is a fake one."""
    return isinstance(x, taeda.Tensor) and issubclass(type(x), FakeTensor)


def maybe_get_fake_mode(t):
    """The mode of a fake tensor, else None."""
    return t.fake_mode if is_fake(t) else None


@contextlib.contextmanager
def unset_fake_temporarily():
    """Inside, no fake mode is active; gives the innermost that was, or None."""
    mode = _innermost_fake_mode()
    with _disable_current_modes() as modes:
        kept = [each for each in modes if not isinstance(each, FakeTensorMode)]
        for each in kept:
            _push_mode(each)
        try:
            yield mode
        finally:
            for _ in kept:
                _pop_mode()
