// Copies between devices, with conversion, and fills.
#include <taeda/aten/native/cuda/elementwise.h>
#include <taeda/aten/native/cuda/launchers.h>
#include <taeda/aten/native/cuda/list_launch.h>
#include <taeda/aten/native/cuda/moves.h>
#include <taeda/c10/cuda/memory.h>

#include <algorithm>
#include <cstring>

namespace taeda::cuda {

namespace {

// Functors that belong to no record. `value` is the element as it is stored or
// as its type computes.
constexpr char kTexts[] = R"(
template <class T>
struct same_any_of {
  static __device__ inline T call(T value) { return value; }
};
template <class T>
struct neg_any_of {
  static __device__ inline T call(T value) { return T(-value); }
};
template <class T>
struct conj_any_of {
  static __device__ inline T call(T value) {
    return T(value.real(), -value.imag());
  }
};
template <class T>
struct neg_conj_any_of {
  static __device__ inline T call(T value) {
    return T(-value.real(), value.imag());
  }
};
)";

Address address_of(const TensorBase& t) {
  return reinterpret_cast<Address>(t.const_raw_data());
}

const char* functor_of(const CopyOptions& options) {
  if (options.conj) return options.neg ? "neg_conj" : "conj";
  return options.neg ? "neg" : "same";
}

bool is_plain(const CopyOptions& options) {
  return !options.conj && !options.neg;
}

// Both on the current device; `src` broadcasts.
void copy_within(const TensorBase& dst,
                 const TensorBase& src,
                 const CopyOptions& options) {
  bool same = dst.dtype() == src.dtype() && dst.sizes() == src.sizes() &&
              dst.strides() == src.strides() &&
              dst.is_non_overlapping_and_dense();
  bool keeps = dst.dtype() == src.dtype() && is_plain(options);
  if (same && keeps && !list_is_open()) {
    use_context();
    check(driver().within(reinterpret_cast<Address>(dst.mutable_raw_data()),
                          address_of(src),
                          dst.nbytes(),
                          handle_of(current_stream())),
          "copy_: cuMemcpyDtoDAsync");
    return;
  }
  if (keeps && !same && run_move(dst, src)) return;
  ScalarType seen = keeps ? src.dtype() : compute_type(src.dtype());
  const char* functor = functor_of(options);
  Elementwise what{"copy_", functor, kTexts, functor, "any", seen, seen};
  const DeviceOperand operands[] = {{&src, seen}};
  run_elementwise(what, dst, operands, Numbers(), 0);
}

TensorBase new_like(const TensorBase& t, ScalarType dtype, Device device) {
  return make_tensor("copy_", t.sizes(), dtype, device);
}

void on_host(const TensorBase& dst,
             const TensorBase& src,
             const CopyOptions& options) {
  launchers_of("copy_", Device()).copy(dst, src, options);
}

// `src` on the host, to memory of the current device that lies as it does.
void upload(const TensorBase& dst, const TensorBase& src, bool non_blocking) {
  use_context();
  const void* from = src.const_raw_data();
  bool locked = is_pinned(from);
  if (!locked || !non_blocking) {
    refuse_in_recording("copy_ from memory that is not pinned, or waits",
                        current_stream());
  }
  check(driver().to_device(reinterpret_cast<Address>(dst.mutable_raw_data()),
                           from,
                           src.nbytes(),
                           handle_of(current_stream())),
        "copy_: cuMemcpyHtoDAsync");
  // What is not page-locked has been read when the call returns.
  if (!locked) return;
  if (non_blocking) {
    record_host(from, current_stream());
  } else {
    wait_for(current_stream());
  }
}

void copy_from_host(const TensorBase& dst,
                    const TensorBase& src,
                    const CopyOptions& options) {
  TensorBase plain = src;
  if (!src.is_contiguous() || src.dtype() != dst.dtype() ||
      !is_plain(options)) {
    plain = new_like(src, dst.dtype(), Device());
    on_host(plain, src, options);
  }
  if (dst.is_contiguous() && dst.sizes() == plain.sizes()) {
    upload(dst, plain, options.non_blocking);
    return;
  }
  TensorBase there = new_like(plain, dst.dtype(), dst.device());
  upload(there, plain, options.non_blocking);
  copy_within(dst, there, CopyOptions());
}

void copy_to_host(const TensorBase& dst,
                  const TensorBase& src,
                  const CopyOptions& options) {
  DeviceGuard guard(src.device().index);
  TensorBase ready = src;
  if (!src.is_contiguous() || src.dtype() != dst.dtype() ||
      !is_plain(options)) {
    ready = new_like(src, dst.dtype(), src.device());
    copy_within(ready, src, options);
  }
  bool direct = dst.is_contiguous() && dst.sizes() == src.sizes();
  TensorBase here =
      direct ? dst : make_tensor("copy_", ready.sizes(), ready.dtype());
  use_context();
  void* to = here.mutable_raw_data();
  bool later = options.non_blocking && direct && is_pinned(to);
  if (!later) refuse_in_recording("copy_ to the CPU", current_stream());
  check(driver().to_host(
            to, address_of(ready), ready.nbytes(), handle_of(current_stream())),
        "copy_: cuMemcpyDtoHAsync");
  if (later) {
    record_host(to, current_stream());
  } else {
    wait_for(current_stream());
  }
  if (!direct) on_host(dst, here, CopyOptions());
}

// The copy is work of the source's stream, so that what changes the source
// later comes later; the target's stream waits for it, and it for the target.
void copy_between(const TensorBase& dst,
                  const TensorBase& src,
                  const CopyOptions& options) {
  TensorBase ready = src;
  int from = src.device().index, to = dst.device().index;
  bool direct = dst.is_contiguous() && dst.sizes() == src.sizes();
  TensorBase there =
      direct ? dst
             : make_tensor("copy_", src.sizes(), dst.dtype(), dst.device());
  Event target_is_free(to, /*timing=*/false, /*blocking=*/false);
  Event is_copied(from, /*timing=*/false, /*blocking=*/false);
  target_is_free.record(current_stream(to));
  {
    DeviceGuard guard(from);
    if (!src.is_contiguous() || src.dtype() != dst.dtype() ||
        !is_plain(options)) {
      ready = new_like(src, dst.dtype(), src.device());
      copy_within(ready, src, options);
    }
    target_is_free.block(current_stream(from));
    use_context();
    check(driver().between(reinterpret_cast<Address>(there.mutable_raw_data()),
                           context_of(to),
                           address_of(ready),
                           context_of(from),
                           ready.nbytes(),
                           handle_of(current_stream(from))),
          "copy_: cuMemcpyPeerAsync");
    is_copied.record(current_stream(from));
  }
  is_copied.block(current_stream(to));
  DeviceGuard guard(to);
  if (!direct) copy_within(dst, there, CopyOptions());
}

}  // namespace

