#include <taeda/aten/native/cpu/fft_convolution.h>
#include <taeda/aten/native/cpu/fft_large.h>
#include <taeda/aten/native/cpu/fft_lines.h>
#include <taeda/aten/native/cpu/isa_table.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>
#include <tuple>
#include <utility>

namespace taeda::native {

template <class C>
const FftKernels<C>& fft_kernels() {
  const FftTable& table = TAEDA_ISA_TABLE(kFftTable);
  if constexpr (sizeof(C) == 4) {
    return table.f32;
  } else {
    return table.f64;
  }
}
template const FftKernels<float>& fft_kernels();
template const FftKernels<double>& fft_kernels();

namespace {

// The radices of n up to `most`, the first stage's first; what is left of n is
// in `rest`.
std::vector<int64_t> radices_of(int64_t n, int64_t most, int64_t& rest) {
  std::vector<int64_t> found;
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  // As few stages as radices up to 16 allow.
  for (int64_t stages = (twos + 3) / 4; stages > 0; --stages) {
    int64_t here = (twos + stages - 1) / stages;
    found.push_back(int64_t{1} << here);
    twos -= here;
  }
  for (int64_t r : {5, 3}) {
    for (; n % r == 0; n /= r) found.push_back(r);
  }
  for (int64_t r = 7; r <= most && n > 1; r += 2) {
    for (; n % r == 0; n /= r) found.push_back(r);
  }
  rest = n;
  if (found.empty() && n == 1) found.push_back(1);
  return found;
}

template <class C>
FftView<C> rows_of(C* p, int64_t numbers, int64_t row) {
  return {p, p + numbers, row, 1};
}
}  // namespace

bool has_small_factors(int64_t n, int64_t most) {
  int64_t rest = 1;
  radices_of(n, most, rest);
  return rest == 1;
}

RootsOfUnity::RootsOfUnity(int64_t n)
    : re(static_cast<size_t>(n)), im(static_cast<size_t>(n)) {
  auto set = [&](int64_t k, double c, double s) {
    re[static_cast<size_t>(k)] = c;
    im[static_cast<size_t>(k)] = s;
  };
  auto cosine = [&](int64_t k) { return re[static_cast<size_t>(k)]; };
  auto sine = [&](int64_t k) { return im[static_cast<size_t>(k)]; };
  int64_t own = n % 4 == 0 ? n / 8 : n % 2 == 0 ? n / 4 : n / 2;
  double step = 2 * std::numbers::pi / static_cast<double>(n);
  for (int64_t k = 0; k <= own && k < n; ++k) {
    double angle = step * static_cast<double>(k);
    set(k, std::cos(angle), -std::sin(angle));
  }
  if (n % 4 == 0) {
    for (int64_t k = n / 8 + 1; k <= n / 4; ++k)
      set(k, -sine(n / 4 - k), -cosine(n / 4 - k));
  }
  if (n % 2 == 0) {
    for (int64_t k = n / 4 + 1; k <= n / 2; ++k)
      set(k, -cosine(n / 2 - k), sine(n / 2 - k));
  }
  for (int64_t k = n / 2 + 1; k < n; ++k) set(k, cosine(n - k), -sine(n - k));
}

template <class C>
LineTransform<C>::LineTransform(int64_t n, bool single) : n_(n) {
  int64_t most = single ? kMostSmall : kMostRadix;
  if (!has_small_factors(n, most)) {
    convolution_ = std::make_shared<const LineConvolution<C>>(n);
    return;
  }
  if (single) large_ = LargeTransform<C>::of(n);
  if (large_) return;
  int64_t first = single ? single_radix(n) : 0, rest = 1;
  std::vector<int64_t> radices =
      radices_of(n / std::max<int64_t>(first, 1), most, rest);
  if (first > 0) radices.insert(radices.begin(), first);
  add_stages(radices, first > 0);
}

template <class C>
int64_t LineTransform<C>::single_radix(int64_t n) {
  constexpr int64_t kLeast = 16 / sizeof(C);
  for (int64_t r = fft_kernels<C>().width; r >= kLeast; r /= 2) {
    if (n % r == 0 && n / r >= r) return r;
  }
  return 0;
}

template <class C>
void LineTransform<C>::add_stages(const std::vector<int64_t>& radices,
                                  bool single) {
  RootsOfUnity roots(n_);
  int64_t done = 1;
  for (int64_t r : radices) {
    int64_t parts = n_ / done / r;
    bool first = single && done == 1;
    places_.push_back({r, parts, turns_.size(), first});
    for (const auto* part : {&roots.re, &roots.im}) {
      auto turn = [&](int64_t k) {
        turns_.push_back(static_cast<C>((*part)[static_cast<size_t>(k)]));
      };
      for (int64_t p = 0; p < parts; ++p) {
        for (int64_t k = 1; k < r && !first; ++k) turn(p * k * done);
      }
      for (int64_t k = 1; k < r && first; ++k) {
        for (int64_t p = 0; p < parts; ++p) turn(p * k);
      }
    }
    for (const auto* part : {&roots.re, &roots.im}) {
      for (int64_t k = 0; k < r; ++k)
        turns_.push_back(
            static_cast<C>((*part)[static_cast<size_t>(k * (n_ / r))]));
    }
    done *= r;
  }
}

template <class C>
FftStage<C> LineTransform<C>::stage_at(const Place& place) const {
  FftStage<C> stage;
  stage.radix = place.radix;
  stage.parts = place.parts;
  int64_t each = stage.parts * (stage.radix - 1);
  stage.re = turns_.data() + place.begin;
  stage.im = stage.re + each;
  stage.root_re = stage.im + each;
  stage.root_im = stage.root_re + stage.radix;
  return stage;
}

template <class C>
size_t LineTransform<C>::numbers() const {
  if (large_) return large_->numbers();
  return convolution_ ? convolution_->numbers() : turns_.size();
}

template <class C>
int64_t LineTransform<C>::scratch(int64_t lanes) const {
  if (large_) return 0;
  return convolution_ ? convolution_->scratch() : 4 * n_ * lanes;
}

template <class C>
void LineTransform<C>::run(const FftView<const C>& in,
                           const FftView<C>& out,
                           int64_t lanes,
                           double factor,
                           C* scratch) const {
  if (large_) return large_->run(in, out, factor);
  if (convolution_) return convolution_->run(in, out, factor, scratch);
  const FftKernels<C>& kernels = fft_kernels<C>();
  FftView<const C> from = in;
  int64_t done = 1, size = n_ * lanes;
  for (size_t i = 0; i < places_.size(); ++i) {
    FftStage<C> stage = stage_at(places_[i]);
    stage.rows = 1;
    stage.lanes = lanes * done;
    FftView<C> to = rows_of(scratch + (i % 2) * 2 * size, size, lanes * done);
    if (i + 1 == places_.size()) {
      stage.factor = static_cast<C>(factor);
      to = out;
      if (out.row == lanes * out.unit) {
        to.row *= done;
      } else {
        stage.rows = done;
        stage.lanes = lanes;
        if (i > 0) from.row = lanes;
      }
    }
    (places_[i].first ? kernels.first : kernels.stage)(stage, from, to);
    done *= stage.radix;
    from = read(to);
    from.row = lanes * done;
  }
}

template class LineTransform<float>;
template class LineTransform<double>;

template <class C>
LinePlan<C>::LinePlan(int64_t n, bool halved, bool single)
    : length(halved ? n / 2 : n), transform(length, single) {
  if (!halved) return;
  RootsOfUnity roots(n);
  for (int64_t k = 0; k < length; ++k) {
    roots_re.push_back(static_cast<C>(roots.re[static_cast<size_t>(k)]));
    roots_im.push_back(static_cast<C>(roots.im[static_cast<size_t>(k)]));
  }
}

namespace {

using PlanKey = std::tuple<int64_t, bool, bool>;

// The plans used last, the newest first.
template <class C>
class PlanCache {
 public:
  using Plan = std::shared_ptr<const LinePlan<C>>;

