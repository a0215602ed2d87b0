// Text of kernels: the loops. Their bodies are printed by print_body.cpp.
#include <taeda/aten/expr/functions.h>
#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/print_body.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

constexpr int64_t kShortLanes = 16;
// Independent chains of a reduction: four AVX-512 registers, fewer along a
// short axis. Of one whose length is an expression what is left goes through
// the first of them.
int64_t lanes_of(Compute type, const SymInt& axis) {
  int64_t size = static_cast<int64_t>(element_size(type_of(type)));
  int64_t lanes = 256 / std::max<int64_t>(size, 4);
  if (axis.is_symbolic()) return lanes;
  int64_t length = axis.plain();
  while (lanes * 4 > length && lanes > kShortLanes) lanes /= 2;
  while (lanes > length) lanes /= 2;
  return lanes;
}
// A long sum is folded by pieces, so that its error grows slowly.
constexpr int64_t kPiece = 4096;
// Work that may stand in a loop over lanes, which g++ unrolls.
constexpr int kLight = 12;

std::string loop(const std::string& type,
                 const std::string& name,
                 const std::string& first,
                 const std::string& last) {
  return str_cat("for (",
                 type,
                 " ",
                 name,
                 " = ",
                 first,
                 "; ",
                 name,
                 " < ",
                 last,
                 "; ++",
                 name,
                 ") {");
}
std::string loop(const std::string& name, const std::string& last) {
  return loop("int64_t", name, "0", last);
}

class KernelPrinter {
 public:
  KernelPrinter(const Program& program, const Schedule& s)
      : p_(program), s_(s), body_(p_, s, name_), shared_(shares_memory(p_)) {}

  KernelText print() {
    print_body();
    std::string head =
        "(void* const* p, [[maybe_unused]] const int64_t* n, int64_t begin, "
        "int64_t end) {\n";
    for (size_t i = 0; i < name_.numbers.size(); ++i) {
      head += message("const int64_t n{} = n[{}];\n", i, i);
    }
    return {head + text_, std::move(name_.numbers)};
  }

 private:
  void print_body() {
    for (size_t b = 0; b < p_.buffers().size(); ++b) {
      const Buffer& buffer = p_.buffers()[b];
      std::string type = memory_name(buffer.dtype);
      if (!buffer.written) type = "const " + type;
      line(message(
          "{}* {}b{} = static_cast<{}*>(p[{}]);", type, alone(b), b, type, b));
    }
    line(loop("int64_t", "o", "begin", "end"));
    outer_indices();
    places();
    arrays();
    for (int pass = 0; pass <= s_.passes; ++pass) {
      row_values(pass);
      if (pass < s_.passes) print_pass(pass);
    }
    line("}\n}");
  }

  void line(const std::string& text) { text_ += text + "\n"; }

  // A result may lie in the memory of an operand: Note [Writes in place].
  const char* alone(size_t buffer) const {
    return shared_[buffer] ? "" : "__restrict ";
  }

  // The point of the outer axes, and the block of the vector axis.
  void outer_indices() {
    if (s_.outer.empty() && s_.block == 0) return;
    line("int64_t r = o;");
    if (s_.block > 0) {
      const SymInt& size = p_.sizes()[s_.vector];
      std::string blocks = name_((size + SymInt(s_.block - 1)) / s_.block);
      std::string last = name_(size);
      line(message(
          "const int64_t c = r % {} * {}; r /= {};", blocks, s_.block, blocks));
      line(message("const int64_t m = c + {} < {} ? {} : {} - c;",
                   s_.block,
                   last,
                   s_.block,
                   last));
    }
    for (size_t k = s_.outer.size(); k-- > 0;) {
      size_t a = s_.outer[k];
      if (k == 0) {
        line(message("const int64_t i{} = r;", a));
      } else {
        line(message("const int64_t i{} = r % {}; r /= {};",
                     a,
                     name_(p_.sizes()[a]),
                     name_(p_.sizes()[a])));
      }
    }
  }

  // A pointer for each access, at the outer point.
  void places() {
    for (Var v = 0; v < p_.count(); ++v) {
      const Instruction& i = p_[v];
      if (i.buffer < 0) continue;
      const Buffer& buffer = p_.buffers()[static_cast<size_t>(i.buffer)];
      std::string at = name_(i.place.offset);
      for (size_t a : s_.outer) {
        if (same(i.place.strides[a], 0)) continue;
        at += message(" + i{} * {}", a, name_(i.place.strides[a]));
      }
      if (s_.block > 0 && !same(i.place.strides[s_.vector], 0)) {
        at += message(" + c * {}", name_(i.place.strides[s_.vector]));
      }
      line(message("{}{}* {}q{} = b{} + ({});",
                   buffer.written ? "" : "const ",
                   memory_name(buffer.dtype),
                   alone(static_cast<size_t>(i.buffer)),
                   int64_t{v},
                   i.buffer,
                   at));
    }
  }

