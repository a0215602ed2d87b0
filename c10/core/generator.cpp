#include <taeda/c10/core/generator.h>

#include <cmath>
#include <cstring>
#include <random>

namespace taeda {
namespace {

// The bytes of PyTorch's saved CPU generator state (torch.get_rng_state()),
// found by looking at states: fields, sizes and gaps are those of this struct.
struct SavedState {
  uint64_t seed;
  int32_t left;    // words left in the block, plus one
  int32_t seeded;  // always 1
  uint64_t next;   // words used; 0 with left == 1 means: just seeded
  uint64_t words[Mt19937::kWords];
  // A double normal value is cached in y; older writers, whose state ends
  // after `normal_valid`, kept a pair (angle / 2 pi, uniform, radius).
  double normal_x;
  double normal_y;
  double normal_rho;
  int32_t normal_valid;
  int32_t gap;
  float float_normal;
  uint8_t float_normal_valid;
  uint8_t tail[3];
};
static_assert(sizeof(SavedState) == CpuGeneratorImpl::kStateSize);
constexpr size_t kOldStateSize = offsetof(SavedState, float_normal);

void check_engine_state(const SavedState& s) {
  const bool fresh = s.left == 1 && s.next == 0;
  const bool running = s.next >= 1 && s.next <= Mt19937::kWords &&
                       s.left == Mt19937::kWords + 1 - static_cast<int>(s.next);
  TAEDA_CHECK(s.seeded == 1 && (fresh || running),
              "set_state: the bytes are no MT19937 state (left ",
              s.left,
              ", next ",
              s.next,
              ")");
}

}  // namespace

uint64_t GeneratorImpl::seed() {
  std::random_device entropy;
  const uint64_t high = entropy();
  const uint64_t value = high << 32 | entropy();
  manual_seed(value);
  return value;
}

CpuGeneratorImpl::CpuGeneratorImpl(uint64_t seed)
    : GeneratorImpl(Device(DeviceType::CPU)),
      engine_(seed),
      initial_seed_(seed) {}

void CpuGeneratorImpl::manual_seed(uint64_t seed) {
  engine_.reseed(seed);
  initial_seed_ = seed;
  cached_normal_.reset();
  cached_float_normal_.reset();
}

void CpuGeneratorImpl::get_state(uint8_t* bytes) const {
  SavedState s;
  std::memset(&s, 0, sizeof(s));
  s.seed = initial_seed_;
  s.left = engine_.fresh() ? 1 : Mt19937::kWords + 1 - engine_.used();
  s.seeded = 1;
  s.next = engine_.fresh() ? 0 : static_cast<uint64_t>(engine_.used());
  for (int i = 0; i < Mt19937::kWords; ++i) s.words[i] = engine_.words()[i];
  s.normal_y = cached_normal_.value_or(0.0);
  s.normal_valid = cached_normal_.has_value();
  s.float_normal = cached_float_normal_.value_or(0.0f);
  s.float_normal_valid = cached_float_normal_.has_value();
  std::memcpy(bytes, &s, sizeof(s));
}

void CpuGeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  TAEDA_CHECK(size == kStateSize || size == kOldStateSize,
              "set_state: expected a CPU state of ",
              kStateSize,
              " or ",
              kOldStateSize,
              " bytes, got ",
              size);
  SavedState s;
  std::memset(&s, 0, sizeof(s));
  std::memcpy(&s, bytes, size);
  check_engine_state(s);
  uint32_t words[Mt19937::kWords];
  for (int i = 0; i < Mt19937::kWords; ++i) {
    words[i] = static_cast<uint32_t>(s.words[i]);
  }
  const bool fresh = s.next == 0;
  engine_.restore(
      words, fresh ? Mt19937::kWords : static_cast<int32_t>(s.next), fresh);
  initial_seed_ = s.seed;
  cached_normal_.reset();
  cached_float_normal_.reset();
  if (s.normal_valid) {
    constexpr double kTwoPi = 6.283185307179586;
    cached_normal_ = size == kStateSize
                         ? s.normal_y
                         : s.normal_rho * std::sin(kTwoPi * s.normal_x);
  }
  if (s.float_normal_valid) cached_float_normal_ = s.float_normal;
}

IntrusivePtr<GeneratorImpl> CpuGeneratorImpl::clone() const {
  auto copy = make_intrusive<CpuGeneratorImpl>(initial_seed_);
  copy->engine_ = engine_;
  copy->cached_normal_ = cached_normal_;
  copy->cached_float_normal_ = cached_float_normal_;
  return copy;
}

CpuGeneratorImpl& default_cpu_generator() {
  // Never destroyed: threads may still draw while the process exits.
  static CpuGeneratorImpl* generator = new CpuGeneratorImpl();
  return *generator;
}

Generator make_cpu_generator(uint64_t seed) {
  return make_intrusive<CpuGeneratorImpl>(seed);
}

CpuGeneratorImpl& check_cpu_generator(const Generator& generator) {
  if (!generator) return default_cpu_generator();
  TAEDA_CHECK(generator->device().is_cpu(),
              "expected a generator for the cpu device, got one for ",
              generator->device());
  return static_cast<CpuGeneratorImpl&>(*generator);
}

}  // namespace taeda
