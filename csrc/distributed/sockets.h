// Sockets of TCPStore, with limits of time.
#pragma once

#include <taeda/csrc/distributed/error.h>

#include <string>

namespace taeda::distributed {

// Closed with the object.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_;
};

// Fault::Network where no address can be listened at. Not blocking.
Socket listen_at(int port);
int port_of(int fd);
// Tries again until the limit, since the server may start later.
Socket connect_to(const std::string& host, int port, Millis limit);

// All of it, or Fault::Network: the other side has gone, or the time is over.
void send_all(const Socket& s, const char* data, size_t size, TimePoint end);
void receive_all(const Socket& s, char* data, size_t size, TimePoint end);

}  // namespace taeda::distributed
