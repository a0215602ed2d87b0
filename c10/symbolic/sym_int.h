// An integer or a bool that may be an expression over sizes.
#pragma once

#include <taeda/c10/symbolic/expression.h>
#include <taeda/c10/util/array_ref.h>
#include <taeda/c10/util/intrusive_ptr.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace taeda {

class ShapeEnv;

// What a symbolic value refers to. `large` holds plain integers that the tagged
// form has no room for (they have no env).
struct TAEDA_API SymNode final : IntrusiveTarget {
  SymNode(IntrusivePtr<ShapeEnv> env, symbolic::Id id);
  explicit SymNode(int64_t value);
  ~SymNode() override;
  IntrusivePtr<ShapeEnv> env;
  symbolic::Id id = 0;
  int64_t large = 0;
};

// Note [Tagged integers]
// Integers from -2^62 upwards are themselves; below, the bits are 10 and a
// pointer to a node. So a list of plain SymInts is, bit by bit, a list of
// int64_t, and asking for the plain value costs one comparison.
class TAEDA_API SymInt {
 public:
  SymInt() = default;
  SymInt(int64_t v) : bits_(v) {
    if (TAEDA_UNLIKELY(v < kLowest)) hold(new SymNode(v));
  }
  SymInt(int v) : bits_(v) {}
  explicit SymInt(IntrusivePtr<SymNode> node) { hold(node.detach()); }
  SymInt(const SymInt& o) : bits_(o.bits_) {
    if (TAEDA_UNLIKELY(is_node())) node()->retain();
  }
  SymInt(SymInt&& o) noexcept : bits_(o.bits_) { o.bits_ = 0; }
  SymInt& operator=(SymInt o) noexcept {
    std::swap(bits_, o.bits_);
    return *this;
  }
  ~SymInt() {
    if (TAEDA_UNLIKELY(is_node())) node()->release();
  }

  bool is_symbolic() const { return is_node() && node()->env; }
  // The integer of a plain one.
  int64_t plain() const {
    return TAEDA_LIKELY(!is_node()) ? bits_ : node()->large;
  }
  // The integer; a symbolic one is fixed to its hint, which is a guard.
  int64_t guard() const {
    return TAEDA_LIKELY(!is_node()) ? bits_ : slow_guard();
  }
  SymNode* node() const {
    return reinterpret_cast<SymNode*>(static_cast<uint64_t>(bits_) &
                                      ~(uint64_t{3} << 62));
  }
  std::string text() const;

  friend SymInt operator+(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? SymInt(a.bits_ + b.bits_) : slow(kAdd, a, b);
  }
  friend SymInt operator-(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? SymInt(a.bits_ - b.bits_) : slow(kSub, a, b);
  }
  friend SymInt operator*(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? SymInt(a.bits_ * b.bits_) : slow(kMul, a, b);
  }
  // Rounds towards minus infinity, as Python does and unlike int64_t; sizes
  // are not negative, where the two agree.
  friend SymInt operator/(const SymInt& a, const SymInt& b) {
    return slow(kDiv, a, b);
  }
  friend SymInt operator%(const SymInt& a, const SymInt& b) {
    return slow(kMod, a, b);
  }
  SymInt operator-() const { return SymInt(0) - *this; }
  SymInt& operator+=(const SymInt& o) { return *this = *this + o; }
  SymInt& operator-=(const SymInt& o) { return *this = *this - o; }
  SymInt& operator*=(const SymInt& o) { return *this = *this * o; }
  SymInt& operator/=(const SymInt& o) { return *this = *this / o; }
  friend SymInt sym_min(const SymInt& a, const SymInt& b) {
    return slow(kMin, a, b);
  }
  friend SymInt sym_max(const SymInt& a, const SymInt& b) {
    return slow(kMax, a, b);
  }

