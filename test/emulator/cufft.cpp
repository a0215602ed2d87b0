// cuFFT's functions, under their names: every element added up for every other
// one, in double. Only dense memory has plans, of half only powers of two. What
// is read by a transform to real numbers of several dims is used up, as by the
// library.
#include "emulator.h"

#include <taeda/c10/cuda/cufft.h>
#include <taeda/c10/util/half.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <numbers>
#include <vector>

using namespace emulator;
namespace cufft = taeda::cuda::cufft;

#define EXPORT extern "C" __attribute__((visibility("default"))) cufft::Status

namespace {

constexpr cufft::Status kInvalidPlan = 1, kInvalidValue = 4, kNotSupported = 16;
constexpr size_t kScratch = 1024;

using Number = std::complex<double>;
using Sizes = std::vector<int64_t>;

struct Plan {
  Sizes sizes;
  int64_t batches = 0;
  int in = 0, out = 0;
  bool own_workspace = true;
  void* stream = nullptr;
  void* workspace = nullptr;
};
std::map<int, Plan>& plans() {
  static auto& all = *new std::map<int, Plan>;
  return all;
}

bool is_real(int type) {
  return type == cufft::kReal16 || type == cufft::kReal32 ||
         type == cufft::kReal64;
}
int precision(int type) { return is_real(type) ? type : type - 4; }
size_t part_size(int type) {
  int p = precision(type);
  return p == cufft::kReal64 ? 8 : p == cufft::kReal32 ? 4 : 2;
}
size_t size_of(int type) { return part_size(type) * (is_real(type) ? 1 : 2); }

double part(int type, const char* p) {
  if (precision(type) == cufft::kReal64) {
    double value;
    std::memcpy(&value, p, 8);
    return value;
  }
  if (precision(type) == cufft::kReal32) {
    float value;
    std::memcpy(&value, p, 4);
    return value;
  }
  taeda::Half value;
  std::memcpy(&value, p, 2);
  return static_cast<float>(value);
}
void put(int type, char* p, double value) {
  auto single = static_cast<float>(value);
  taeda::Half half(single);
  if (precision(type) == cufft::kReal64) std::memcpy(p, &value, 8);
  if (precision(type) == cufft::kReal32) std::memcpy(p, &single, 4);
  if (precision(type) == cufft::kReal16) std::memcpy(p, &half, 2);
}

std::vector<Number> read(int type, const char* p, int64_t count) {
  size_t bytes = size_of(type) * static_cast<size_t>(count);
  std::vector<Number> all(static_cast<size_t>(count));
  if (!touch(p, bytes, false)) return all;
  for (Number& n : all) {
    double real = part(type, p);
    n = {real, is_real(type) ? 0 : part(type, p + part_size(type))};
    p += size_of(type);
  }
  return all;
}
void write(int type, char* p, const std::vector<Number>& all) {
  if (!touch(p, size_of(type) * all.size(), true)) return;
  for (const Number& n : all) {
    put(type, p, n.real());
    if (!is_real(type)) put(type, p + part_size(type), n.imag());
    p += size_of(type);
  }
}

// Along dim d of an array of these sizes.
void along(std::vector<Number>& all, const Sizes& sizes, size_t d, int sign) {
  int64_t inner = 1, n = sizes[d];
  for (size_t k = d + 1; k < sizes.size(); ++k) inner *= sizes[k];
  auto count = static_cast<int64_t>(all.size());
  std::vector<Number> made(all.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = i / inner % n, first = i - place * inner;
    Number sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      double angle = sign * 2 * std::numbers::pi *
                     static_cast<double>(k * place % n) /
                     static_cast<double>(n);
      sum +=
          all[static_cast<size_t>(first + k * inner)] * std::polar(1.0, angle);
    }
    made[static_cast<size_t>(i)] = sum;
  }
  all = std::move(made);
}

int64_t product(const Sizes& sizes) {
  int64_t count = 1;
  for (int64_t n : sizes) count *= n;
  return count;
}

// Rows of n from rows of half of them, the rest being their conjugates.
std::vector<Number> whole_rows(const std::vector<Number>& half, int64_t n) {
  int64_t kept = n / 2 + 1, rows = static_cast<int64_t>(half.size()) / kept;
  std::vector<Number> all;
  for (int64_t r = 0; r < rows; ++r) {
    const Number* row = half.data() + r * kept;
    for (int64_t k = 0; k < n; ++k) {
      Number value = k < kept ? row[k] : std::conj(row[n - k]);
      // What cannot be there is not read.
      if (k == 0 || 2 * k == n) value = value.real();
      all.push_back(value);
    }
  }
  return all;
}

