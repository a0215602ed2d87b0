#include <taeda/aten/native/strided_copy.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/geometry.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 32768;

ScalarType carrier_of(size_t itemsize) {
  switch (itemsize) {
    case 1:
      return kByte;
    case 2:
      return kShort;
    case 4:
      return kInt;
    case 8:
      return kLong;
    default:
      return kComplexDouble;
  }
}

DimVector in_bytes(IntArrayRef strides, size_t itemsize) {
  DimVector out(strides);
  for (int64_t& s : out) s *= static_cast<int64_t>(itemsize);
  return out;
}

}  // namespace

void copy_strided(char* dst,
                  IntArrayRef dst_strides,
                  const char* src,
                  IntArrayRef src_strides,
                  IntArrayRef sizes,
                  size_t itemsize) {
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  DimVector ds = in_bytes(dst_strides, itemsize);
  DimVector ss = in_bytes(src_strides, itemsize);
  const int64_t* strides[] = {ds.data(), ss.data()};
  IterationSpace space(sizes, ArrayRef<const int64_t*>(strides, 2));
  ScalarType type = carrier_of(itemsize);
  ConvertFn move = convert_function(type, type);
  parallel_for(0, space.numel(), kGrain, [&](int64_t begin, int64_t end) {
    OperandWalker to(space, 0, begin), from(space, 1, begin);
    for (int64_t left = end - begin; left > 0;) {
      int64_t so = 0, ss0 = 0, n = 0;
      from.advance_row(left, [&](int64_t o, int64_t s, int64_t m) {
        so = o;
        ss0 = s;
        n = m;
      });
      to.advance_row(n, [&](int64_t o, int64_t s, int64_t m) {
        move(src + so, ss0, dst + o, s, m);
      });
      left -= n;
    }
  });
}

}  // namespace taeda::native