  // Decisions: comparing symbolic integers leaves a guard.
  friend bool operator==(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? a.bits_ == b.bits_ : decide(kEqual, a, b);
  }
  friend bool operator<(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? a.bits_ < b.bits_ : decide(kLess, a, b);
  }
  friend bool operator<=(const SymInt& a, const SymInt& b) {
    return both_plain(a, b) ? a.bits_ <= b.bits_ : decide(kLessEqual, a, b);
  }
  friend bool operator>(const SymInt& a, const SymInt& b) { return b < a; }
  friend bool operator>=(const SymInt& a, const SymInt& b) { return b <= a; }

  enum Operation : uint8_t { kAdd, kSub, kMul, kDiv, kMod, kMin, kMax };
  enum Comparison : uint8_t { kEqual, kLess, kLessEqual };

 private:
  static constexpr int64_t kLowest = -(int64_t{1} << 62);

  bool is_node() const { return bits_ < kLowest; }
  static bool both_plain(const SymInt& a, const SymInt& b) {
    return TAEDA_LIKELY(!a.is_node() && !b.is_node());
  }
  void hold(SymNode* node) {
    bits_ = static_cast<int64_t>(reinterpret_cast<uint64_t>(node) | uint64_t{1}
                                                                        << 63);
  }
  static SymInt slow(Operation op, const SymInt& a, const SymInt& b);
  static bool decide(Comparison op, const SymInt& a, const SymInt& b);
  int64_t slow_guard() const;

  int64_t bits_ = 0;
};
static_assert(sizeof(SymInt) == 8);

using SymIntArrayRef = ArrayRef<SymInt>;

// The same names for templates over the integer type.
inline int64_t sym_min(int64_t a, int64_t b) { return std::min(a, b); }
inline int64_t sym_max(int64_t a, int64_t b) { return std::max(a, b); }

// How messages show them.
TAEDA_API void append_to(std::string& out, const SymInt& v);
TAEDA_API void append_to(std::string& out, SymIntArrayRef v);

// A truth value that nobody has decided yet: 0, 1 or the address of a node.
class TAEDA_API SymBool {
 public:
  SymBool(bool v) : bits_(v ? 1 : 0) {}
  explicit SymBool(IntrusivePtr<SymNode> node)
      : bits_(reinterpret_cast<uintptr_t>(node.detach())) {}
  SymBool(const SymBool& o) : bits_(o.bits_) {
    if (is_symbolic()) node()->retain();
  }
  SymBool(SymBool&& o) noexcept : bits_(std::exchange(o.bits_, 0)) {}
  SymBool& operator=(SymBool o) noexcept {
    std::swap(bits_, o.bits_);
    return *this;
  }
  ~SymBool() {
    if (is_symbolic()) node()->release();
  }

  bool is_symbolic() const { return bits_ > 1; }
  // Decides, which leaves a guard.
  bool guard() const { return is_symbolic() ? slow_guard() : bits_ != 0; }
  SymNode* node() const { return reinterpret_cast<SymNode*>(bits_); }
  std::string text() const;

  friend TAEDA_API SymBool operator!(const SymBool& a);
  friend TAEDA_API SymBool operator&(const SymBool& a, const SymBool& b);
  friend TAEDA_API SymBool operator|(const SymBool& a, const SymBool& b);

 private:
  bool slow_guard() const;
  uintptr_t bits_;
};
static_assert(sizeof(SymBool) == 8);

TAEDA_API SymBool sym_eq(const SymInt& a, const SymInt& b);
TAEDA_API SymBool sym_lt(const SymInt& a, const SymInt& b);
TAEDA_API SymBool sym_le(const SymInt& a, const SymInt& b);

// The same list as integers where none is symbolic.
TAEDA_API bool all_plain(SymIntArrayRef list);
inline ArrayRef<int64_t> as_plain(SymIntArrayRef list) {
  static_assert(alignof(SymInt) == alignof(int64_t));
  return {reinterpret_cast<const int64_t*>(list.data()), list.size()};
}
// int64_t has the representation of a plain SymInt, except below -2^62.
inline SymIntArrayRef as_symbolic(ArrayRef<int64_t> list) {
  return {reinterpret_cast<const SymInt*>(list.data()), list.size()};
}

}  // namespace taeda
