// Copies and fills on the CPU: conversion between all dtypes and geometries.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/math/integer_types.h>
#include <taeda/aten/native/cpu/copy.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/convert.h>
#include <taeda/aten/native/cpu/kernels/copy_rows.h>
#include <taeda/aten/native/cpu/transposed_copy.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taeda {

namespace {

constexpr int64_t kCopyGrain = 32768;

struct DirectIndex {
  int8_t of[kNumScalarTypes];
};
constexpr DirectIndex make_direct_index() {
  DirectIndex index{};
  for (int8_t& i : index.of) i = -1;
  for (int i = 0; i < kNumDirectTypes; ++i) {
    index.of[static_cast<int>(kDirectTypes[i])] = static_cast<int8_t>(i);
  }
  return index;
}
constexpr DirectIndex kDirectIndex = make_direct_index();

int direct_index(ScalarType t) { return kDirectIndex.of[static_cast<int>(t)]; }

// The directly supported type that holds every value of `t`.
ScalarType carrier(ScalarType t) {
  if (direct_index(t) >= 0) return t;
  switch (t) {
    case kUInt16:
    case kUInt32:
    case kUInt64:  // bits survive the round trip
      return kLong;
    case kComplexHalf:
      return kComplexFloat;
    default:
      return kFloat;  // 8-bit floats
  }
}

// A directly supported type as wide as the others: copies look at no value.
ScalarType bits_of(ScalarType t) {
  switch (element_size(t)) {
    case 1:
      return kByte;
    case 2:
      return kShort;
    case 4:
      return kInt;
    default:
      return kLong;
  }
}

// To or from the types without direct loops, one element at a time. Through
// Scalar the range checks would throw, so the element goes by its carrier.
template <class T>
void widen(const void* in, void* out) {
  T v = *static_cast<const T*>(in);
  if constexpr (std::is_integral_v<T>) {
    *static_cast<int64_t*>(out) = static_cast<int64_t>(v);
  } else if constexpr (std::is_same_v<T, complex<Half>>) {
    *static_cast<complex<float>*>(out) = {static_cast<float>(v.real()),
                                          static_cast<float>(v.imag())};
  } else {
    *static_cast<float*>(out) = static_cast<float>(v);
  }
}
template <class T>
void narrow(const void* in, void* out) {
  if constexpr (std::is_integral_v<T>) {
    *static_cast<T*>(out) = static_cast<T>(*static_cast<const int64_t*>(in));
  } else if constexpr (std::is_same_v<T, complex<Half>>) {
    auto c = *static_cast<const complex<float>*>(in);
    *static_cast<T*>(out) = T(Half(c.real()), Half(c.imag()));
  } else {
    *static_cast<T*>(out) = T(*static_cast<const float*>(in));
  }
}
using OneFn = void (*)(const void*, void*);
template <OneFn kOne>
void convert_each(
    const void* src, int64_t ss, void* dst, int64_t ds, int64_t n) {
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i, from += ss, to += ds) kOne(from, to);
}
template <class Fn, class F>
Fn rare_function(ScalarType t, F&& pick) {
  switch (t) {
    case kUInt16:
      return pick(uint16_t{});
    case kUInt32:
      return pick(uint32_t{});
    case kUInt64:
      return pick(uint64_t{});
    case kComplexHalf:
      return pick(complex<Half>{});
    case kFloat8_e5m2:
      return pick(Float8_e5m2{});
    case kFloat8_e4m3fn:
      return pick(Float8_e4m3fn{});
    case kFloat8_e5m2fnuz:
      return pick(Float8_e5m2fnuz{});
    case kFloat8_e4m3fnuz:
      return pick(Float8_e4m3fnuz{});
    case kFloat8_e8m0fnu:
      return pick(Float8_e8m0fnu{});
    default:
      return nullptr;
  }
}

