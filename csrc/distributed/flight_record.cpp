#include <taeda/csrc/distributed/flight_record.h>

#include <array>
#include <cstdlib>

namespace taeda::distributed {

namespace {

int64_t now() {
  using std::chrono::nanoseconds;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(since).count();
}

// Entries that are kept; 0 switches the record off.
size_t most_entries() {
  for (const char* name : {"TAEDA_FR_BUFFER_SIZE",
                           "TORCH_FR_BUFFER_SIZE",
                           "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
    if (const char* value = std::getenv(name)) {
      return std::min<size_t>(std::strtoul(value, nullptr, 10), 1u << 20);
    }
  }
  return 2000;
}

// Set once, by the module that gathers.
std::mutex reporter_mutex;
Reporter reporter;

}  // namespace

void set_reporter(Reporter given) {
  std::lock_guard lock(reporter_mutex);
  reporter = std::move(given);
}

std::string report_of(const std::string& group) {
  Reporter found;
  {
    std::lock_guard lock(reporter_mutex);
    found = reporter;
  }
  return found ? found(group) : "";
}

const char* name_of(FlightEntry::State state) {
  constexpr std::array names{"scheduled", "started", "completed", "failed"};
  return names[static_cast<size_t>(state)];
}

FlightRecord::FlightRecord() : ring_(most_entries()) {}

FlightRecord& FlightRecord::instance() {
  static auto& record = *new FlightRecord();
  return record;
}

uint64_t FlightRecord::add(FlightEntry entry) {
  std::lock_guard lock(mutex_);
  entry.id = ++next_;
  entry.created = now();
  if (!ring_.empty()) ring_[entry.id % ring_.size()] = std::move(entry);
  return next_;
}

FlightEntry* FlightRecord::find(uint64_t id) {
  if (ring_.empty()) return nullptr;
  FlightEntry& entry = ring_[id % ring_.size()];
  return entry.id == id ? &entry : nullptr;
}

void FlightRecord::start(uint64_t id) {
  std::lock_guard lock(mutex_);
  if (FlightEntry* entry = find(id)) {
    entry->state = FlightEntry::State::Started;
    entry->started = now();
  }
}

void FlightRecord::end(uint64_t id, bool well) {
  using State = FlightEntry::State;
  std::lock_guard lock(mutex_);
  if (FlightEntry* entry = find(id)) {
    entry->state = well ? State::Completed : State::Failed;
    entry->ended = now();
  }
}

std::vector<FlightEntry> FlightRecord::entries() const {
  std::lock_guard lock(mutex_);
  std::vector<FlightEntry> found;
  for (size_t i = 1; i <= ring_.size(); ++i) {
    const FlightEntry& entry = ring_[(next_ + i) % ring_.size()];
    if (entry.id != 0) found.push_back(entry);
  }
  return found;
}

void FlightRecord::reset(size_t most) {
  std::lock_guard lock(mutex_);
  ring_.assign(most, {});
}

}  // namespace taeda::distributed
