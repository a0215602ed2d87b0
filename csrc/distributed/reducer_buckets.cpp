// How parameters are cut into buckets, and in which order.
#include <taeda/csrc/distributed/reducer.h>

#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>

namespace taeda::distributed {

std::vector<std::vector<size_t>> cut_into_buckets(
    TensorList parameters,
    const std::vector<size_t>& order,
    const ReducerOptions& options) {
  struct Open {
    ScalarType dtype;
    Device device;
    std::vector<size_t> numbers;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> found;
  std::vector<Open> open;
  for (size_t number : order) {
    if (!options.sparse.empty() && options.sparse[number]) {
      found.push_back({number});
      continue;
    }
    const Tensor& p = parameters[number];
    auto at = std::find_if(open.begin(), open.end(), [&](const Open& o) {
      return o.dtype == p.dtype() && o.device == p.device();
    });
    if (at == open.end()) {
      at = open.insert(open.end(), {p.dtype(), p.device(), {}});
    }
    at->numbers.push_back(number);
    at->bytes += static_cast<int64_t>(p.nbytes());
    const size_t last = options.limits.size() - 1;
    if (at->bytes < options.limits[std::min(found.size(), last)]) continue;
    found.push_back(std::move(at->numbers));
    open.erase(at);
  }
  for (Open& o : open) found.push_back(std::move(o.numbers));
  return found;
}

Bucket Reducer::make_bucket(std::vector<size_t> numbers) const {
  Bucket made;
  const Tensor& first = parameters_[numbers[0]];
  made.is_sparse = !options_.sparse.empty() && options_.sparse[numbers[0]];
  const ScalarType dtype = options_.dtype.value_or(first.dtype());
  if (!made.is_sparse) {
    int64_t length = 0;
    for (size_t number : numbers) length += parameters_[number].numel();
    made.buffer = ops::zeros({length}, dtype, std::nullopt, first.device());
    int64_t begin = 0;
    for (size_t number : numbers) {
      const Tensor& p = parameters_[number];
      const DimVector rows = contiguous_strides(p.sizes());
      const bool dense = p.is_non_overlapping_and_dense();
      IntArrayRef strides = dense ? p.strides() : IntArrayRef(rows);
      made.views.push_back(
          ops::as_strided(made.buffer, p.sizes(), strides, begin));
      begin += p.numel();
    }
  }
  made.numbers = std::move(numbers);
  return made;
}

void Reducer::make_buckets(std::vector<std::vector<size_t>> lists) {
  GradModeGuard no_grad(false);
  buckets_.clear();
  homes_.resize(parameters_.size());
  for (auto& numbers : lists) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      homes_[numbers[i]] = {buckets_.size(), i};
    }
    buckets_.push_back(make_bucket(std::move(numbers)));
    buckets_.back().index = buckets_.size() - 1;
  }
  buckets_.back().is_last = true;
}

std::vector<size_t> Reducer::bucket_bytes() const {
  const std::lock_guard lock(mutex_);
  std::vector<size_t> found;
  for (const Bucket& b : buckets_) {
    const Tensor& first = parameters_[b.numbers[0]];
    size_t length = 0;
    for (size_t n : b.numbers) length += parameters_[n].numel();
    found.push_back(length *
                    element_size(options_.dtype.value_or(first.dtype())));
  }
  return found;
}

std::optional<std::vector<size_t>> Reducer::take_order() {
  const std::lock_guard lock(mutex_);
  const bool varies = options_.find_unused && !options_.static_graph;
  if (!has_finished_ || !is_first_order_ || varies) return std::nullopt;
  is_first_order_ = false;
  std::vector<size_t> order = arrivals_;
  std::vector<bool> is_there(parameters_.size());
  for (size_t number : order) is_there[number] = true;
  for (const Bucket& b : buckets_) {
    for (size_t number : b.numbers) {
      if (!is_there[number]) order.push_back(number);
    }
  }
  return order;
}

void Reducer::set_order(const std::vector<size_t>& order) {
  const std::lock_guard lock(mutex_);
  auto lists = cut_into_buckets(parameters_, order, options_);
  const bool is_same = std::equal(lists.begin(),
                                  lists.end(),
                                  buckets_.begin(),
                                  buckets_.end(),
                                  [](const auto& numbers, const Bucket& b) {
                                    return numbers == b.numbers;
                                  });
  if (!is_same) make_buckets(std::move(lists));
}

}  // namespace taeda::distributed
