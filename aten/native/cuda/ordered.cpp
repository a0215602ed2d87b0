#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/ordered.h>
#include <taeda/gen/ops/reshape.h>

#include <algorithm>
#include <limits>

namespace taeda::cuda {

namespace {

// So few of a row, or so many rows, are a thread's each: no sort is needed.
constexpr int64_t kFew = 16, kManyRows = 16384;
constexpr int64_t kChunk = 64;  // as in ordered.cuh

// The narrowest type of places below `size`: each of its bytes is a pass of the
// sort.
ScalarType type_of_places(int64_t size) {
  if (size <= 256) return kByte;
  if (size <= std::numeric_limits<int16_t>::max()) return kShort;
  return size <= std::numeric_limits<int32_t>::max() ? kInt : kLong;
}

// What half and bfloat16 are added up in, and integers.
ScalarType type_of_sums(ScalarType t) {
  if (is_complex(t) || t == kDouble) return t;
  return is_floating(t) ? kFloat : kLong;
}

struct Kernels {
  const char* lead;
  const char* segment;
};
constexpr Kernels kRows{"lead_at<IndexedRows>(g, i);",
                        "segment_at<IndexedRows>(g, i);"};
constexpr Kernels kElements{"lead_at<NamedElements>(g, i);",
                            "segment_at<NamedElements>(g, i);"};

// `targets` has a place for each element, or row of `width` elements.
void write_in_order(const NamedWrite& write,
                    const Kernels& kernels,
                    const Tensor& targets,
                    int64_t width,
                    const Tensor& result) {
  auto [sorted, order] = sort_rows(targets, /*descending=*/false);
  int64_t count = targets.numel(), leads = (count - 1) / kChunk * width;
  Tensor lead = make_tensor(write.op,
                            {std::max<int64_t>(leads, 1)},
                            type_of_sums(result.dtype()),
                            result.device());
  auto run = [&](const char* body, int64_t work) {
    DeviceCall(write.op, "ordered", body)
        .number("dim", write.dim)
        .number("how", static_cast<int64_t>(write.how))
        .number("alpha", write.value)
        .number("width", width)
        .tensor("targets", sorted)
        .tensor("order", order)
        .tensor("index", write.index)
        .tensor("source", write.source)
        .tensor("lead", lead)
        .tensor("seen", write.seen)
        .tensor("result", result)
        .run(work);
  };
  run(kernels.lead, leads);
  run(kernels.segment, count * width);
}

void run_by_rows(const NamedWrite& write,
                 const char* body,
                 int64_t rows,
                 const Tensor& result) {
  DeviceCall(write.op, "indexing", body)
      .number("dim", write.dim)
      .number("how", static_cast<int64_t>(write.how))
      .number("value", write.value)
      .tensor("index", write.index)
      .tensor("source", write.source)
      .tensor("seen", write.seen)
      .tensor("result", result)
      .run(rows);
}

int64_t length_of(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? 1 : t.size(dim);
}

}  // namespace

void write_rows(const NamedWrite& write, const Tensor& result) {
  if (write.source.numel() == 0) return;
  int64_t count = length_of(write.source, write.dim);
  int64_t width = write.source.numel() / count;
  if (count <= kFew || width >= kManyRows) {
    return run_by_rows(write, "index_row(g, i);", width, result);
  }
  int64_t size = length_of(result, write.dim);
  Tensor targets =
      make_tensor(write.op, {count}, type_of_places(size), result.device());
  DeviceCall(write.op, "ordered", "target_row(g, i);")
      .number("size", size)
      .tensor("index", write.index)
      .tensor("result", targets)
      .run(count);
  write_in_order(write, kRows, targets, width, result);
}

void write_elements(const NamedWrite& write, const Tensor& result) {
  int64_t count = write.index.numel();
  if (count == 0) return;
  int64_t length = length_of(write.index, write.dim);
  if (length <= kFew || count / length >= kManyRows) {
    return run_by_rows(write, "scatter_row(g, i);", count / length, result);
  }
  if (!write.source.defined() && write.how == Combine::Set) {
    DeviceCall(write.op, "ordered", "set_element(g, i);")
        .number("dim", write.dim)
        .number("value", write.value)
        .tensor("index", write.index)
        .tensor("result", result)
        .run(count);
    return;
  }
  Tensor targets = make_tensor(
      write.op, {count}, type_of_places(result.numel()), result.device());
  DeviceCall(write.op, "ordered", "target_element(g, i);")
      .number("dim", write.dim)
      .tensor("index", write.index)
      .tensor("shape", result)
      .tensor("result", targets)
      .run(count);
  write_in_order(write, kElements, targets, 1, result);
}

}  // namespace taeda::cuda
