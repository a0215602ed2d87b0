#include <taeda/c10/cuda/memory_options.h>

#include <taeda/c10/util/check.h>

#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>

namespace taeda::cuda {

namespace {

constexpr size_t kMega = size_t{1} << 20;

std::string_view trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// The first part of a list, up to a separator outside of brackets, which are
// those of lists of divisions.
std::string_view take_part(std::string_view* rest, char separator) {
  size_t depth = 0, end = 0;
  for (; end < rest->size(); ++end) {
    char c = (*rest)[end];
    if (c == '[') ++depth;
    if (c == ']' && depth > 0) --depth;
    if (c == separator && depth == 0) break;
  }
  std::string_view part = rest->substr(0, end);
  rest->remove_prefix(end < rest->size() ? end + 1 : end);
  return trimmed(part);
}

template <class T>
T number(std::string_view name, std::string_view value) {
  T out{};
  auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), out);
  TAEDA_CHECK_AS(Value,
                 error == std::errc() && end == value.data() + value.size(),
                 "CUDA memory option ",
                 name,
                 ": expected a number, got '",
                 value,
                 "'");
  return out;
}

bool truth(std::string_view name, std::string_view value) {
  TAEDA_CHECK_AS(Value,
                 value == "True" || value == "False",
                 "CUDA memory option ",
                 name,
                 ": expected True or False, got '",
                 value,
                 "'");
  return value == "True";
}

double share(std::string_view name, std::string_view value) {
  auto out = number<double>(name, value);
  TAEDA_CHECK_AS(Value,
                 out > 0 && out <= 1,
                 "CUDA memory option ",
                 name,
                 ": expected a share above 0 and up to 1, got ",
                 value);
  return out;
}

size_t divisions(std::string_view name, std::string_view value) {
  auto out = number<size_t>(name, value);
  TAEDA_CHECK_AS(Value,
                 out == 0 || std::has_single_bit(out),
                 "CUDA memory option ",
                 name,
                 ": expected a power of two, got ",
                 value);
  return out;
}

// "4", or "[256:1,512:2,>:4]" with sizes in MB.
void add_divisions(MemoryOptions& out,
                   std::string_view name,
                   std::string_view value) {
  out.roundup_power2_divisions.clear();
  if (!value.starts_with('[')) {
    out.roundup_power2_divisions.emplace_back(SIZE_MAX, divisions(name, value));
    return;
  }
  TAEDA_CHECK_AS(Value,
                 value.ends_with(']'),
                 "CUDA memory option ",
                 name,
                 ": no ] in '",
                 value,
                 "'");
  std::string_view rest = value.substr(1, value.size() - 2);
  while (!rest.empty()) {
    std::string_view part = take_part(&rest, ',');
    std::string_view size = take_part(&part, ':');
    size_t most = size == ">" ? SIZE_MAX : number<size_t>(name, size) * kMega;
    out.roundup_power2_divisions.emplace_back(most, divisions(name, part));
  }
}

// PyTorch's options that are not here: what is their default is no change.
void refuse(std::string_view name, std::string_view value) {
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {
      {"graph_capture_record_stream_reuse", "False"},
      {"pinned_num_register_threads", "1"},
      {"pinned_reserve_segment_size_mb", "0"},
      {"pinned_use_background_threads", "False"},
      {"pinned_use_cuda_host_register", "False"},
      {"release_lock_on_cudamalloc", "False"},
  };
  for (auto [known, otherwise] : kDefaults) {
    if (name != known) continue;
    TAEDA_CHECK_AS(NotImplemented,
                   value == otherwise,
                   "CUDA memory option ",
                   name,
                   ":",
                   value,
                   " is not there yet");
    return;
  }
  TAEDA_CHECK(false, "Unrecognized CUDA memory option: ", name);
}

void set(MemoryOptions& out, std::string_view name, std::string_view value) {
  if (name == "expandable_segments") {
    out.expandable_segments = truth(name, value);
  } else if (name == "garbage_collection_threshold") {
    out.garbage_collection_threshold = share(name, value);
  } else if (name == "per_process_memory_fraction") {
    out.per_process_memory_fraction = share(name, value);
  } else if (name == "max_split_size_mb") {
    out.max_split_size = number<size_t>(name, value) * kMega;
    TAEDA_CHECK_AS(Value,
                   out.max_split_size > 20 * kMega,
                   "CUDA memory option max_split_size_mb: expected more than "
                   "20, got ",
                   value);
  } else if (name == "roundup_power2_divisions") {
    add_divisions(out, name, value);
  } else if (name == "backend") {
    TAEDA_CHECK_AS(Value,
                   value == "native" || value == "cudaMallocAsync",
                   "CUDA memory option backend: expected native, got '",
                   value,
                   "'");
    TAEDA_CHECK_AS(NotImplemented,
                   value == "native",
                   "CUDA memory option backend:cudaMallocAsync is not there "
                   "yet");
  } else {
    refuse(name, value);
  }
}

const MemoryOptions* of_environment() {
  for (const char* name : {"TAEDA_CUDA_ALLOC_CONF",
                           "PYTORCH_CUDA_ALLOC_CONF",
                           "PYTORCH_ALLOC_CONF"}) {
    const char* text = std::getenv(name);
    if (text != nullptr) {
      return new MemoryOptions(MemoryOptions::parse(text));
    }
  }
  return new MemoryOptions;
}

// What was set before is kept: somebody may be reading it.
std::atomic<const MemoryOptions*>& current() {
  static auto& made = *new std::atomic<const MemoryOptions*>(of_environment());
  return made;
}

}  // namespace

MemoryOptions MemoryOptions::parse(std::string_view text) {
  MemoryOptions out;
  out.text = text;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view value = take_part(&rest, ',');
    if (value.empty()) continue;
    std::string_view name = take_part(&value, ':');
    TAEDA_CHECK_AS(Value,
                   !value.empty(),
                   "CUDA memory option ",
                   name,
                   ": expected name:value in '",
                   text,
                   "'");
    set(out, name, trimmed(value));
  }
  return out;
}

size_t MemoryOptions::rounded(size_t bytes, size_t unit) const {
  for (auto [most, parts] : roundup_power2_divisions) {
    if (bytes > most) continue;
    if (parts <= 1 || bytes <= unit * parts) break;
    size_t step = std::bit_floor(bytes) / parts;
    return (bytes + step - 1) / step * step;
  }
  return (bytes + unit - 1) / unit * unit;
}

const MemoryOptions& memory_options() {
  return *current().load(std::memory_order_acquire);
}

void set_memory_options(std::string_view text) {
  current().store(new MemoryOptions(MemoryOptions::parse(text)));
}

}  // namespace taeda::cuda