  Plan find(const PlanKey& key) {
    std::lock_guard lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->first != key) continue;
      kept_.splice(kept_.begin(), kept_, it);
      return it->second;
    }
    return nullptr;
  }
  void add(const PlanKey& key, Plan plan) {
    if (plan->numbers() > kMostNumbers) return;
    std::lock_guard lock(mutex_);
    numbers_ += plan->numbers();
    kept_.emplace_front(key, std::move(plan));
    while (kept_.size() > kMostPlans || numbers_ > kMostNumbers) {
      numbers_ -= kept_.back().second->numbers();
      kept_.pop_back();
    }
  }

 private:
  static constexpr size_t kMostPlans = 32, kMostNumbers = size_t{1} << 23;

  std::mutex mutex_;  // guards all that follows
  std::list<std::pair<PlanKey, Plan>> kept_;
  size_t numbers_ = 0;
};

}  // namespace

template <class C>
std::shared_ptr<const LinePlan<C>> line_plan(int64_t n,
                                             bool halved,
                                             bool single) {
  // Never destroyed: threads may outlive the end of the program's statics.
  static auto& cache = *new PlanCache<C>;
  PlanKey key{n, halved, single};
  auto plan = cache.find(key);
  if (plan == nullptr) {
    plan = std::make_shared<const LinePlan<C>>(n, halved, single);
    cache.add(key, plan);
  }
  return plan;
}
template std::shared_ptr<const LinePlan<float>> line_plan(int64_t, bool, bool);
template std::shared_ptr<const LinePlan<double>> line_plan(int64_t, bool, bool);

}  // namespace taeda::native
