#include <taeda/c10/cuda/generator.h>

#include <taeda/c10/cuda/stream.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace taeda::cuda {

namespace {

constexpr int64_t kThreadsOfBlock = 256;

// One for each device, made when it is first asked for.
struct Made {
  std::once_flag once;
  Generator generator;
};
Made& made_for(int device) {
  static auto& all =
      *new std::deque<Made>(static_cast<size_t>(std::max(device_count(), 1)));
  check_device("default_generator", device);
  return all[static_cast<size_t>(device)];
}

uint64_t seed_of_cpu() {
  CpuGeneratorImpl& cpu = default_cpu_generator();
  std::lock_guard guard(cpu.mutex());
  return cpu.initial_seed();
}

}  // namespace

void CudaGeneratorImpl::manual_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

void CudaGeneratorImpl::get_state(uint8_t* bytes) const {
  std::memcpy(bytes, &seed_, sizeof(seed_));
  std::memcpy(bytes + sizeof(seed_), &offset_, sizeof(offset_));
}

void CudaGeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  TAEDA_CHECK(size == kStateSize || size == sizeof(seed_),
              "RNG state is wrong size: expected ",
              kStateSize,
              " bytes, got ",
              size);
  uint64_t offset = 0;
  if (size == kStateSize) {
    std::memcpy(&offset, bytes + sizeof(seed_), sizeof(offset));
  }
  TAEDA_CHECK(offset % kBlock == 0,
              "RNG state: offset must be a multiple of 4, got ",
              offset);
  std::memcpy(&seed_, bytes, sizeof(seed_));
  offset_ = offset;
}

IntrusivePtr<GeneratorImpl> CudaGeneratorImpl::clone() const {
  auto copy = make_intrusive<CudaGeneratorImpl>(device().index, seed_);
  copy->offset_ = offset_;
  return copy;
}

uint64_t CudaGeneratorImpl::take(uint64_t words) {
  uint64_t before = offset_;
  offset_ += (words + kBlock - 1) / kBlock * kBlock;
  return before;
}

void CudaGeneratorImpl::record(uint64_t number, RecordedDraws* draws) {
  std::erase_if(recorded_, [&](const auto& r) { return r.first == number; });
  if (draws != nullptr) recorded_.emplace_back(number, draws);
}

RecordedDraws* CudaGeneratorImpl::recorded(uint64_t number) const {
  for (auto [known, draws] : recorded_) {
    if (known == number) return draws;
  }
  return nullptr;
}

CudaGeneratorImpl& default_generator(int device) {
  Made& made = made_for(device);
  std::call_once(made.once, [&] {
    made.generator = make_intrusive<CudaGeneratorImpl>(device, seed_of_cpu());
  });
  return static_cast<CudaGeneratorImpl&>(*made.generator);
}

Draws take_words(const Generator& given, int device, uint64_t words) {
  TAEDA_CHECK(!given || given->device().is_cuda(),
              "Expected a 'cuda' device type for generator but found '",
              given ? given->device().str() : "",
              "'");
  CudaGeneratorImpl& generator = given ? static_cast<CudaGeneratorImpl&>(*given)
                                       : default_generator(device);
  words = (words + CudaGeneratorImpl::kBlock - 1) / CudaGeneratorImpl::kBlock *
          CudaGeneratorImpl::kBlock;
  Draws draws;
  std::lock_guard guard(generator.mutex());
  if (uint64_t number = recording_of(current_stream(device)); number != 0) {
    RecordedDraws* recorded = generator.recorded(number);
    TAEDA_CHECK(recorded != nullptr,
                "CUDAGraph: a generator that draws in a capture must be "
                "registered before: graph.register_generator_state(generator)");
    draws.state = recorded->state;
    draws.offset = std::exchange(recorded->words, recorded->words + words);
    return draws;
  }
  draws.seed = generator.initial_seed();
  draws.offset = generator.take(words);
  return draws;
}

Draws take_draws(const Generator& given,
                 int device,
                 int64_t count,
                 int per_block,
                 int64_t blocks_each) {
  const GpuProperties& p = properties_of(device);
  int64_t resident = p.max_threads_per_multiprocessor / kThreadsOfBlock;
  int64_t most = std::max<int64_t>(p.multiprocessors * resident, 1);
  int64_t blocks = (count + kThreadsOfBlock - 1) / kThreadsOfBlock;
  int64_t threads =
      std::max<int64_t>(std::min(blocks, most), 1) * kThreadsOfBlock;
  int64_t turn = threads * per_block;
  auto words = static_cast<uint64_t>((count + turn - 1) / turn * blocks_each) *
               CudaGeneratorImpl::kBlock;
  Draws draws = take_words(given, device, words);
  draws.threads = threads;
  return draws;
}

}  // namespace taeda::cuda
