#include <taeda/aten/native/cpu/kernels/small_cholesky.h>
#include <taeda/aten/native/cpu/kernels/small_lu.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
constexpr SmallSystems<T> kSystems = {kLaneCount<T>,
                                      by_size<Lu, 4, T>,
                                      by_size<Det</*Log=*/false>, 4, T>,
                                      by_size<Det</*Log=*/true>, 0, T>,
                                      by_size<Solve, 4, T>,
                                      by_size<Cholesky, 4, T>,
                                      by_size<Triangular, 0, T>};

}  // namespace

extern const SmallTable<SmallSystems> kSmallSystems = {
    kSystems<float>,
    kSystems<double>,
    kSystems<complex<float>>,
    kSystems<complex<double>>};

TAEDA_ISA_END