// A rare element in a floating-point type that is not its carrier: the other
// operand's, where both are computed in that.
template <class T, class Part, bool kComplex>
void widen_to(const void* in, void* out) {
  T v = *static_cast<const T*>(in);
  Part real;
  [[maybe_unused]] Part imag = 0;
  if constexpr (std::is_same_v<T, complex<Half>>) {
    real = static_cast<Part>(static_cast<float>(v.real()));
    imag = static_cast<Part>(static_cast<float>(v.imag()));
  } else if constexpr (std::is_integral_v<T>) {
    real = static_cast<Part>(v);
  } else {
    real = static_cast<Part>(static_cast<float>(v));
  }
  if constexpr (kComplex) {
    *static_cast<complex<Part>*>(out) = {real, imag};
  } else {
    *static_cast<Part*>(out) = real;
  }
}
template <class Part, bool kComplex>
ConvertFn widening_function(ScalarType from) {
  return rare_function<ConvertFn>(from, [](auto v) -> ConvertFn {
    return &convert_each<&widen_to<decltype(v), Part, kComplex>>;
  });
}
ConvertFn widening_function(ScalarType from, ScalarType to) {
  bool real_part = is_complex(from) && !is_complex(to);
  if (real_part || is_float8(from)) return nullptr;
  switch (to) {
    case kFloat:
      return widening_function<float, false>(from);
    case kDouble:
      return widening_function<double, false>(from);
    case kComplexFloat:
      return widening_function<float, true>(from);
    case kComplexDouble:
      return widening_function<double, true>(from);
    default:
      return nullptr;
  }
}
void narrow_complex(const void* in, void* out) {
  auto c = *static_cast<const complex<double>*>(in);
  complex<float> wide(static_cast<float>(c.real()),
                      static_cast<float>(c.imag()));
  narrow<complex<Half>>(&wide, out);
}

struct Conversion {
  ScalarType from, to;
  ConvertFn direct;  // null: through the carriers
  OneFn load = nullptr, store = nullptr;
  bool same;

  Conversion(ScalarType f, ScalarType t)
      : from(f), to(t), direct(convert_function(f, t)), same(f == t) {
    if (direct == nullptr && same) {
      ScalarType bits = bits_of(f);
      direct = convert_function(bits, bits);
    }
    if (direct != nullptr) return;
    load = rare_function<OneFn>(
        from, [](auto v) -> OneFn { return &widen<decltype(v)>; });
    store = rare_function<OneFn>(
        to, [](auto v) -> OneFn { return &narrow<decltype(v)>; });
    middle = convert_function(carrier(from), carrier(to));
  }
  void run(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
    if (direct != nullptr) {
      direct(src, ss, dst, ds, n);
      return;
    }
    for (int64_t i = 0; i < n; ++i, src += ss, dst += ds) one(src, dst);
  }

 private:
  ConvertFn middle = nullptr;
  void one(const char* src, char* dst) {
    alignas(16) char a[16], b[16];
    const void* in = src;
    if (load != nullptr) {
      load(src, a);
      in = a;
    }
    void* out = store != nullptr ? static_cast<void*>(b) : dst;
    middle(in, 0, out, 0, 1);
    if (store != nullptr) store(b, dst);
  }
};

void byte_strides(const TensorBase& t, DimVector& out) {
  out.clear();
  for (int64_t s : t.strides()) {
    out.push_back(s * static_cast<int64_t>(t.itemsize()));
  }
}

// Strides of src seen with dst's sizes: 0 where it is broadcast.
void expanded_strides(const TensorBase& src,
                      IntArrayRef sizes,
                      DimVector& out) {
  out.assign(sizes.begin(), sizes.end());
  int64_t shift = static_cast<int64_t>(sizes.size()) - src.dim();
  TAEDA_CHECK(shift >= 0,
              "copy_: the number of sizes provided (",
              sizes.size(),
              ") must be greater or equal to the number of dimensions in the "
              "tensor (",
              src.dim(),
              ")");
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    bool inside = d >= shift;
    int64_t size = inside ? src.sizes()[d - shift] : 1;
    TAEDA_CHECK(size == sizes[d] || size == 1,
                "copy_: The size of tensor a (",
                sizes[d],
                ") must match the size of tensor b (",
                size,
                ") at non-singleton dimension ",
                d);
    out[d] = size == 1 ? 0
                       : src.strides()[d - shift] *
                             static_cast<int64_t>(src.itemsize());
  }
}