  void arrays() {
    for (Var v = 0; v < p_.count(); ++v) {
      const Instruction& i = p_[v];
      auto at = static_cast<size_t>(v);
      std::string type = type_name(i.type);
      if (s_.kept[at]) {
        line(message("alignas(64) {} v{}k[{}];",
                     type,
                     int64_t{v},
                     name_(s_.array_size(p_))));
      } else if (body_.is_column(v)) {
        line(message("alignas(64) {} v{}a[{}];",
                     type,
                     int64_t{v},
                     name_(s_.vector_size(p_))));
      }
      if (i.op == Op::Reduce && s_.columns) {
        line(message("alignas(64) {} v{}r[{}];",
                     type_name(i.computes),
                     int64_t{v},
                     name_(s_.vector_size(p_))));
      }
    }
  }

  std::string length() {
    return s_.block > 0 ? "m" : name_(s_.vector_size(p_));
  }

  // What is one value for each outer point, or for each column.
  void row_values(int stage) {
    for (Var v = 0; v < p_.count(); ++v) {
      const Instruction& i = p_[v];
      auto at = static_cast<size_t>(v);
      if (s_.full[at] || s_.stage[at] != stage) continue;
      bool writes_columns = i.op == Op::Store && s_.columns;
      if (!body_.is_column(v) && !writes_columns) {
        line(body_.definition(v, "0"));
        continue;
      }
      line(loop("i", length()));
      if (i.op != Op::Reduce) line(body_.operands_of({v}, "i"));
      line(body_.definition(v, "i"));
      if (i.op != Op::Store) {
        line(message("v{}a[i] = v{};", int64_t{v}, int64_t{v}));
      }
      line("}");
    }
  }

  void print_pass(int pass) {
    PassParts parts = body_.parts(pass);
    if (parts.empty()) return;
    bool with_sums = s_.columns && !parts.sums.empty();
    // Light stores are made by the loop that sums.
    std::vector<Var> stores, plain = parts.stores;
    bool together = !s_.columns && !parts.sums.empty() && parts.kept.empty() &&
                    body_.work_of(parts.stores) < kLight;
    if (together) std::swap(stores, plain);
    plain.insert(plain.end(), parts.kept.begin(), parts.kept.end());
    if (with_sums) start_columns(parts.sums);
    if (!plain.empty() || with_sums) {
      nest([&] {
        std::vector<Var> roots = plain;
        if (with_sums) {
          roots.insert(roots.end(), parts.sums.begin(), parts.sums.end());
        }
        vector_loop(roots);
      });
    }
    body_.mark_kept(parts.kept);
    if (!parts.sums.empty() && !s_.columns) row_sums(parts.sums, stores);
  }

  // The loops over the inner axes around `body`, with the place in arrays.
  template <class F>
  void nest(F&& body) {
    std::string position = "0";
    for (size_t a : s_.inner) {
      std::string size = name_(p_.sizes()[a]);
      line(loop(str_cat("i", a), size));
      position = message("({} * {} + i{})", position, size, a);
    }
    line(str_cat("{ [[maybe_unused]] const int64_t k = ",
                 position,
                 " * ",
                 name_(s_.vector_size(p_)),
                 ";"));
    body();
    for (size_t i = 0; i < s_.inner.size() + 1; ++i) line("}");
  }

  // For each element of the woven axis.
  std::string woven(const std::string& body) const {
    if (s_.woven == Schedule::kNone || body.empty()) return body;
    std::string all;
    for (int64_t k = 0; k < p_.sizes()[s_.woven].plain(); ++k) {
      all += str_cat(
          "{ constexpr int64_t i", s_.woven, " = ", k, ";\n", body, "}\n");
    }
    return all;
  }