void copy(const TensorBase& dst,
          const TensorBase& src,
          const CopyOptions& options) {
  if (dst.numel() == 0) return;
  if (dst.is_cpu()) return copy_to_host(dst, src, options);
  DeviceGuard guard(dst.device().index);
  if (src.is_cpu()) return copy_from_host(dst, src, options);
  if (src.device() != dst.device()) return copy_between(dst, src, options);
  copy_within(dst, src, options);
}

void fill(const TensorBase& dst, const Scalar& value) {
  if (dst.numel() == 0) return;
  DeviceGuard guard(dst.device().index);
  Numbers numbers;
  ScalarType type = dst.dtype();
  numbers.add(value, type);
  const unsigned char* bytes = numbers.slots[0];
  bool zero = std::all_of(bytes,
                          bytes + element_size(type),
                          [](unsigned char b) { return b == 0; });
  if (zero && dst.is_non_overlapping_and_dense() && !list_is_open()) {
    use_context();
    check(driver().set_bytes(reinterpret_cast<Address>(dst.mutable_raw_data()),
                             0,
                             dst.nbytes(),
                             handle_of(current_stream())),
          "fill_: cuMemsetD8Async");
    return;
  }
  Elementwise what{"fill_", "fill", kTexts, "same", "any", type, type};
  const DeviceOperand operands[] = {{nullptr, type}};
  run_elementwise(what, dst, operands, numbers, 0);
}

}  // namespace taeda::cuda
