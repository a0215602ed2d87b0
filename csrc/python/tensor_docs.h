// What `help` says of Tensor's hand-written methods and attributes; those of
// the records have their texts from there.
#pragma once

#include <string_view>

namespace taeda::python {

struct TensorDoc {
  std::string_view name;
  const char* text;
};

#define TAEDA_CAST_DOC(name, dtype)                        \
  {name,                                                   \
   name                                                    \
   "(memory_format=preserve_format) -> Tensor\n\n"         \
   "This tensor with elements of dtype " dtype             \
   "; itself where it has them already. Differentiable in" \
   " floating and complex dtypes.\n\nExample:\n"           \
   "    >>> taeda.ones(2)." name                           \
   "().dtype\n"                                            \
   "    taeda." dtype}
#define TAEDA_DEVICE_DOC(name, what) \
  {name, "Whether this tensor is " what ". A bool."}

// Without a row here a method of these tables does not compile; names that
// begin with an underscore need none.
inline constexpr TensorDoc kTensorDocs[] = {
    {"size",
     "size(dim=None) -> Size or int\n\n"
     "The number of elements along each dim, or along one of them.\n\n"
     "Args:\n    dim: from -ndim to ndim - 1\n\n"
     "Raises:\n    IndexError: there is no such dim\n\n"
     "Example:\n    >>> taeda.ones(2, 3).size()\n"
     "    taeda.Size([2, 3])\n    >>> taeda.ones(2, 3).size(-1)\n    3"},
    {"stride",
     "stride(dim=None) -> tuple of ints or int\n\n"
     "How many elements of memory lie between neighbours along each dim, or "
     "along one of them.\n\n"
     "Args:\n    dim: from -ndim to ndim - 1\n\n"
     "Raises:\n    IndexError: there is no such dim\n\n"
     "Example:\n    >>> taeda.ones(2, 3).stride()\n    (3, 1)"},
    {"is_contiguous",
     "is_contiguous(memory_format=contiguous_format) -> bool\n\n"
     "Whether the elements lie in memory in the order of their indices, or "
     "in that of a memory format.\n\n"
     "Example:\n    >>> taeda.ones(2, 3).t().is_contiguous()\n    False"},
    {"dim",
     "dim() -> int\n\nThe number of dims.\n\n"
     "Example:\n    >>> taeda.ones(2, 3).dim()\n    2"},
    {"ndimension", "ndimension() -> int\n\nThe number of dims, as `dim()`."},
    {"numel",
     "numel() -> int\n\nThe number of elements.\n\n"
     "Example:\n    >>> taeda.ones(2, 3).numel()\n    6"},
    {"nelement", "nelement() -> int\n\nThe number of elements, as `numel()`."},
    {"element_size",
     "element_size() -> int\n\nThe size of one element in bytes.\n\n"
     "Example:\n    >>> taeda.ones(2).element_size()\n    4"},
    {"storage_offset",
     "storage_offset() -> int\n\n"
     "The place of the first element in the storage, in elements.\n\n"
     "Example:\n    >>> taeda.arange(5)[2:].storage_offset()\n    2"},
    {"data_ptr",
     "data_ptr() -> int\n\nThe address of the first element.\n\n"
     "Raises:\n    RuntimeError: the tensor has no memory of that kind "
     "(sparse, or a value of a function transform)"},
    {"get_device",
     "get_device() -> int\n\nThe index of the device; -1 on the CPU."},
    {"is_floating_point",
     "is_floating_point() -> bool\n\nWhether the dtype is a floating one."},
    {"is_complex", "is_complex() -> bool\n\nWhether the dtype is complex."},
    {"is_signed",
     "is_signed() -> bool\n\nWhether the dtype has negative values."},
    {"is_conj",
     "is_conj() -> bool\n\n"
     "Whether the elements are read as conjugates of what is in memory."},
    {"is_neg",
     "is_neg() -> bool\n\n"
     "Whether the elements are read as negatives of what is in memory."},
    {"is_inference",
     "is_inference() -> bool\n\nWhether it was made in inference mode."},
    {"has_names", "has_names() -> bool\n\nWhether its dims have names: False."},
    {"is_non_overlapping_and_dense",
     "is_non_overlapping_and_dense() -> bool\n\n"
     "Whether the elements fill one piece of memory, each once, in any order "
     "of dims."},
    {"item",
     "item() -> number\n\nThe only element, as a Python number.\n\n"
     "Raises:\n    RuntimeError: there are more elements, or none\n\n"
     "Example:\n    >>> taeda.tensor([2.5]).item()\n    2.5"},
    {"tolist",
     "tolist() -> list or number\n\n"
     "The elements as nested lists of Python numbers; of a tensor without "
     "dims, the number.\n\n"
     "Example:\n    >>> taeda.tensor([[1, 2], [3, 4]]).tolist()\n"
     "    [[1, 2], [3, 4]]"},
    {"requires_grad_",
     "requires_grad_(requires_grad=True) -> Tensor\n\n"
     "Says whether gradients are computed for this tensor, and returns it.\n\n"
     "Raises:\n    RuntimeError: the dtype is neither floating nor complex; "
     "False for a result of the graph; inside a function transform\n\n"
     "Example:\n    >>> taeda.ones(2).requires_grad_()\n"
     "    tensor([1., 1.], requires_grad=True)"},
    {"to",
     "to(dtype, non_blocking=False, copy=False) -> Tensor\n"
     "to(device=None, dtype=None, non_blocking=False, copy=False, *, "
     "memory_format=preserve_format) -> Tensor\n"
     "to(other, non_blocking=False, copy=False) -> Tensor\n\n"
     "The tensor with another dtype, on another device; itself where nothing "
     "changes.\n\n"
     "Args:\n    dtype: of the result\n    device: of the result\n"
     "    other: a tensor that has both\n"
     "    non_blocking: whether a copy from page-locked memory to a GPU may go "
     "on while the program does\n"
     "    copy: whether the result has memory of its own in any case\n\n"
     "Example:\n    >>> taeda.tensor([1.7, -1.7]).to(taeda.int64)\n"
     "    tensor([ 1, -1])"},
    {"cpu",
     "cpu(memory_format=preserve_format) -> Tensor\n\n"
     "This tensor in the CPU's memory; itself where it is there."},
    {"cuda",
     "cuda(device=None, non_blocking=False) -> Tensor\n\n"
     "This tensor on a GPU, the current one if none is named.\n\n"
     "Raises:\n    RuntimeError: there is no such device"},
    TAEDA_CAST_DOC("double", "float64"),
    TAEDA_CAST_DOC("float", "float32"),
    TAEDA_CAST_DOC("half", "float16"),
    TAEDA_CAST_DOC("bfloat16", "bfloat16"),
    TAEDA_CAST_DOC("long", "int64"),
    TAEDA_CAST_DOC("int", "int32"),
    TAEDA_CAST_DOC("short", "int16"),
    TAEDA_CAST_DOC("char", "int8"),
    TAEDA_CAST_DOC("byte", "uint8"),
    TAEDA_CAST_DOC("bool", "bool"),
    TAEDA_CAST_DOC("cdouble", "complex128"),
    TAEDA_CAST_DOC("cfloat", "complex64"),
    TAEDA_CAST_DOC("chalf", "complex32"),
    {"new_tensor",
     "new_tensor(data, *, dtype=None, device=None, requires_grad=False) -> "
     "Tensor\n\n"
     "A tensor of numbers, lists or an array, with this one's dtype and device "
     "where none is given.\n\n"
     "Example:\n    >>> taeda.ones(2, dtype=taeda.float64).new_tensor([1, 2])\n"
     "    tensor([1., 2.], dtype=taeda.float64)"},
    {"numpy",
     "numpy(*, force=False) -> ndarray\n\n"
     "A NumPy array over the same memory.\n\n"
     "Args:\n    force: whether a copy is made where memory cannot be "
     "shared\n\n"
     "Raises:\n    RuntimeError: it requires grad, is a conjugate or a "
     "negative "
     "view\n    TypeError: it is not on the CPU, or NumPy has no such dtype\n\n"
     "Example:\n    >>> taeda.arange(3).numpy()\n    array([0, 1, 2])"},
    {"untyped_storage",
     "untyped_storage() -> UntypedStorage\n\n"
     "The memory that the elements are in, as bytes."},
    {"as_subclass",
     "as_subclass(cls) -> Tensor\n\n"
     "A view of this tensor that is an instance of a subclass. "
     "Differentiable.\n\n"
     "Raises:\n    TypeError: cls is no subclass of Tensor"},
    {"detach",
     "detach() -> Tensor\n\n"
     "The same elements without their history: no gradient goes through. The "
     "memory is shared.\n\n"
     "Example:\n    >>> taeda.ones(2, requires_grad=True).detach()\n"
     "    tensor([1., 1.])"},
    {"detach_",
     "detach_() -> Tensor\n\n"
     "Takes this tensor out of its graph and returns it.\n\n"
     "Raises:\n    RuntimeError: it is a view"},
    {"retain_grad",
     "retain_grad() -> None\n\n"
     "Keeps the gradient of a result in `grad` too, as that of a leaf.\n\n"
     "Raises:\n    RuntimeError: it does not require grad"},
    {"shape",
     "The number of elements along each dim, a Size; `size()` as an "
     "attribute."},
    {"dtype", "The type of an element."},
    {"device", "Where the memory is, a device."},
    {"layout", "How elements are stored: strided, sparse_coo, sparse_csr, ..."},
    {"ndim", "The number of dims, an int."},
    {"itemsize", "The size of one element in bytes."},
    {"nbytes", "The size of all elements in bytes."},
    {"names", "A name for each dim: None, since dims have no names here."},
    {"T", "A view with the dims in reverse order; of a matrix, its transpose."},
    {"mT", "A view with the last two dims exchanged."},
    {"H", "The conjugate transpose of a matrix, a view."},
    {"mH", "The conjugate of a view with the last two dims exchanged."},
    {"real", "The real parts, a view; of a real tensor, the tensor itself."},
    {"imag", "The imaginary parts, a view, of a complex tensor."},
    {"requires_grad",
     "Whether gradients are computed for this tensor. May be set on leaves of "
     "floating or complex dtypes."},
    {"data",
     "The same memory without history. Setting it gives the tensor another "
     "tensor's memory and shape."},
    {"grad",
     "The gradient that backward passes have added up, a tensor of the same "
     "shape and dtype, or None."},
    {"grad_fn", "The node of the graph that made this tensor; None of a leaf."},
    {"is_leaf",
     "Whether no graph made this tensor: it is the program's own, or does not "
     "require grad."},
    {"output_nr", "Which result of its `grad_fn` this tensor is, an int."},
    {"retains_grad", "Whether `retain_grad()` was called on a result."},
    TAEDA_DEVICE_DOC("is_cpu", "in the CPU's memory"),
    TAEDA_DEVICE_DOC("is_cuda", "on an Nvidia GPU"),
    TAEDA_DEVICE_DOC("is_meta", "without memory, on the meta device"),
    TAEDA_DEVICE_DOC("is_xpu", "on an Intel GPU"),
    TAEDA_DEVICE_DOC("is_mps", "on an Apple GPU"),
    TAEDA_DEVICE_DOC("is_xla", "on an XLA device"),
    TAEDA_DEVICE_DOC("is_hpu", "on a Gaudi accelerator"),
    TAEDA_DEVICE_DOC("is_ipu", "on a Graphcore processor"),
    TAEDA_DEVICE_DOC("is_mtia", "on an MTIA accelerator"),
    TAEDA_DEVICE_DOC("is_vulkan", "in a Vulkan device's memory"),
    TAEDA_DEVICE_DOC("is_maia", "on a Maia accelerator"),
    TAEDA_DEVICE_DOC("is_sparse", "sparse, in coordinates"),
    TAEDA_DEVICE_DOC("is_sparse_csr", "sparse, in compressed rows"),
    TAEDA_DEVICE_DOC("is_mkldnn", "in a layout of oneDNN's own"),
    TAEDA_DEVICE_DOC("is_quantized", "quantized: never here"),
    TAEDA_DEVICE_DOC("is_nested", "a nested one of strided layout"),
};
#undef TAEDA_CAST_DOC
#undef TAEDA_DEVICE_DOC

// The text of a name, found when the tables are compiled.
consteval const char* tensor_doc(std::string_view name) {
  for (const TensorDoc& doc : kTensorDocs) {
    if (doc.name == name) return doc.text;
  }
  if (name.front() != '_') throw "tensor_docs.h has no text for this name";
  return nullptr;
}

}  // namespace taeda::python