  void vector_loop(const std::vector<Var>& roots) {
    std::string head = loop("i", length());
    std::string body = woven(body_.with_operands(roots, "i"));
    std::string check = woven(body_.far_checks(roots, "i"));
    std::string safe = body_.reads_buffers(roots, length());
    line("{");
    if (!safe.empty() && check.empty()) {
      line(str_cat("if (", safe, ") {"));
      body_.stay_in_buffers(true);
      line("#pragma GCC ivdep");
      line(head + "\n" + body_.with_operands(roots, "i") + "}");
      body_.stay_in_buffers(false);
      line("} else {\n" + head + "\n" + body + "}\n}\n}");
      return;
    }
    if (!check.empty()) {
      line("unsigned far32 = 0; unsigned long long far64 = 0;");
      line(head + "\n" + check + "}");
      line("if ((far32 | far64) != 0) {");
      line(head + "\n" + any_argument(body) + "}");
      line("} else {");
    }
    line("#pragma GCC ivdep");
    line(head + "\n" + body + "}");
    if (!check.empty()) line("}");
    line("}");
  }

  void start_columns(const std::vector<Var>& sums) {
    line(loop("i", length()));
    for (Var v : sums) {
      line(message("v{}r[i] = {};", int64_t{v}, body_.initial(v)));
    }
    line("}");
  }

  // Lanes along the vector axis. They live on over the inner loops.
  void row_sums(const std::vector<Var>& sums, const std::vector<Var>& stores) {
    SymInt size = s_.vector_size(p_);
    std::string length = name_(size);
    int64_t lanes = 64;
    for (Var v : sums) {
      lanes = std::min(lanes, lanes_of(p_[v].computes, size));
    }
    for (Var v : sums) {
      line(message("{} v{}r = {};",
                   type_name(p_[v].computes),
                   int64_t{v},
                   body_.initial(v)));
    }
    bool is_long = size.is_symbolic() || size.plain() > 2 * kPiece;
    bool pieces = is_long && s_.inner.empty();
    line("{");
    if (pieces) {
      line(str_cat(
          "for (int64_t s = 0; s < ", length, "; s += ", kPiece, ") {"));
      line(message("const int64_t e = s + {} < {} ? s + {} : {};",
                   kPiece,
                   length,
                   kPiece,
                   length));
    }
    start_lanes(sums, lanes);
    nest([&] {
      lane_loop(sums, stores, lanes, pieces ? "s" : "0", pieces ? "e" : length);
    });
    meet_lanes(sums, lanes);
    if (pieces) line("}");
    line("}");
  }

  void start_lanes(const std::vector<Var>& sums, int64_t lanes) {
    for (Var v : sums) {
      line(message("alignas(64) {} v{}l[{}];",
                   type_name(p_[v].computes),
                   int64_t{v},
                   lanes));
      line(message("for (int l = 0; l < {}; ++l) v{}l[l] = {};",
                   lanes,
                   int64_t{v},
                   body_.initial(v)));
    }
  }

  void lane_loop(const std::vector<Var>& sums,
                 const std::vector<Var>& stores,
                 int64_t lanes,
                 const std::string& first,
                 const std::string& last) {
    auto folds = [&](const std::string& kind, const std::string& index) {
      std::vector<Var> roots = sums;
      roots.insert(roots.end(), stores.begin(), stores.end());
      std::string text = body_.operands_of(roots, index);
      for (Var v : stores) text += body_.definition(v, index);
      for (Var v : sums) {
        text += body_.fold(v, message("v{}{}", int64_t{v}, kind));
      }
      return text;
    };
    std::string check = body_.far_checks(sums, "i");
    std::string loops = message("int64_t i = {};\n", first);
    auto fold_lanes = [&](int64_t count) {
      loops += str_cat(
          "for (; i + ", count, " <= ", last, "; i += ", count, ") {\n");
      loops += loop("int", "l", "0", str_cat(count)) + "\n";
      loops += folds("l[l]", "(i + l)") + "}\n}\n";
    };
    fold_lanes(lanes);
    bool short_ones = s_.vector_size(p_).is_symbolic() && lanes > kShortLanes;
    if (short_ones) fold_lanes(kShortLanes);
    loops += str_cat("for (; i < ", last, "; ++i) {\n");
    loops += folds("r", "i") + "}";
    if (check.empty()) {
      line("{\n" + loops + "\n}");
      return;
    }
    line("{\nunsigned far32 = 0; unsigned long long far64 = 0;");
    line(loop("int64_t", "i", first, last));
    line(check + "}\nif ((far32 | far64) != 0) {");
    line(any_argument(loops) + "\n} else {\n" + loops + "\n}\n}");
  }

  void meet_lanes(const std::vector<Var>& sums, int64_t lanes) {
    for (Var v : sums) {
      line(message("v{}r = meet<{}>(v{}l, v{}r, {});",
                   int64_t{v},
                   lanes,
                   int64_t{v},
                   int64_t{v},
                   body_.meeting(v)));
    }
  }

