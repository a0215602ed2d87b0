// The messages between TCPStore and its server.
#pragma once

#include <taeda/csrc/distributed/store.h>

#include <cstring>

namespace taeda::distributed::wire {

// Note [Store messages]
// A connection begins with kHello from the client. Then each side sends frames:
// a 32-bit length of what follows, one byte (an Action, or an Answer), and
// fields. Numbers are little-endian, texts and lists begin with a 32-bit count.
// A reader checks every count against what is left of the frame, and a buffer
// grows with the bytes that have arrived, never by an announced length. A frame
// that is too long, unknown or badly formed ends the connection.
inline constexpr char kHello[8] = {'T', 'A', 'E', 'D', 'A', 's', 't', '1'};
inline constexpr size_t kHelloSize = sizeof(kHello);
inline constexpr uint32_t kLongest = 1u << 30;

enum class Action : uint8_t {
  Set,
  Get,  // waits; answers the values
  Add,
  CompareSet,
  Check,
  Wait,
  Delete,
  Count,
  Append,
  MultiSet,
  Push,
  Pop,
  PopNow,
  Length,
  Join,        // one more client is there
  AwaitJoined  // answers when so many are there
};
enum class Answer : uint8_t { Done, TimedOut, Empty, Failed };

class Writer {
 public:
  explicit Writer(uint8_t kind) { bytes_.assign(4, '\0').push_back(kind); }
  Writer& number(int64_t v) { return raw(&v, sizeof(v)); }
  Writer& text(const std::string& v) {
    count(v.size());
    bytes_ += v;
    return *this;
  }
  Writer& texts(const Keys& list) {
    count(list.size());
    for (const auto& v : list) text(v);
    return *this;
  }
  // The frame, with its length at the front.
  std::string& finish() {
    const size_t size = bytes_.size() - 4;
    if (size > kLongest) {
      fail(Fault::Store,
           "TCPStore: a message of ",
           size,
           " bytes is longer than ",
           kLongest);
    }
    const auto length = static_cast<uint32_t>(size);
    std::memcpy(bytes_.data(), &length, sizeof(length));
    return bytes_;
  }

 private:
  Writer& raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  void count(size_t n) {
    const auto v = static_cast<uint32_t>(n);
    raw(&v, sizeof(v));
  }
  std::string bytes_;
};

// Throws Malformed where the frame has less than is asked for.
struct Malformed {};

class Reader {
 public:
  Reader(const char* data, size_t size) : at_(data), end_(data + size) {}
  uint8_t kind() { return static_cast<uint8_t>(*take(1)); }
  int64_t number() {
    int64_t v;
    std::memcpy(&v, take(sizeof(v)), sizeof(v));
    return v;
  }
  std::string text() {
    const uint32_t n = count();
    return std::string(take(n), n);
  }
  Keys texts() {
    const uint32_t n = count();
    // Each text takes four bytes at least.
    if (n > left() / 4) throw Malformed();
    Keys list;
    for (uint32_t i = 0; i < n; ++i) list.push_back(text());
    return list;
  }
  void finish() const {
    if (at_ != end_) throw Malformed();
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const char* take(size_t n) {
    if (n > left()) throw Malformed();
    const char* here = at_;
    at_ += n;
    return here;
  }
  uint32_t count() {
    uint32_t v;
    std::memcpy(&v, take(sizeof(v)), sizeof(v));
    return v;
  }
  const char* at_;
  const char* end_;
};

}  // namespace taeda::distributed::wire
