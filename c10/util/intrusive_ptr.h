// Reference counts inside the object: one pointer per handle, no control block.
#pragma once

#include <taeda/c10/util/macros.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace taeda {

// Strong and weak counts. All strong references together hold one weak one, so
// release_resources() runs at the last strong and delete at the last weak one.
class TAEDA_API IntrusiveTarget {
 public:
  IntrusiveTarget() = default;
  IntrusiveTarget(const IntrusiveTarget&) = delete;
  IntrusiveTarget& operator=(const IntrusiveTarget&) = delete;
  virtual ~IntrusiveTarget() = default;

  uint32_t use_count() const { return strong_.load(std::memory_order_acquire); }
  void retain() { strong_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (strong_.fetch_sub(1, std::memory_order_acq_rel) == 1) last_release();
  }
  void retain_weak() { weak_.fetch_add(1, std::memory_order_relaxed); }
  void release_weak() {
    if (weak_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // A strong reference from a weak one; false when the object is gone.
  bool try_retain() {
    uint32_t count = strong_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (strong_.compare_exchange_weak(
              count, count + 1, std::memory_order_acq_rel)) {
        return true;
      }
    }
    return false;
  }

 protected:
  // Frees what the object owns; it may still be referred to weakly.
  virtual void release_resources() {}
  // For objects that can be revived from release_resources (Python wrappers).
  uint32_t strong_unsafe() const {
    return strong_.load(std::memory_order_relaxed);
  }

 private:
  void last_release() {
    if (weak_.load(std::memory_order_acquire) == 1) {
      delete this;
      return;
    }
    release_resources();
    release_weak();
  }

  std::atomic<uint32_t> strong_{1};
  std::atomic<uint32_t> weak_{1};
};

// A strong handle. A fresh object has count 1, which adopt() takes over.
template <class T>
class IntrusivePtr {
 public:
  constexpr IntrusivePtr() = default;
  constexpr IntrusivePtr(std::nullptr_t) {}
  IntrusivePtr(const IntrusivePtr& o) : ptr_(o.ptr_) {
    if (ptr_) ptr_->retain();
  }
  IntrusivePtr(IntrusivePtr&& o) noexcept
      : ptr_(std::exchange(o.ptr_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(const IntrusivePtr<U>& o) : ptr_(o.get()) {
    if (ptr_) ptr_->retain();
  }
  template <class U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(IntrusivePtr<U>&& o) noexcept : ptr_(o.detach()) {}
  ~IntrusivePtr() {
    if (ptr_) ptr_->release();
  }
  IntrusivePtr& operator=(IntrusivePtr o) noexcept {
    std::swap(ptr_, o.ptr_);
    return *this;
  }

  static IntrusivePtr adopt(T* fresh) {
    IntrusivePtr p;
    p.ptr_ = fresh;
    return p;
  }
  static IntrusivePtr share(T* owned) {
    if (owned) owned->retain();
    return adopt(owned);
  }
  // Gives up the reference without releasing it.
  T* detach() { return std::exchange(ptr_, nullptr); }
  void reset() { *this = IntrusivePtr(); }

  T* get() const { return ptr_; }
  T& operator*() const { return *ptr_; }
  T* operator->() const { return ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) {
    return a.ptr_ == b.ptr_;
  }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) {
    return a.ptr_ == nullptr;
  }

 private:
  T* ptr_ = nullptr;
};

template <class T>
class WeakPtr {
 public:
  WeakPtr() = default;
  explicit WeakPtr(T* target) : ptr_(target) {
    if (ptr_) ptr_->retain_weak();
  }
  WeakPtr(const WeakPtr& o) : WeakPtr(o.ptr_) {}
  WeakPtr(WeakPtr&& o) noexcept : ptr_(std::exchange(o.ptr_, nullptr)) {}
  ~WeakPtr() {
    if (ptr_) ptr_->release_weak();
  }
  WeakPtr& operator=(WeakPtr o) noexcept {
    std::swap(ptr_, o.ptr_);
    return *this;
  }
  IntrusivePtr<T> lock() const {
    if (ptr_ && ptr_->try_retain()) return IntrusivePtr<T>::adopt(ptr_);
    return {};
  }

 private:
  T* ptr_ = nullptr;
};

template <class T, class... A>
IntrusivePtr<T> make_intrusive(A&&... a) {
  return IntrusivePtr<T>::adopt(new T(std::forward<A>(a)...));
}

}  // namespace taeda

template <class T>
struct std::hash<taeda::IntrusivePtr<T>> {
  size_t operator()(const taeda::IntrusivePtr<T>& p) const {
    return std::hash<T*>()(p.get());
  }
};