  NumberNames name_;
  Program p_;  // printing adds to its expressions
  const Schedule& s_;
  BodyPrinter body_;
  std::vector<bool> shared_;  // by buffer: with another one
  std::string text_;
};

}  // namespace

KernelText kernel_text(const Program& program, const Schedule& schedule) {
  return KernelPrinter(program, schedule).print();
}

// The bodies of shared functions cost a unit 20 ms, so only those that call one
// have them.
std::string unit_prelude(const std::string& text) {
  bool calls_shared = false;
  for (int i = 0; i < expr::kNumFunctions; ++i) {
    const expr::Function& f = expr::kFunctions[i];
    calls_shared |= f.shared && text.find(str_cat("math::", f.name, "(")) !=
                                    std::string::npos;
  }
  std::string head = calls_shared ? "" : "#define TAEDA_MATH_LINKED\n";
  return head + R"(#include <taeda/aten/math/convert.h>
#include <taeda/aten/math/math.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>
using namespace taeda;
using math::convert;
namespace {
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
// Whether a dim of `size` has the index, and the nearest one that it has. Of 32
// bits, as most elements: vectors have as many of both.
[[maybe_unused]] inline bool within(int64_t index, int size) {
  return static_cast<unsigned>(static_cast<int>(index)) <
         static_cast<unsigned>(size);
}
[[maybe_unused]] inline int64_t nearest(int64_t index, int64_t size) {
  return index < 0 ? 0 : index < size ? index : size - 1;
}
// `value` where it is chosen, without a branch, which would take the load of the
// value with it.
template <int kBytes>
struct Bits;
template <>
struct Bits<1> {
  typedef uint8_t type;
};
template <>
struct Bits<2> {
  typedef unsigned short type;
};
template <>
struct Bits<4> {
  typedef unsigned type;
};
template <>
struct Bits<8> {
  typedef unsigned long long type;
};
template <class T>
[[gnu::always_inline]] inline T chosen(bool is_chosen, T value, T other) {
  typedef typename Bits<sizeof(T)>::type B;
  const B mask = is_chosen ? static_cast<B>(~B(0)) : B(0);
  return __builtin_bit_cast(
      T,
      static_cast<B>((__builtin_bit_cast(B, value) & mask) |
                     (__builtin_bit_cast(B, other) & static_cast<B>(~mask))));
}
// Element 2 * i of a row; the one behind it is read, too.
template <class T>
[[gnu::always_inline]] inline T first_of_pair(const T* row, int64_t i) {
  typedef typename Bits<sizeof(T)>::type Half;
  typedef typename Bits<2 * sizeof(T)>::type Whole;
  typedef Whole Pair __attribute__((aligned(sizeof(T)), may_alias));
  Pair both = reinterpret_cast<const Pair*>(row)[i];
  return __builtin_bit_cast(T, static_cast<Half>(both));
}
template <class T, int kLanes>
struct Vector {
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
};
// lanes = combine(lanes, others), by vectors where that has a meaning for them.
template <int kLanes, class T, class F>
[[gnu::always_inline]] inline void meet_halves(T* lanes, F&& combine) {
  constexpr int kMost = kVectorBytes / sizeof(T);
  constexpr int kStep = kLanes < kMost ? kLanes : kMost;
  if constexpr (!math::kIsSame<T, bool> && kStep * sizeof(T) >= 16) {
    using V = typename Vector<T, kStep>::type;
    if constexpr (requires(V v) { requires math::kIsSame<decltype(combine(v, v)), V>; }) {
      for (int l = 0; l < kLanes; l += kStep) {
        V a, b;
        __builtin_memcpy(&a, lanes + l, sizeof(V));
        __builtin_memcpy(&b, lanes + kLanes + l, sizeof(V));
        a = combine(a, b);
        __builtin_memcpy(lanes + l, &a, sizeof(V));
      }
      return;
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    lanes[l] = combine(lanes[l], lanes[l + kLanes]);
  }
}
// All lanes and what was there before, in halves. Left to itself g++ unrolls
// short halves before it looks for vectors, and takes each lane out of its
// register by itself.
template <int kLanes, class T, class F>
[[gnu::always_inline]] inline T meet(T* lanes, T before, F&& combine) {
  if constexpr (kLanes == 1) {
    return combine(before, lanes[0]);
  } else {
    meet_halves<kLanes / 2>(lanes, combine);
    return meet<kLanes / 2>(lanes, before, combine);
  }
}
}
)";
}

}  // namespace taeda::compiler::loops
