// Members of Tensor that are no operators, and tensors made of C++ values.
#pragma once

#include <taeda/aten/core/dispatcher.h>
#include <taeda/gen/tensor.h>

#include <functional>
#include <memory>

namespace taeda {

namespace detail {
template <class T>
void check_type(const TensorBase& t) {
  constexpr ScalarType asked = scalar_type_of<std::remove_const_t<T>>;
  TAEDA_CHECK(t.dtype() == asked,
              "expected scalar type ",
              asked,
              " but found ",
              t.dtype());
}
}  // namespace detail

template <class T>
const T* Tensor::const_data_ptr() const {
  detail::check_type<T>(*this);
  return const_data<T>();
}
template <class T>
T* Tensor::mutable_data_ptr() const {
  detail::check_type<T>(*this);
  return mutable_data<T>();
}
template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  TAEDA_CHECK(dim() == static_cast<int64_t>(N),
              "TensorAccessor expected ",
              N,
              " dims but tensor has ",
              dim());
  return {mutable_data_ptr<T>(), sizes().data(), strides().data()};
}
inline TensorOptions Tensor::options() const {
  return TensorOptions(dtype()).layout(layout()).device(device());
}
inline Tensor Tensor::operator[](int64_t index) const {
  return select(0, index);
}
inline Tensor Tensor::operator[](const TensorBase& index) const {
  return ops::index(*this, {OptionalTensor(index)});
}

// A tensor of the values, in the dtype of their C++ type unless options say
// another.
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  Tensor made = empty({static_cast<int64_t>(values.size())}, scalar_type_of<T>);
  std::copy(values.begin(), values.end(), made.template data_ptr<T>());
  TensorOptions rest =
      options.dtype_opt() ? options : options.dtype(scalar_type_of<T>);
  return made_with(options, made.to(rest));
}
template <class T>
Tensor tensor(const std::initializer_list<T>& values,
              const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values.begin(), values.size()), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
  requires std::is_arithmetic_v<T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(&value, 1), options).reshape({});
}

// A tensor over memory that somebody else owns, contiguous. `deleter` is called
// with `data` when no tensor uses the memory any more; without one the memory
// must outlive them all.
inline Tensor from_blob(void* data,
                        IntArrayRef sizes,
                        std::function<void(void*)> deleter,
                        const TensorOptions& options = {}) {
  TAEDA_CHECK(options.device().is_cpu(),
              "from_blob: expected memory of the CPU, got ",
              options.device());
  struct Owner {
    void* data;
    std::function<void(void*)> deleter;
  };
  size_t count = 1;
  for (int64_t size : sizes) count *= static_cast<size_t>(size);
  DataPtr memory{data};
  if (deleter) {
    memory.context = new Owner{data, std::move(deleter)};
    memory.deleter = [](void* context, size_t) {
      std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
      owner->deleter(owner->data);
    };
  }
  auto storage = make_intrusive<StorageImpl>(
      memory, count * element_size(options.dtype()), Device());
  auto impl = make_intrusive<TensorImpl>(
      std::move(storage), options.dtype(), backend_key(DeviceType::CPU));
  impl->set_sizes_contiguous(sizes);
  return made_with(options, Tensor(std::move(impl)));
}
inline Tensor from_blob(void* data,
                        IntArrayRef sizes,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, std::function<void(void*)>(), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, ScalarType dtype) {
  return from_blob(data, sizes, TensorOptions(dtype));
}

}  // namespace taeda
