#include <taeda/csrc/distributed/sockets.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace taeda::distributed {

namespace {

void set_option(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof(on));
}

// Whether it became ready before the time was over.
bool ready(int fd, short events, TimePoint end) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const auto left = std::min<int64_t>(left_until(end).count(), 1 << 30);
    const int found = ::poll(&entry, 1, static_cast<int>(left));
    if (found > 0) return true;
    if (found == 0 && Clock::now() >= end) return false;
    if (found < 0 && errno != EINTR) return false;
  }
}

[[noreturn]] void lost(const char* what) {
  fail(Fault::Network,
       "TCPStore: ",
       what,
       ". The connection was likely closed: did the process with the server "
       "end or crash?");
}

Socket try_address(const addrinfo& address, TimePoint end) {
  Socket s(::socket(address.ai_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    address.ai_protocol));
  if (!s) return s;
  set_option(s.fd(), IPPROTO_TCP, TCP_NODELAY);
  if (::connect(s.fd(), address.ai_addr, address.ai_addrlen) == 0) return s;
  if (errno != EINPROGRESS || !ready(s.fd(), POLLOUT, end)) return Socket();
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(s) : Socket();
}

}  // namespace

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Socket listen_at(int port) {
  int code = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    Socket s(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!s) continue;
    set_option(s.fd(), SOL_SOCKET, SO_REUSEADDR);
    const auto number = htons(static_cast<uint16_t>(port));
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = number;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = number;
    const bool is_six = family == AF_INET6;
    if (is_six) {
      // One socket for both families.
      const int off = 0;
      ::setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    const auto* address = is_six ? reinterpret_cast<const sockaddr*>(&six)
                                 : reinterpret_cast<const sockaddr*>(&four);
    const socklen_t size = is_six ? sizeof(six) : sizeof(four);
    if (::bind(s.fd(), address, size) == 0 && ::listen(s.fd(), 2048) == 0) {
      return s;
    }
    code = errno;
  }
  fail(Fault::Network,
       "The server socket has failed to listen on any local network address. "
       "port: ",
       port,
       ", code: ",
       -code,
       ", name: ",
       ::strerrorname_np(code),
       ", message: ",
       std::strerror(code));
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail(Fault::Network, "TCPStore: descriptor ", fd, " is not a socket");
  }
  const bool is_six = address.ss_family == AF_INET6;
  return ntohs(is_six ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                      : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

Socket connect_to(const std::string& host, int port, Millis limit) {
  const TimePoint end = after(limit);
  const std::string service = std::to_string(port);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  auto pause = Millis(5);
  std::string problem = "nothing listens there";
  do {
    addrinfo* found = nullptr;
    const int code =
        ::getaddrinfo(host.c_str(), service.c_str(), &wanted, &found);
    if (code != 0) problem = ::gai_strerror(code);
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
      if (Socket s = try_address(*a, end)) {
        ::freeaddrinfo(found);
        return s;
      }
    }
    if (found != nullptr) ::freeaddrinfo(found);
    std::this_thread::sleep_for(std::min(pause, left_until(end)));
    pause = std::min(pause * 2, Millis(200));
  } while (Clock::now() < end);
  fail(Fault::Network,
       "The client socket has timed out after ",
       static_cast<int64_t>(limit.count()),
       "ms while trying to connect to (",
       host,
       ", ",
       port,
       "): ",
       problem,
       ".");
}

void send_all(const Socket& s, const char* data, size_t size, TimePoint end) {
  while (size > 0) {
    const ssize_t put = ::send(s.fd(), data, size, MSG_NOSIGNAL);
    if (put > 0) {
      data += put, size -= static_cast<size_t>(put);
    } else if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!ready(s.fd(), POLLOUT, end)) lost("the time to send is over");
    } else if (put < 0 && errno != EINTR) {
      lost("sending failed");
    }
  }
}

void receive_all(const Socket& s, char* data, size_t size, TimePoint end) {
  while (size > 0) {
    const ssize_t got = ::recv(s.fd(), data, size, 0);
    if (got > 0) {
      data += got, size -= static_cast<size_t>(got);
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!ready(s.fd(), POLLIN, end)) lost("the server does not answer");
    } else if (got == 0 || errno != EINTR) {
      lost("receiving failed");
    }
  }
}

}  // namespace taeda::distributed
