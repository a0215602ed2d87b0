// That objects which were several are still several.
#pragma once

#include <Python.h>

#include <span>
#include <vector>

namespace taeda::capture {

// A set of pointers for as many as it was cleared for.
class PointerSet {
 public:
  void clear(size_t count);
  // False where it is there already.
  bool insert(PyObject* o);
  bool contains(PyObject* o) const;

 private:
  size_t find(PyObject* o) const;
  std::vector<PyObject*> slots_;
};

// Note [Different objects]
// A stand-in stands for one outside object. Where the same object is met at a
// second place, a guard says so (CheckSame); where two places hold two objects,
// a later call may bring one object for both, which `is`, sets, dicts and
// writes would tell. All such places are checked at once. What hangs on dicts
// that did not change is not looked at again.
class Distinct {
 public:
  explicit Distinct(std::vector<int> places) : places_(std::move(places)) {}
  // Whether the objects at all places are different ones.
  bool hold(std::span<PyObject* const> values);
  // After hold(): those at `fixed` places stay what they are.
  void settle(std::span<PyObject* const> values,
              const std::vector<bool>& fixed);
  // hold(), when those of settle() are what they were.
  bool hold_again(std::span<PyObject* const> values);
  // Forgets the other places.
  void keep(const std::vector<bool>& kept);
  const std::vector<int>& places() const { return places_; }
  // The places of one object, after hold() said no.
  std::pair<int, int> twice(std::span<PyObject* const> values) const;

 private:
  bool insert_all(std::span<PyObject* const> values,
                  const std::vector<int>& places);
  std::vector<int> places_, moving_;
  PointerSet settled_, met_;
  PyObject* found_twice_ = nullptr;
};

}  // namespace taeda::capture
