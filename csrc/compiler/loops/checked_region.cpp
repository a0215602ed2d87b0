#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/loops/checked_region.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/nan_to_num.h>
#include <taeda/gen/ops/sub.h>

#include <limits>

namespace taeda::compiler::loops {

namespace {

// What roundings may come to, as a share of the largest number.
double share_of(ScalarType type) {
  switch (type) {
    case kDouble:
      return 1e-10;
    case kFloat:
      return 1e-4;
    case kHalf:
      return 1e-2;
    case kBFloat16:
      return 5e-2;
    default:
      return 0;  // integers and truth values
  }
}

double largest(const TensorBase& t) {
  if (t.numel() == 0) return 0;
  return ops::item(ops::amax(ops::abs(t))).to<double>();
}

// By how much two tensors differ at most. Where one is infinite or no number,
// so is the other.
double difference(const TensorBase& a, const TensorBase& b) {
  TensorBase x = ops::_to_copy(a, kDouble), y = ops::_to_copy(b, kDouble);
  // Infinities become the largest numbers, whose difference is infinite or 0.
  double rest = largest(ops::sub(ops::nan_to_num(x), ops::nan_to_num(y)));
  TensorBase u = ops::sub(x, x), v = ops::sub(y, y);
  double special = largest(ops::sub(ops::nan_to_num(u, 1.0),  //
                                    ops::nan_to_num(v, 1.0)));
  return special > 0 ? std::numeric_limits<double>::infinity() : rest;
}

}  // namespace

CheckedRegion::CheckedRegion(IntrusivePtr<LoopRegion> kernel,
                             ReportDifference report)
    : kernel_(std::move(kernel)), calls_(kernel_->body), report_(report) {
  body = kernel_->body;
  numbers = kernel_->numbers;
  numbers.insert(numbers.end(), body.symbols.begin(), body.symbols.end());
}

bool CheckedRegion::run(std::span<const TensorBase> inputs,
                        std::span<const TensorBase> outputs,
                        IntArrayRef values) {
  size_t own = kernel_->numbers.size();
  if (!kernel_->run(inputs, outputs, {values.data(), own})) return false;
  std::vector<TensorBase> expected =
      calls_.run({inputs.begin(), inputs.end()},
                 {values.data() + own, body.symbols.size()},
                 /*in_place=*/false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorBase& found = outputs[i];
    double most = difference(found, expected[i]);
    double bound = largest(
        ops::nan_to_num(ops::_to_copy(expected[i], kDouble), 0.0, 0.0, 0.0));
    if (most <= share_of(found.dtype()) * bound) continue;
    report_(str_cat("compile: check: result ",
                    static_cast<int64_t>(i),
                    " of a kernel differs from that of its calls by ",
                    most,
                    " where the largest number is ",
                    bound,
                    "\ncalls:\n",
                    text_of(body),
                    "\nloops:\n",
                    text_of(kernel_->program())));
  }
  return true;
}

}  // namespace taeda::compiler::loops
