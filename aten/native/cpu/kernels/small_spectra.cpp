#include <taeda/aten/native/cpu/kernels/small_eigh.h>
#include <taeda/aten/native/cpu/kernels/small_qr.h>
#include <taeda/aten/native/cpu/kernels/small_svd.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
constexpr SmallSpectra<T> kSpectra = {
    kLaneCount<T>, by_size<Qr, 0, T>, by_size<Eigh, 3, T>, by_size<Svd, 0, T>};

}  // namespace

extern const SmallTable<SmallSpectra> kSmallSpectra = {
    kSpectra<float>,
    kSpectra<double>,
    kSpectra<complex<float>>,
    kSpectra<complex<double>>};

TAEDA_ISA_END
