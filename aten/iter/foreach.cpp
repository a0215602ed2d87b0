#include <taeda/aten/iter/foreach.h>

#include <taeda/aten/iter/launch.h>

namespace taeda::foreach {

void Together::begin(const TensorBase& first) {
  const Launchers* there = launchers_or_null(first.device().type);
  if (there == nullptr || there->list == nullptr) return;
  there->list(true);
  list_ = there->list;
}

// A call has failed: those before it are made all the same, and its error is
// the one that is raised.
void Together::finish_quietly() noexcept {
  try {
    finish();
  } catch (const std::exception&) {
  }
}

void refuse_lists(size_t n, size_t other) {
  throw_error(ErrorKind::Runtime,
              str_cat("Tensor lists must have the same number of tensors, got ",
                      n,
                      " and ",
                      other));
}

void refuse_numbers(size_t n, size_t other) {
  throw_error(ErrorKind::Runtime,
              str_cat("Tensor list must have same number of elements as scalar "
                      "list, got ",
                      n,
                      " and ",
                      other));
}

void check(size_t n, const Numbers& numbers) {
  const TensorBase& t = numbers.tensor;
  TAEDA_CHECK(t.is_cpu(),
              "Expected scalars to be on CPU, got ",
              t.device(),
              " instead.");
  TAEDA_CHECK(t.is_contiguous(), "Expected scalars to be contiguous.");
  TAEDA_CHECK(t.dim() == 1,
              "Expected packed scalar Tensor to be of dimension 1. Got ",
              t.dim(),
              " instead.");
  TAEDA_CHECK(t.numel() == static_cast<int64_t>(n),
              "Expected length of scalars to match input of length ",
              n,
              " but got ",
              t.numel(),
              " instead.");
}

void check(size_t, const Single& single) {
  const TensorBase& t = single.tensor;
  TAEDA_CHECK(t.dim() == 0,
              "scalar tensor expected to be 0 dim but it has ",
              t.dim(),
              " dimensions and ",
              t.numel(),
              " elements.");
}

}  // namespace taeda::foreach
