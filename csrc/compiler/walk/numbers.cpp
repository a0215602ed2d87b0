#include <taeda/csrc/compiler/walk/numbers.h>

#include <map>

namespace taeda::compiler {

Numbers::Numbers(std::vector<int64_t> seen)
    : seen_(std::move(seen)), classes_(seen_.size(), -1) {}

int32_t Numbers::add_symbol(int64_t value) {
  if (!env_) env_ = make_intrusive<ShapeEnv>();
  auto k = static_cast<int32_t>(symbols_.size());
  symbols_.push_back(
      env_->create_size(value, "n" + std::to_string(k), DynamicSize::Marked));
  return k;
}

Numbers Numbers::all_dynamic(std::vector<int64_t> seen) {
  Numbers out(std::move(seen));
  std::map<int64_t, int32_t> known;
  for (size_t i = 0; i < out.seen_.size(); ++i) {
    int64_t value = out.seen_[i];
    // Behind 2^40 there are ends of slices, which are no sizes.
    if (value < 2 || value > (int64_t{1} << 40)) continue;
    auto [at, is_new] = known.emplace(value, -1);
    if (is_new) at->second = out.add_symbol(value);
    out.classes_[i] = at->second;
  }
  return out;
}

Numbers::Numbers(std::vector<int64_t> seen, const Numbers& before)
    : Numbers(std::move(seen)) {
  std::map<std::array<int64_t, 3>, int32_t> known;
  for (size_t i = 0; i < seen_.size(); ++i) {
    int64_t last = before.seen_[i], now = seen_[i];
    int32_t k = before.classes_[i];
    if (k < 0 && last == now) continue;
    if (now < 2 || last < 2) continue;
    auto [at, is_new] = known.emplace(std::array<int64_t, 3>{k, last, now}, -1);
    if (is_new) at->second = add_symbol(now);
    classes_[i] = at->second;
  }
}

bool Numbers::read(std::span<const int64_t> numbers, DimVector& symbols) const {
  constexpr int64_t kUnknown = -1;
  symbols.clear();
  for (size_t k = 0; k < symbols_.size(); ++k) symbols.push_back(kUnknown);
  for (size_t i = 0; i < numbers.size(); ++i) {
    int32_t k = classes_[i];
    if (k < 0) {
      if (numbers[i] != seen_[i]) return false;
      continue;
    }
    int64_t& value = symbols[static_cast<size_t>(k)];
    if (value == kUnknown) value = numbers[i];
    if (value != numbers[i] || value < 2) return false;
  }
  return true;
}

}  // namespace taeda::compiler