// Note [Short rows]
// Rows of few elements (pairs of repeated ones, windows, what stack puts side
// by side) would take longer to begin than to copy. Where they are no rows of
// bytes the columns are copied, each a long strided line, for as many rows at a
// time as the first cache holds.
constexpr int64_t kShortRow = 32, kColumn = 1024;

// Where rows overlap what is written last stays, so the order counts.
bool has_short_rows(const IterationSpace& space) {
  if (space.dim() < 2 || space.size(0) >= kShortRow) return false;
  int64_t row = space.size(0) * std::abs(space.stride(0, 0));
  return std::abs(space.stride(0, 1)) >= row &&
         space.size(1) >= std::max<int64_t>(space.size(0), 8);
}

void copy_short_rows(const IterationSpace& space,
                     int64_t rows,
                     Conversion& conversion,
                     char* dst,
                     const char* src) {
  int64_t to = space.stride(0, 1), from = space.stride(1, 1);
  for (int64_t k = 0; k < space.size(0); ++k) {
    conversion.run(src + k * space.stride(1, 0),
                   from,
                   dst + k * space.stride(0, 0),
                   to,
                   rows);
  }
}

void convert_short_rows(const IterationSpace& space,
                        const Conversion& conversion,
                        char* dst,
                        const char* src) {
  int64_t blocks = (space.size(1) + kColumn - 1) / kColumn;
  int64_t planes = space.numel() / (space.size(0) * space.size(1));
  int64_t work = space.size(0) * std::min(space.size(1), kColumn);
  parallel_for(
      0, planes * blocks, kCopyGrain / work + 1, [&](int64_t b, int64_t e) {
        Conversion c = conversion;
        for (int64_t at = b; at < e; ++at) {
          int64_t plane = at / blocks, row = at % blocks * kColumn;
          int64_t to = row * space.stride(0, 1),
                  from = row * space.stride(1, 1);
          for (int d = 2; d < space.dim(); ++d) {
            int64_t index = plane % space.size(d);
            plane /= space.size(d);
            to += index * space.stride(0, d);
            from += index * space.stride(1, d);
          }
          int64_t rows = std::min(kColumn, space.size(1) - row);
          copy_short_rows(space, rows, c, dst + to, src + from);
        }
      });
}

// Rows whose elements lie side by side on both sides are bytes.
bool has_rows_of_bytes(const IterationSpace& space,
                       const Conversion& conversion) {
  auto unit = static_cast<int64_t>(element_size(conversion.from));
  return conversion.same && space.dim() > 1 && space.size(0) < kCopyGrain &&
         space.stride(0, 0) == unit && space.stride(1, 0) == unit;
}

void copy_rows_of_bytes(const IterationSpace& space,
                        char* dst,
                        const char* src) {
  static const CopyRowsFn copy_rows = TAEDA_ISA_TABLE(kCopyRows);
  int64_t width = space.size(0), height = space.size(1);
  int64_t bytes = width * space.stride(0, 0), grain = kCopyGrain / width + 1;
  parallel_for(0, space.numel() / width, grain, [&](int64_t b, int64_t e) {
    while (b < e) {
      int64_t plane = b / height, row = b % height;
      int64_t to = row * space.stride(0, 1), from = row * space.stride(1, 1);
      for (int d = 2; d < space.dim(); ++d) {
        int64_t index = plane % space.size(d);
        plane /= space.size(d);
        to += index * space.stride(0, d);
        from += index * space.stride(1, d);
      }
      int64_t rows = std::min(height - row, e - b);
      copy_rows(dst + to,
                space.stride(0, 1),
                src + from,
                space.stride(1, 1),
                rows,
                bytes);
      b += rows;
    }
  });
}

