// What random kernels share.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/c10/core/generator.h>

#include <mutex>

namespace taeda::native {

using MaybeGenerator = std::optional<Generator>;

// The generator, locked as long as this lives.
class LockedGenerator {
 public:
  explicit LockedGenerator(const MaybeGenerator& given)
      : generator_(check_cpu_generator(given ? *given : Generator())),
        lock_(generator_.mutex()) {}
  CpuGeneratorImpl& operator*() { return generator_; }

 private:
  CpuGeneratorImpl& generator_;
  std::lock_guard<std::mutex> lock_;
};

// f(data, count, stride) for the rows of t in memory order, strides in
// elements.
template <class T, class F>
void for_rows(const Tensor& t, F&& f) {
  T* data = t.mutable_data<T>();
  if (t.numel() == 0) return;
  if (t.is_contiguous()) return f(data, t.numel(), int64_t{1});
  const int64_t* strides[] = {t.strides().data()};
  IterationSpace space(t.sizes(), ArrayRef<const int64_t*>(strides, 1));
  OperandWalker walker(space, 0, 0);
  walker.advance(t.numel(), [&](int64_t offset, int64_t stride, int64_t n) {
    f(data + offset, n, stride);
  });
}

void check_std(double std);
template <class I>
void check_random_range(const I& from, const I& to) {
  TAEDA_CHECK(from < to,
              "random_ expects 'from' to be less than 'to', but got from=",
              from,
              " >= to=",
              to);
}

// Calls f(T{}) for floating T, else NotImplementedError.
template <class F>
void visit_floating(std::string_view op, ScalarType t, F&& f);

}  // namespace taeda::native

#include <taeda/aten/iter/pointwise.h>

namespace taeda::native {

template <class F>
void visit_floating(std::string_view op, ScalarType t, F&& f) {
  switch (t) {
    case kFloat:
      return f(float{});
    case kDouble:
      return f(double{});
    case kHalf:
      return f(Half{});
    case kBFloat16:
      return f(BFloat16{});
    default:
      not_implemented_for(op, t);
  }
}

}  // namespace taeda::native