void run_batch(const Plan& plan, char* in, char* out, int sign) {
  Sizes sizes = plan.sizes, half = plan.sizes;
  int64_t last = sizes.back();
  half.back() = last / 2 + 1;
  bool to_real = is_real(plan.out);
  std::vector<Number> all = read(plan.in, in, product(to_real ? half : sizes));
  for (size_t d = 0; d + 1 < sizes.size(); ++d) {
    along(all, to_real ? half : sizes, d, sign);
  }
  if (to_real) all = whole_rows(all, last);
  along(all, sizes, sizes.size() - 1, sign);
  if (is_real(plan.in)) {
    std::vector<Number> kept;
    for (size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int64_t>(i) % last <= last / 2) kept.push_back(all[i]);
    }
    all = std::move(kept);
  }
  write(plan.out, out, all);
  if (to_real && sizes.size() > 1) {
    write(plan.in, in, std::vector<Number>(product(half), Number(1e30, 0)));
  }
}

}  // namespace

EXPORT cufftCreate(cufft::Plan* out) {
  std::lock_guard guard(Machine::get().mutex);
  static int next = 1;
  *out = next++;
  plans()[*out];
  return 0;
}
EXPORT cufftDestroy(cufft::Plan plan) {
  std::lock_guard guard(Machine::get().mutex);
  return plans().erase(plan) == 1 ? 0 : kInvalidPlan;
}
EXPORT cufftSetAutoAllocation(cufft::Plan plan, int on) {
  std::lock_guard guard(Machine::get().mutex);
  plans().at(plan).own_workspace = on != 0;
  return 0;
}
EXPORT cufftXtMakePlanMany(cufft::Plan plan,
                           int rank,
                           long long* sizes,
                           long long* in_sizes,
                           long long,
                           long long,
                           int in,
                           long long* out_sizes,
                           long long,
                           long long,
                           int out,
                           long long batches,
                           size_t* workspace,
                           int computes) {
  std::lock_guard guard(Machine::get().mutex);
  Plan& made = plans().at(plan);
  bool dense = in_sizes == nullptr && out_sizes == nullptr;
  bool types = precision(in) == precision(out) &&
               !(is_real(in) && is_real(out)) && !is_real(computes) &&
               precision(computes) == precision(in);
  if (!dense || !types || rank < 1 || rank > 3 || batches < 1) {
    return kInvalidValue;
  }
  made.sizes.assign(sizes, sizes + rank);
  for (int64_t n : made.sizes) {
    if (n < 1) return kInvalidValue;
    bool power = (n & (n - 1)) == 0;
    if (precision(in) == cufft::kReal16 && !power) return kNotSupported;
  }
  made.batches = batches;
  made.in = in;
  made.out = out;
  *workspace = made.sizes.back() > 8 ? kScratch : 0;
  return 0;
}
EXPORT cufftSetStream(cufft::Plan plan, void* stream) {
  std::lock_guard guard(Machine::get().mutex);
  plans().at(plan).stream = stream;
  return 0;
}
EXPORT cufftSetWorkArea(cufft::Plan plan, void* workspace) {
  std::lock_guard guard(Machine::get().mutex);
  plans().at(plan).workspace = workspace;
  return 0;
}
EXPORT cufftXtExec(cufft::Plan number, void* in, void* out, int sign) {
  std::lock_guard guard(Machine::get().mutex);
  if (!plans().contains(number)) return kInvalidPlan;
  Plan plan = plans().at(number);
  bool needs = plan.sizes.back() > 8;
  bool wrong =
      (is_real(plan.in) && sign > 0) || (is_real(plan.out) && sign < 0);
  if (wrong || plan.own_workspace || (needs && plan.workspace == nullptr)) {
    return kInvalidValue;
  }
  auto run = [plan, in, out, sign, needs]() -> Result {
    Opened opened;
    Machine::get().running = "cufftXtExec";
    Machine::get().reported = false;
    if (needs && touch(plan.workspace, kScratch, true)) {
      std::memset(plan.workspace, 0x5a, kScratch);
    }
    Sizes half = plan.sizes;
    half.back() = half.back() / 2 + 1;
    int64_t reads = product(is_real(plan.out) ? half : plan.sizes);
    int64_t writes = product(is_real(plan.in) ? half : plan.sizes);
    for (int64_t b = 0; b < plan.batches; ++b) {
      run_batch(plan,
                static_cast<char*>(in) +
                    b * reads * static_cast<int64_t>(size_of(plan.in)),
                static_cast<char*>(out) +
                    b * writes * static_cast<int64_t>(size_of(plan.out)),
                sign);
    }
    Machine::get().running.clear();
    return 0;
  };
  Result status = Machine::get().enqueue(plan.stream, {"transform", run});
  return status == 0 ? 0 : 6;  // CUFFT_EXEC_FAILED
}