void convert_space(const IterationSpace& space,
                   Conversion conversion,
                   char* dst,
                   const char* src) {
  if (conversion.same &&
      copy_transposed(space, dst, src, element_size(conversion.from))) {
    return;
  }
  if (has_rows_of_bytes(space, conversion)) {
    return copy_rows_of_bytes(space, dst, src);
  }
  if (has_short_rows(space)) {
    return convert_short_rows(space, conversion, dst, src);
  }
  parallel_for(0, space.numel(), kCopyGrain, [&](int64_t begin, int64_t end) {
    OperandWalker in(space, 1, begin);
    OperandWalker out(space, 0, begin);
    // Both walk the same rows, so one advance of each covers the same count.
    Conversion c = conversion;
    for (int64_t left = end - begin; left > 0;) {
      int64_t count = std::min(left, space.size(0));
      int64_t so = 0, ss = 0, n = 0;
      in.advance_row(count, [&](int64_t o, int64_t s, int64_t m) {
        so = o;
        ss = s;
        n = m;
      });
      out.advance_row(n, [&](int64_t o, int64_t s, int64_t m) {
        c.run(src + so, ss, dst + o, s, m);
      });
      left -= n;
    }
  });
}

}  // namespace

void copy_elements(const TensorBase& dst, const TensorBase& src) {
  if (dst.numel() == 0) return;
  bool plain = dst.dtype() == src.dtype() && dst.is_contiguous() &&
               src.is_contiguous() && dst.sizes() == src.sizes();
  char* to = static_cast<char*>(dst.mutable_raw_data());
  const char* from = static_cast<const char*>(src.const_raw_data());
  if (to == from && plain) return;
  if (plain && dst.nbytes() < (size_t{1} << 18)) {
    std::memmove(to, from, dst.nbytes());
    return;
  }
  DimVector ds, ss;
  byte_strides(dst, ds);
  expanded_strides(src, dst.sizes(), ss);
  const int64_t* strides[] = {ds.data(), ss.data()};
  IterationSpace space(dst.sizes(), ArrayRef<const int64_t*>(strides, 2));
  convert_space(space, Conversion(src.dtype(), dst.dtype()), to, from);
}

namespace {

typedef uint64_t Signs __attribute__((vector_size(16)));

// The signs that conj and neg change, of the elements in 16 bytes.
Signs changed_signs(ScalarType t, bool conj, bool neg) {
  unsigned char bytes[sizeof(Signs)] = {};
  size_t size = element_size(real_type_of(t));
  for (size_t i = 0; i < sizeof(Signs); i += size) {
    bool imaginary = is_complex(t) && i / size % 2 == 1;
    if (imaginary ? conj != neg : neg) bytes[i + size - 1] = 0x80;
  }
  Signs signs;
  std::memcpy(&signs, bytes, sizeof(Signs));
  return signs;
}

}  // namespace

bool has_sign_bits(ScalarType t) {
  return is_complex(t) || (is_floating(t) && element_size(t) > 1);
}

void copy_changing_signs(const TensorBase& dst,
                         const TensorBase& src,
                         bool conj,
                         bool neg) {
  Signs signs = changed_signs(dst.dtype(), conj, neg);
  char* to = static_cast<char*>(dst.mutable_raw_data());
  const char* from = static_cast<const char*>(src.const_raw_data());
  constexpr int64_t kSize = sizeof(Signs);
  auto bytes = static_cast<int64_t>(dst.nbytes());
  parallel_for(0, bytes / kSize, kCopyGrain, [&](int64_t begin, int64_t end) {
    // Stores of characters might change what the lambda refers to.
    const Signs change = signs;
    const char* p = from + begin * kSize;
    char* q = to + begin * kSize;
    for (int64_t i = begin; i < end; ++i, p += kSize, q += kSize) {
      Signs v;
      std::memcpy(&v, p, kSize);
      v ^= change;
      std::memcpy(q, &v, kSize);
    }
  });
  for (int64_t at = bytes - bytes % kSize; at < bytes; ++at) {
    auto sign = reinterpret_cast<const char*>(&signs)[at % kSize];
    to[at] = static_cast<char>(from[at] ^ sign);
  }
}

