// A vector whose first N elements live inside it: no allocation for the sizes
// that occur on the call path.
#pragma once

#include <taeda/c10/util/array_ref.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace taeda {

template <class T, size_t N>
class SmallVector {
 public:
  using value_type = T;
  using small_vector_tag = void;

  SmallVector() = default;
  explicit SmallVector(size_t n) { resize(n); }
  SmallVector(size_t n, const T& value) { resize(n, value); }
  SmallVector(std::initializer_list<T> list) {
    assign(list.begin(), list.end());
  }
  SmallVector(ArrayRef<T> list) { assign(list.begin(), list.end()); }
  template <class It>
  SmallVector(It first, It last) {
    assign(first, last);
  }
  SmallVector(const SmallVector& o) { assign(o.begin(), o.end()); }
  SmallVector(SmallVector&& o) noexcept { steal(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      destroy();
      steal(o);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  template <class... A>
  T& emplace_back(A&&... a) {
    if (size_ == capacity_) grow(size_ + 1);
    return *new (data_ + size_++) T(std::forward<A>(a)...);
  }
  void push_back(T v) { emplace_back(std::move(v)); }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    for (size_t i = 0; i < size_; ++i) data_[i].~T();
    size_ = 0;
  }
  void resize(size_t n) { resize_with(n); }
  void resize(size_t n, const T& value) { resize_with(n, value); }
  T* insert(T* position, const T& value) {
    size_t at = static_cast<size_t>(position - data_);
    emplace_back(value);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  T* erase(T* position) {
    std::move(position + 1, end(), position);
    pop_back();
    return position;
  }
  template <class It>
  void assign(It first, It last) {
    clear();
    reserve(static_cast<size_t>(last - first));
    for (; first != last; ++first) new (data_ + size_++) T(*first);
  }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return ArrayRef<T>(a) == ArrayRef<T>(b);
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  bool is_inline() const {
    return data_ == reinterpret_cast<const T*>(inline_);
  }
  template <class... A>
  void resize_with(size_t n, const A&... value) {
    while (size_ > n) pop_back();
    reserve(n);
    while (size_ < n) new (data_ + size_++) T(value...);
  }
  void grow(size_t at_least) {
    size_t capacity = std::max(at_least, capacity_ * 2);
    T* fresh = static_cast<T*>(
        ::operator new(capacity * sizeof(T), std::align_val_t{alignof(T)}));
    for (size_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    release();
    data_ = fresh;
    capacity_ = capacity;
  }
  void release() {
    if (!is_inline()) ::operator delete(data_, std::align_val_t{alignof(T)});
  }
  void destroy() {
    clear();
    release();
    data_ = inline_data();
    capacity_ = N;
  }
  // Leaves `o` empty; `this` must hold nothing.
  void steal(SmallVector& o) {
    if (o.is_inline()) {
      for (size_t i = 0; i < o.size_; ++i) {
        new (data_ + i) T(std::move(o.data_[i]));
      }
      size_ = o.size_;
      o.clear();
      return;
    }
    data_ = o.data_;
    size_ = o.size_;
    capacity_ = o.capacity_;
    o.data_ = o.inline_data();
    o.size_ = 0;
    o.capacity_ = N;
  }

  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

// Five dimensions stay inside; see Note [Inline geometry] in tensor_impl.h.
using DimVector = SmallVector<int64_t, 5>;

}  // namespace taeda
