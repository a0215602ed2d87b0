#include <taeda/csrc/distributed/flight_record.h>
#include <taeda/csrc/distributed/heartbeat.h>

#include <cstdio>
#include <cstdlib>

namespace taeda::distributed {

namespace {

// Calls that are told before the end.
constexpr size_t kTold = 10;

std::string last_calls() {
  std::string text;
  const auto entries = FlightRecord::instance().entries();
  const size_t first = entries.size() > kTold ? entries.size() - kTold : 0;
  for (size_t i = first; i < entries.size(); ++i) {
    const FlightEntry& e = entries[i];
    text += str_cat("\n  ",
                    describe(e.head),
                    " in group '",
                    e.group,
                    "' at ",
                    e.place,
                    ": ",
                    name_of(e.state));
  }
  return text.empty() ? " none" : text;
}

}  // namespace

Heartbeat::Heartbeat(std::string who, Millis limit)
    : who_(std::move(who)), limit_(limit), last_(Clock::now()) {
  thread_ = std::thread([this] { watch(); });
}

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::beat() {
  std::lock_guard lock(mutex_);
  last_ = Clock::now();
}

void Heartbeat::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Heartbeat::watch() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const TimePoint end = last_ + limit_;
    if (Clock::now() >= end) end_process();
    changed_.wait_until(lock, end, [&] { return stopped_; });
  }
}

void Heartbeat::end_process() const {
  const std::string text =
      str_cat("taeda.distributed: ",
              who_,
              " has stood still for ",
              static_cast<int64_t>(limit_.count()),
              " ms: Python's lock is held, or the device does not answer. The "
              "process is ended. Its last calls:",
              last_calls(),
              "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace taeda::distributed
