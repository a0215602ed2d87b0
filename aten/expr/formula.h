// What the printed formulas of index maps, reductions and scans look at: dense
// tensors, lists of numbers, and the place of an element. The printer is
// tools/codegen/formula_cpp.py.
#pragma once

#include <cstdint>

namespace taeda::formula {

inline constexpr int kMaxRank = 16;

// An argument or a result as a caller passes it; which fields count follows
// from its type in the schema.
struct Argument {
  void* data = nullptr;            // of a tensor, in row-major order, or a list
  const int64_t* sizes = nullptr;  // of a tensor
  int64_t size = 0;                // the axes of a tensor, the length of a list
  double number = 0;
  int64_t integer = 0;
  bool missing = false;  // None was given
};

template <class T>
class Tensor {
 public:
  explicit Tensor(const Argument& a)
      : data_(static_cast<T*>(a.data)), sizes_(a.sizes), rank_(a.size) {}

  int64_t rank() const { return rank_; }
  // Along an axis of either sign; a tensor without axes is a row of one.
  int64_t size(int64_t axis) const {
    return rank_ == 0 ? 1 : sizes_[axis < 0 ? axis + rank_ : axis];
  }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t axis = 0; axis < rank_; ++axis) count *= sizes_[axis];
    return count;
  }
  T& flat(int64_t number) const { return data_[number]; }
  // The element whose index along each axis is index(axis).
  template <class F>
  T read(F&& index) const {
    int64_t number = 0;
    for (int64_t axis = 0; axis < rank_; ++axis) {
      number = number * sizes_[axis] + index(axis);
    }
    return data_[number];
  }
  // Whether there is such an element.
  template <class F>
  bool inside(F&& index) const {
    for (int64_t axis = 0; axis < rank_; ++axis) {
      int64_t at = index(axis);
      if (at < 0 || at >= sizes_[axis]) return false;
    }
    return true;
  }

 private:
  T* data_;
  const int64_t* sizes_;
  int64_t rank_;
};

template <class T>
struct List {
  explicit List(const Argument& a)
      : data(static_cast<const T*>(a.data)), size(a.size) {}
  T operator[](int64_t number) const { return data[number]; }

  const T* data;
  int64_t size;
};

// The place of an element of a result, in row-major order from the first.
template <class T>
class Place {
 public:
  explicit Place(const Tensor<T>& result) : result_(result) {}

  int64_t position() const { return position_; }
  int64_t at(int64_t axis) const {
    int64_t rank = result_.rank();
    return rank == 0 ? 0 : index_[axis < 0 ? axis + rank : axis];
  }
  void next() {
    ++position_;
    for (int64_t axis = result_.rank(); axis-- > 0;) {
      if (++index_[axis] < result_.size(axis)) return;
      index_[axis] = 0;
    }
  }
  // Whether a list of axes names this one of the result, by either sign.
  bool named(const List<int64_t>& dims, int64_t axis) const {
    for (int64_t i = 0; i < dims.size; ++i) {
      if (wrapped(dims[i]) == axis) return true;
    }
    return false;
  }
  // The sum of the values at the places where `dims` names the axis.
  template <class V>
  V along(const List<V>& values,
          const List<int64_t>& dims,
          int64_t axis) const {
    V sum = 0;
    for (int64_t i = 0; i < dims.size; ++i) {
      if (wrapped(dims[i]) == axis) sum += values[i];
    }
    return sum;
  }

 private:
  int64_t wrapped(int64_t dim) const {
    int64_t rank = result_.rank() == 0 ? 1 : result_.rank();
    return dim < 0 ? dim + rank : dim;
  }

  const Tensor<T>& result_;
  int64_t position_ = 0;
  int64_t index_[kMaxRank] = {};
};

}  // namespace taeda::formula
