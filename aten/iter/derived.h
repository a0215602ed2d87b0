// Small pieces of the generated in-place and out= forms.
#pragma once

#include <taeda/aten/iter/output.h>

#include <algorithm>
#include <vector>

namespace taeda::derived {

using Tensors = SmallVector<TensorBase, 4>;

inline void collect(Tensors& all, const TensorBase& t) {
  if (t.defined()) all.push_back(t);
}
inline void collect(Tensors& all, const OptionalTensor& t) {
  if (t) collect(all, *t);
}
inline void collect(Tensors& all, TensorBaseList list) {
  for (const TensorBase& t : list) collect(all, t);
}
inline void collect(Tensors& all, ArrayRef<OptionalTensor> list) {
  for (const OptionalTensor& t : list) collect(all, t);
}

// The defined tensors among the arguments.
template <class... A>
Tensors tensors_of(const A&... arguments) {
  Tensors all;
  (collect(all, arguments), ...);
  return all;
}

// The device of the first tensor that has dims, else of the first one.
TAEDA_API Device device_of_tensors(const Tensors& tensors);
template <class... A>
Device device_of(const A&... arguments) {
  return device_of_tensors(tensors_of(arguments...));
}

// What a shape rule sees of a list.
inline SmallVector<Spec<int64_t>, 4> specs_of(TensorBaseList list) {
  return {list.begin(), list.end()};
}
inline SmallVector<Spec<int64_t>, 4> specs_of(ArrayRef<OptionalTensor> list) {
  return {list.begin(), list.end()};
}

// Whether nothing is to be computed. Lists that also hold tensors of other
// devices are for the kernel to refuse.
inline bool on_meta(const TensorBase& t) { return t.is_meta(); }
template <class... Lists>
bool on_meta(TensorBaseList written, const Lists&... others) {
  auto all_meta = [](TensorBaseList list) {
    return std::all_of(list.begin(), list.end(), [](const TensorBase& t) {
      return t.is_meta();
    });
  };
  return !written.empty() && all_meta(written) && (all_meta(others) && ...);
}

TAEDA_API std::vector<TensorBase> allocate_all(const Plan<int64_t>& plan,
                                               Device device);

[[noreturn]] TAEDA_API void refuse_inference_tensor();
// Raises where `t` was made in inference mode and the thread has left it: such
// tensors have no version by which autograd could notice the change.
inline void check_writable(const TensorBase& t) {
  if (TAEDA_UNLIKELY(t.impl()->is_inference) && !inference_mode()) {
    refuse_inference_tensor();
  }
}

// What pin_memory=True asks for: page-locked memory of the CPU, for which there
// must be a GPU; another device's memory cannot be that. The meta device has
// none, so that the option means nothing there.
TAEDA_API bool pins(std::string_view op, Device device);
// The same elements in page-locked memory, with the same strides.
TAEDA_API TensorBase pinned(const TensorBase& t);

TAEDA_API void check_inplace(std::string_view op,
                             const TensorBase& computed,
                             const TensorBase& self);
TAEDA_API void write_out_list(std::string_view op,
                              const std::vector<TensorBase>& computed,
                              TensorBaseList out);

}  // namespace taeda::derived