void apply_lazy_bits(const TensorBase& t, bool conj, bool neg) {
  if (has_sign_bits(t.dtype())) return copy_changing_signs(t, t, conj, neg);
  if (!neg) return;
  visit_type(t.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* p = t.mutable_data<T>();
    for (int64_t i = 0, n = t.numel(); i < n; ++i) {
      if constexpr (math::Integer<T>) {
        p[i] = math::wrapping_negate(p[i]);
      } else if constexpr (!requires { p->imag(); }) {
        p[i] = T(-static_cast<float>(p[i]));
      }
    }
  });
}

ConvertFn convert_function(ScalarType from, ScalarType to) {
  int f = direct_index(from), t = direct_index(to);
  // Pointwise operators compute with these in their carriers.
  if (f < 0 && to == carrier(from)) {
    return rare_function<ConvertFn>(from, [](auto v) -> ConvertFn {
      return &convert_each<&widen<decltype(v)>>;
    });
  }
  if (t < 0 && from == carrier(to)) {
    return rare_function<ConvertFn>(to, [](auto v) -> ConvertFn {
      return &convert_each<&narrow<decltype(v)>>;
    });
  }
  if (from == kComplexDouble && to == kComplexHalf) {
    return &convert_each<&narrow_complex>;
  }
  if (f < 0 && t >= 0) return widening_function(from, to);
  if (f < 0 || t < 0) return nullptr;
  static const ConvertTable& table = TAEDA_ISA_TABLE(kConvertTable);
  return table[f][t];
}

void copy_strided(char* dst,
                  IntArrayRef dst_strides,
                  const char* src,
                  IntArrayRef src_strides,
                  IntArrayRef sizes,
                  ScalarType dtype) {
  DimVector ds(dst_strides), ss(src_strides);
  for (int64_t& s : ds) s *= static_cast<int64_t>(element_size(dtype));
  for (int64_t& s : ss) s *= static_cast<int64_t>(element_size(dtype));
  const int64_t* strides[] = {ds.data(), ss.data()};
  IterationSpace space(sizes, ArrayRef<const int64_t*>(strides, 2));
  if (space.numel() > 0)
    convert_space(space, Conversion(dtype, dtype), dst, src);
}

namespace {

bool is_zero(const char* element, size_t size) {
  return std::all_of(element, element + size, [](char c) { return c == 0; });
}

void zero_block(const TensorBase& dst) {
  char* to = static_cast<char*>(dst.mutable_raw_data());
  int64_t bytes = static_cast<int64_t>(dst.nbytes());
  parallel_for(0, bytes, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    std::memset(to + begin, 0, static_cast<size_t>(end - begin));
  });
}

// The elements of a dense tensor are one block, whatever the order of its dims.
void fill_block(const TensorBase& dst, const char* element) {
  if (is_zero(element, dst.itemsize())) return zero_block(dst);
  Conversion copy(dst.dtype(), dst.dtype());
  char* to = static_cast<char*>(dst.mutable_raw_data());
  auto size = static_cast<int64_t>(dst.itemsize());
  parallel_for(0, dst.numel(), kCopyGrain, [&](int64_t begin, int64_t end) {
    copy.run(element, 0, to + begin * size, size, end - begin);
  });
}

}  // namespace

void zero_fill(const TensorBase& dst) {
  if (dst.is_cpu() && dst.is_non_overlapping_and_dense()) {
    zero_block(dst);
  } else {
    fill_with(dst, int64_t{0});
  }
}

namespace native {

void launch_fill(const TensorBase& dst, const Scalar& value) {
  alignas(16) char element[16];
  value.store(dst.dtype(), element);
  if (dst.is_non_overlapping_and_dense()) return fill_block(dst, element);
  DimVector ds;
  byte_strides(dst, ds);
  DimVector zero(ds.size(), 0);
  const int64_t* strides[] = {ds.data(), zero.data()};
  IterationSpace space(dst.sizes(), ArrayRef<const int64_t*>(strides, 2));
  convert_space(space,
                Conversion(dst.dtype(), dst.dtype()),
                static_cast<char*>(dst.mutable_raw_data()),
                element);
}

}  // namespace native

}  // namespace taeda
