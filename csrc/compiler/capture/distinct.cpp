#include <taeda/csrc/compiler/capture/distinct.h>

#include <bit>
#include <cstdint>

namespace taeda::capture {

void PointerSet::clear(size_t count) {
  slots_.assign(std::bit_ceil(2 * count + 2), nullptr);
}

size_t PointerSet::find(PyObject* o) const {
  // The lowest bits of pointers are equal.
  size_t mask = slots_.size() - 1;
  auto bits = reinterpret_cast<uintptr_t>(o);
  size_t at = (bits >> 4 ^ bits >> 12) & mask;
  while (slots_[at] != nullptr && slots_[at] != o) at = (at + 1) & mask;
  return at;
}

bool PointerSet::insert(PyObject* o) {
  PyObject*& slot = slots_[find(o)];
  if (slot == o) return false;
  slot = o;
  return true;
}

bool PointerSet::contains(PyObject* o) const {
  return !slots_.empty() && slots_[find(o)] == o;
}

bool Distinct::insert_all(std::span<PyObject* const> values,
                          const std::vector<int>& places) {
  met_.clear(places.size());
  for (int place : places) {
    PyObject* o = values[place];
    if (!settled_.contains(o) && met_.insert(o)) continue;
    found_twice_ = o;
    return false;
  }
  return true;
}

bool Distinct::hold(std::span<PyObject* const> values) {
  settled_ = {};
  return insert_all(values, places_);
}

void Distinct::settle(std::span<PyObject* const> values,
                      const std::vector<bool>& fixed) {
  settled_.clear(places_.size());
  moving_.clear();
  for (int place : places_) {
    if (fixed[place]) {
      settled_.insert(values[place]);
    } else {
      moving_.push_back(place);
    }
  }
}

bool Distinct::hold_again(std::span<PyObject* const> values) {
  return insert_all(values, moving_);
}

void Distinct::keep(const std::vector<bool>& kept) {
  std::erase_if(places_, [&](int place) { return !kept[place]; });
}

std::pair<int, int> Distinct::twice(std::span<PyObject* const> values) const {
  std::pair<int, int> out{-1, -1};
  for (int place : places_) {
    if (values[place] == found_twice_) out = {out.second, place};
  }
  return out;
}

}  // namespace taeda::capture
