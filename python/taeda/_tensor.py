"""The Tensor class: what is easier said in Python than in the native base class."""

from __future__ import annotations

import functools

from taeda import _C
from taeda._C import _has_torch_function_unary as _overrides

__all__ = ["Tensor"]


def _override(function, tensors, *args, **kwargs):
    from taeda.overrides import handle_torch_function

    return handle_torch_function(function, tensors, *args, **kwargs)


def _asking(method):
    """A method that `__torch_function__` of the tensor may take over, or a function
    of `input`."""

    @functools.wraps(method)
    def asking(*args, **kwargs):
        tensor = args[0] if args else kwargs.get("input")
        if _overrides(tensor):
            return _override(asking, (tensor,), *args, **kwargs)
        return method(*args, **kwargs)

    return asking


class Tensor(_C.TensorBase):
    """An array of numbers of one dtype, with the record of how it came to be.

    Tensors are made by functions such as `taeda.tensor`, `taeda.zeros` or `taeda.rand`.

    Example:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, x.device
        (taeda.Size([2, 2]), taeda.float32, device(type='cpu'))
        >>> (x @ x).sum()
        tensor(54.)
    """

    # Conversions and copies ---------------------------------------------------

    def __repr__(self, *, tensor_contents=None) -> str:
        if _overrides(self):
            return _override(
                Tensor.__repr__, (self,), self, tensor_contents=tensor_contents
            )
        from taeda._tensor_str import tensor_text

        return tensor_text(self, tensor_contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        if _overrides(self):
            return _override(Tensor.__format__, (self,), self, spec)
        number = type(self) is Tensor and self.dim() == 0 and not self.is_meta
        return format(self.item(), spec) if number else super().__format__(spec)

    def __complex__(self) -> complex:
        if self.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got "
                f"{self.numel()} elements"
            )
        return complex(self.item())

    def __deepcopy__(self, memo):
        if _overrides(self):
            return _override(Tensor.__deepcopy__, (self,), self, memo)
        from taeda._tensor_copy import deepcopy_tensor

        return deepcopy_tensor(self, memo)

    def __reduce_ex__(self, proto):
        if _overrides(self):
            return _override(Tensor.__reduce_ex__, (self,), self, proto)
        from taeda._tensor_copy import reduce_tensor

        return reduce_tensor(self)

    def __setstate__(self, state) -> None:
        from taeda._tensor_copy import set_tensor_state

        set_tensor_state(self, state)

    # NumPy and other libraries ------------------------------------------------

    __array_priority__ = 1000  # so that ndarray + Tensor asks the tensor first

    def __array__(self, dtype=None, copy=None):
        if _overrides(self):
            return _override(Tensor.__array__, (self,), self, dtype=dtype, copy=copy)
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=bool(copy))
        return array.copy() if copy and dtype is None else array

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array.dtype == bool:
            # Masks of NumPy functions are bytes in tensors' old ways.
            array = array.astype("uint8")
        return _C.from_numpy(array)

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        if _overrides(self):
            return _override(Tensor.__dlpack__, (self,), self, stream=stream)
        if stream is not None and type(stream) is not int:
            raise TypeError(
                f"stream must be ``int`` or ``none``, got {type(stream).__name__}"
            )
        if self.is_cpu and stream not in (None, -1):
            raise AssertionError(f"stream should be None on cpu, got {stream}")
        refusal = (
            (self.requires_grad, "that require gradient, use tensor.detach()"),
            (self.is_conj(), "with the conjugate bit set, use tensor.resolve_conj()"),
            (self.layout is not _C.strided, f"of layout {self.layout}, only strided"),
        )
        for refused, why in refusal:
            if refused:
                raise BufferError(f"__dlpack__: Can't export tensors {why}")
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"__dlpack__: cannot export to the device {dl_device}")
        source = self.clone() if copy else self
        versioned = max_version is not None and max_version[0] >= 1
        from taeda import _dlpack

        return _dlpack.to_dlpack(source, versioned, bool(copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        if _overrides(self):
            return _override(Tensor.__dlpack_device__, (self,), self)
        if not self.is_cpu:
            raise BufferError(
                f"DLPack: only CPU tensors can be exported, got one on {self.device}"
            )
        return 1, 0

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        """Take over another tensor's memory, or a part of a storage."""
        if _overrides(self):
            return _override(
                Tensor.set_, (self,), self, source, storage_offset, size, stride
            )
        from taeda._tensor_copy import set_memory

        return set_memory(self, source, storage_offset, size, stride)

    def type(self, dtype=None, non_blocking: bool = False, **kwargs):
        """The name of the tensor's old type; with a dtype or type, the tensor in it."""
        if _overrides(self):
            return _override(Tensor.type, (self,), self, dtype)
        from taeda._compat.legacy_types import tensor_as, type_name

        return type_name(self) if dtype is None else tensor_as(self, dtype)

    def storage(self):
        """The tensor's storage in its old typed form."""
        from taeda.storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    _typed_storage = storage

    @property
    def _type_string(self) -> str:
        return self.type()

    # Containers ---------------------------------------------------------------

    def __contains__(self, element) -> bool:
        if _overrides(self):
            return _override(Tensor.__contains__, (self,), self, element)
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool((element == self).any().item())
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    def __rdiv__(self, other):
        if _overrides(self):
            return _override(Tensor.__rdiv__, (self,), self, other)
        try:
            return self.reciprocal() * other
        except TypeError:
            return NotImplemented

    def __reversed__(self):
        if _overrides(self):
            return _override(Tensor.__reversed__, (self,), self)
        return self if self.dim() == 0 else self.flip(0)

    def __dir__(self):
        hidden = () if self.dtype in _INDEX_DTYPES else ("__index__",)
        names = {*dir(type(self)), *getattr(self, "__dict__", ())}
        return sorted(n for n in names if n not in hidden and n[:1].isidentifier())

    # Autograd -----------------------------------------------------------------

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs=None,
    ) -> None:
        """Compute the gradients of the graph's leaves.

        Args:
            gradient (Tensor): the derivative of the final result by self, of self's
                shape; may be left out for a scalar.
            retain_graph: keep what the graph saved; as `create_graph` if None.
            create_graph: record this computation too, for higher derivatives.
            inputs: leaves to accumulate into; all if None.
        """
        if _overrides(self):
            given = locals()
            return _override(Tensor.backward, (self,), given.pop("self"), **given)
        from taeda.autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook):
        """Call hook(grad) when the gradient is there; what it returns replaces it.

        Args:
            hook: a function of the gradient, a Tensor of self's shape.

        Returns:
            A handle; its `remove()` takes the hook away.
        """
        if _overrides(self):
            return _override(Tensor.register_hook, (self,), self, hook)
        from taeda.autograd._tensor_hooks import register_hook

        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook):
        """Call hook(self) when a leaf's grad has been added to; see `register_hook`."""
        if _overrides(self):
            return _override(
                Tensor.register_post_accumulate_grad_hook, (self,), self, hook
            )
        from taeda.autograd import _tensor_hooks as hooks

        return hooks.register_post_accumulate_grad_hook(self, hook)

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """What `load_state_dict` puts in place of self: `other`'s values.

        Args:
            other (Tensor): the loaded tensor.
            assign: whether `other` itself is wanted.
        """
        named = (self, other)
        if _C._has_torch_function(named):
            return _override(Tensor.module_load, named, *named, assign=assign)
        return other.detach() if assign else self.detach().copy_(other)

    # Functions with arguments that need work ----------------------------------

    def split(self, split_size, dim: int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dim; see `taeda.split`."""
        if _overrides(self):
            return _override(Tensor.split, (self,), self, split_size, dim=dim)
        if isinstance(split_size, (int, Tensor)):
            return _C.TensorBase.split(self, int(split_size), dim)
        return _C.TensorBase.split_with_sizes(self, tuple(split_size), dim)

    def norm(self, p="fro", dim=None, keepdim=False, dtype=None) -> Tensor:
        """The norm of a matrix or vector; see `taeda.norm`."""
        if _overrides(self):
            return _override(
                Tensor.norm, (self,), self, p=p, dim=dim, keepdim=keepdim, dtype=dtype
            )
        from taeda.functional import norm

        return norm(self, p, dim, keepdim, dtype=dtype)

    @_asking
    def nonzero(self, *, as_tuple: bool = False):
        """The positions of the elements that are not 0; see `taeda.nonzero`."""
        from taeda.functional import nonzero

        return nonzero(self, as_tuple=as_tuple)

    @_asking
    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
        """The distinct elements; see `taeda.unique`."""
        from taeda.functional import unique

        return unique(self, sorted, return_inverse, return_counts, dim)

    @_asking
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
        """One of each run of equal elements; see `taeda.unique_consecutive`."""
        from taeda.functional import unique_consecutive

        return unique_consecutive(self, return_inverse, return_counts, dim)

    @_asking
    def apply_(self, callable):
        """Replace each element by callable(element); for CPU tensors, slow."""
        values = [callable(value) for value in self.reshape(-1).tolist()]
        return _refill(self, values, "apply_")

    def index(self, positions, dims):
        """The entries where some dims have some places.

        Args:
            positions (int or tuple of ints): of dims.
            dims (int, slice, Tensor, or a tuple of these): the places, one for each of
                those dims. PyTorch's objects for dims are not there.

        Raises:
            ValueError: not as many places as dims.

        Example:
            >>> taeda.arange(6).view(2, 3).index(1, 0)
            tensor([0, 3])
        """
        several = isinstance(positions, (tuple, list))
        places = positions if several else (positions,)
        wanted = dims if several else (dims,)
        if len(places) != len(wanted):
            raise ValueError(f"index: {len(places)} dims, but {len(wanted)} places")
        key: list = [slice(None)] * self.dim()
        for place, position in zip(places, wanted, strict=True):
            key[place] = position
        return self[tuple(key)]

    @_asking
    def map_(self, other, callable):
        """Replace each element by callable(element, other's element); slow."""
        if other.requires_grad:
            raise RuntimeError(
                "Can't call map_() with a tensor that requires grad; detach it first"
            )
        others = other.expand_as(self).reshape(-1).tolist()
        pairs = zip(self.reshape(-1).tolist(), others, strict=True)
        return _refill(self, [callable(a, b) for a, b in pairs], "map_")

    def new(
        self,
        *args,
        device=None,
        size=None,
        data=None,
        other=None,
        storage=None,
    ):
        """A tensor of self's dtype and layout, on its device unless one is given.

        Args:
            args: sizes; or one of `size`, `data`, `other` and `storage`; or, for COO
                tensors, indices, values and perhaps a size.
            device: where.
            size: a tuple of sizes.
            data: numbers, nested sequences of them.
            other: a tensor of the same type, which is shared.
            storage: one of the same type, which is shared.

        Example:
            >>> taeda.ones(1, dtype=taeda.int16).new(data=[1, 2])
            tensor([1, 2], dtype=taeda.int16)
        """
        if size is not None:
            args = (*args, _C.Size(size))
        given = (data, other, storage)
        args = (*args, *(each for each in given if each is not None))
        if self.is_sparse:
            from taeda._compat import sparse_types as types
        else:
            from taeda._compat import legacy_types as types

        return types.type_of(self.dtype)(*args, device=device or self.device)

    def reinforce(self, reward):
        """Gone from the interface; `taeda.distributions` has log_prob instead."""
        raise RuntimeError("reinforce() was removed; use distributions' log_prob")

    def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
        """The dims from the outermost in memory to the innermost.

        Args:
            ambiguity_check: True refuses dims whose order the strides do not tell
                (a size of 1, or equal strides); a list of memory formats refuses what
                has not exactly one of these.

        Raises:
            RuntimeError: there are several orders that fit.
            TypeError: it is no bool and no list of memory formats.

        Example:
            >>> taeda.empty(2, 3, 5, 7).to(
            ...     memory_format=taeda.channels_last).dim_order()
            (0, 2, 3, 1)
        """
        from taeda._dim_order import check_dim_order, dim_order

        check_dim_order(self, ambiguity_check)
        return dim_order(self)

    # Memory -------------------------------------------------------------------

    def is_shared(self) -> bool:
        """Whether other processes see the memory."""
        return self.untyped_storage().is_shared()

    def is_pinned(self, device=None) -> bool:
        """Whether the memory is page-locked, so that a GPU copies it by itself."""
        of_program = _C._program_device_count() > 0
        if not of_program and not _C._gpu_is_in_use():
            return False
        from taeda import _cuda

        return (_cuda.is_pinned_for_program if of_program else _cuda.is_pinned)(self)

    def pin_memory(self, device=None) -> Tensor:
        """The same elements in page-locked memory; `self` where it lies there already.

        Copies to and from a GPU with `non_blocking=True` then return at once.

        Raises:
            RuntimeError: there is no GPU, or the tensor lies on one.
        """
        if self.is_pinned():
            return self
        from taeda import _cuda, cuda

        if _C._program_device_count() > 0:
            if self.device.type != "cpu":
                raise RuntimeError(
                    f"cannot pin '{self.type()}' only dense CPU tensors can be pinned"
                )
            return _cuda.pinned_for_program(self)
        if not cuda.is_available():
            raise RuntimeError(
                "Cannot access accelerator device when none is available."
            )
        return _cuda.pinned_like(self).copy_(self)

    def share_memory_(self):
        """Move the memory where other processes can see it.

        The tensor cannot be resized then. Nothing happens where it lies there already.
        """
        self.untyped_storage().share_memory_()
        return self

    def storage_type(self):
        """The old typed storage's class."""
        return type(self.storage())

    def const_data_ptr(self) -> int:
        """The address of the first element, for reading."""
        return self.data_ptr()

    def _use_count(self) -> int:
        return self.untyped_storage()._use_count()

    @property
    def volatile(self) -> bool:
        """Gone from the interface; always False."""
        return False

    @property
    def name(self):
        """The name that old programs gave to a variable: none."""
        return None

    @property
    def grad_dtype(self):
        """The dtype of a leaf's gradient; see `_tensor_seldom.grad_dtype`."""
        from taeda._tensor_seldom import grad_dtype

        return grad_dtype(self)

    @grad_dtype.setter
    def grad_dtype(self, dtype) -> None:
        from taeda._tensor_seldom import set_grad_dtype

        set_grad_dtype(self, dtype)

    # Classes that define it compute operators on their tensors themselves.
    __torch_dispatch__ = _C._disabled_torch_dispatch_impl

    @staticmethod
    def _make_wrapper_subclass(
        cls,
        size,
        strides=None,
        storage_offset=None,
        memory_format=None,
        dtype=None,
        layout=_C.strided,
        device=None,
        pin_memory=False,
        requires_grad=False,
        dispatch_sizes_strides_policy=None,
        dispatch_device=False,
        dispatch_layout=False,
        storage_size=None,
    ):
        """A tensor without memory of a class that has `__torch_dispatch__`.

        Args:
            dispatch_sizes_strides_policy: "strides" or "sizes": strides and whether it
                is contiguous, or these and sizes, are asked of `__torch_dispatch__`
                whenever they are read.

        Raises:
            TypeError: `cls` has no `__torch_dispatch__` of its own.
            NotImplementedError: a layout other than strided, or one or a device that
                is to be asked of the class.
        """
        from taeda._tensor_copy import make_wrapper

        if dispatch_device or dispatch_layout:
            raise NotImplementedError(
                "_make_wrapper_subclass: device and layout are those given; they "
                "cannot be left to __torch_dispatch__"
            )
        if layout is not _C.strided or pin_memory:
            raise NotImplementedError(
                f"_make_wrapper_subclass: layout {layout}, pin_memory {pin_memory}"
            )
        made = make_wrapper(
            cls, size, strides, storage_offset, memory_format, dtype, device
        )
        if dispatch_sizes_strides_policy is not None:
            from taeda._subclasses.asked_geometry import ask_class

            ask_class(made, dispatch_sizes_strides_policy)
        return made.requires_grad_() if requires_grad else made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """The default for subclasses: results become instances of the class."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        before = _C._set_torch_function_enabled(False, True)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            _C._set_torch_function_enabled(*before)
        from taeda.overrides import get_default_nowrap_functions

        if func in get_default_nowrap_functions():
            return result
        return _as_class(result, cls)


class _Seldom:
    """A method of `_tensor_seldom`, which is imported when it is first asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tensor, kind):
        from taeda._tensor_seldom import bound

        method = bound(self.name)
        setattr(Tensor, self.name, method)
        return method.__get__(tensor, kind)


for _name in (
    "is_set_to map2_ resize resize_as lu record_stream __div__ __idiv__ __long__"
    " __nonzero__ _repr_html_ is_distributed slice_inverse ipu mtia xpu eig lstsq"
    " solve symeig dequantize resize_as_sparse_ to_sparse_coo to_padded_tensor"
    " int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points"
    " q_scale q_zero_point qscheme"
).split():
    setattr(Tensor, _name, _Seldom(_name))


def _refill(tensor, values: list, method: str):
    if not tensor.is_cpu:
        raise TypeError(f"{method} is only implemented on CPU tensors")
    if tensor.requires_grad:
        raise RuntimeError(
            f"Can't call {method}() on a tensor that requires grad; detach it first"
        )
    try:
        fresh = _C.tensor(values, dtype=tensor.dtype)
    except ValueError as error:
        raise TypeError(f"{method}: expected numbers; {error}") from None
    return tensor.copy_(fresh.reshape(tensor.shape))


def _as_class(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_as_class(item, cls) for item in result]
        # Named tuples of operators take one sequence.
        return type(result)(parts)
    if isinstance(result, _ListIterator):  # of the tensor's slices
        return iter([_as_class(item, cls) for item in result])
    return result


_ListIterator = type(iter([]))


_INDEX_DTYPES = frozenset((_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.bool))
Tensor.__module__ = "taeda"
_C._set_tensor_class(Tensor)
