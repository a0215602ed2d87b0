#include <taeda/csrc/distributed/sockets.h>
#include <taeda/csrc/distributed/table.h>
#include <taeda/csrc/distributed/tcp_server.h>
#include <taeda/csrc/distributed/wire.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace taeda::distributed {

namespace {

using wire::Action;
using wire::Answer;
using wire::Writer;

// What a client waits for; its next frame is read when that is over.
struct Waiting {
  Action action;
  Keys keys;       // of values, or the one of a queue
  int64_t joined;  // for AwaitJoined
  TimePoint end;
};

struct Client {
  Socket socket;
  std::string in;
  std::string out;
  bool greeted = false;
  std::optional<Waiting> waiting;
};

std::string done() { return Writer(uint8_t(Answer::Done)).finish(); }
std::string number(int64_t v) {
  return Writer(uint8_t(Answer::Done)).number(v).finish();
}
std::string text(const std::string& v) {
  return Writer(uint8_t(Answer::Done)).text(v).finish();
}

class Loop : public TCPServer {
 public:
  Loop(int port, int listener)
      : listener_(listener >= 0 ? Socket(listener) : listen_at(port)),
        port_(port_of(listener_.fd())),
        events_(::epoll_create1(EPOLL_CLOEXEC)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    watch(EPOLL_CTL_ADD, listener_.fd(), EPOLLIN);
    watch(EPOLL_CTL_ADD, stop_.fd(), EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }
  ~Loop() override {
    const uint64_t one = 1;
    // A full counter has woken the thread already.
    [[maybe_unused]] auto put = ::write(stop_.fd(), &one, sizeof(one));
    thread_.join();
  }
  int port() const override { return port_; }

 private:
  void watch(int action, int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (::epoll_ctl(events_.fd(), action, fd, &event) != 0) {
      fail(Fault::Network, "TCPStore: the server cannot watch a socket");
    }
  }

  void run() {
    for (;;) {
      epoll_event found[64];
      const int n = ::epoll_wait(events_.fd(), found, 64, next_timeout());
      for (int i = 0; i < n; ++i) {
        const int fd = found[i].data.fd;
        if (fd == stop_.fd()) return;
        if (fd == listener_.fd()) {
          accept_all();
        } else {
          serve(fd, found[i].events);
        }
      }
      expire();
    }
  }

  int next_timeout() const {
    if (ends_.empty()) return -1;
    const auto left = left_until(ends_.begin()->first).count();
    return static_cast<int>(std::min<int64_t>(left, 1 << 30));
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(
          listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        // Without descriptors the client waits in the queue of the system.
        if (errno == EMFILE || errno == ENFILE) {
          std::this_thread::sleep_for(Millis(10));
        }
        return;
      }
      clients_[fd].socket = Socket(fd);
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
  }

  void drop(int fd) {
    forget_wait(fd);
    clients_.erase(fd);
  }

  void serve(int fd, uint32_t events) {
    auto it = clients_.find(fd);
    if (it == clients_.end()) return;
    Client& client = it->second;
    bool alive = (events & (EPOLLERR | EPOLLHUP)) == 0 || (events & EPOLLIN);
    if (alive && (events & EPOLLIN)) alive = receive(client);
    try {
      if (alive) alive = handle_frames(fd, client) && flush(client);
    } catch (const wire::Malformed&) {
      alive = false;
    }
    if (!alive) drop(fd);
  }

  static bool receive(Client& client) {
    char part[65536];
    for (int turn = 0; turn < 16; ++turn) {
      const ssize_t got = ::recv(client.socket.fd(), part, sizeof(part), 0);
      if (got > 0) {
        client.in.append(part, static_cast<size_t>(got));
        if (static_cast<size_t>(got) < sizeof(part)) return true;
      } else {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
      }
    }
    return true;
  }

  bool flush(Client& client) {
    size_t done = 0;
    while (done < client.out.size()) {
      const ssize_t put = ::send(client.socket.fd(),
                                 client.out.data() + done,
                                 client.out.size() - done,
                                 MSG_NOSIGNAL);
      if (put <= 0) {
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) break;
        return false;
      }
      done += static_cast<size_t>(put);
    }
    client.out.erase(0, done);
    const uint32_t more = client.out.empty() ? 0u : uint32_t{EPOLLOUT};
    watch(EPOLL_CTL_MOD, client.socket.fd(), EPOLLIN | more);
    return true;
  }

  // A client that does not read its answers is read no further.
  static constexpr size_t kMostUnsent = 64u << 20;

  bool handle_frames(int fd, Client& client) {
    size_t at = 0;
    if (!client.greeted) {
      if (client.in.size() < wire::kHelloSize) return true;
      if (std::memcmp(client.in.data(), wire::kHello, wire::kHelloSize) != 0) {
        return false;
      }
      client.greeted = true;
      at = wire::kHelloSize;
    }
    while (!client.waiting && client.out.size() < kMostUnsent &&
           client.in.size() - at >= 4) {
      uint32_t size;
      std::memcpy(&size, client.in.data() + at, sizeof(size));
      if (size == 0 || size > wire::kLongest) return false;
      if (client.in.size() - at - 4 < size) break;
      wire::Reader reader(client.in.data() + at + 4, size);
      at += 4 + size;
      act(fd, client, reader);
    }
    client.in.erase(0, at);
    return true;
  }

  void act(int fd, Client& client, wire::Reader& in) {
    const auto action = static_cast<Action>(in.kind());
    switch (action) {
      case Action::Get:
      case Action::Wait:
      case Action::Pop:
      case Action::AwaitJoined:
        begin_wait(fd, client, action, in);
        return;
      default:
        break;
    }
    try {
      client.out += answer(action, in);
    } catch (const DistError& error) {
      client.out += Writer(uint8_t(Answer::Failed)).text(error.what()).finish();
    }
  }

  std::string answer(Action action, wire::Reader& in) {
    switch (action) {
      case Action::Set: {
        const std::string key = in.text();
        std::string value = in.text();
        in.finish();
        table_.set(key, std::move(value));
        wake(key);
        return done();
      }
      case Action::Add: {
        const std::string key = in.text();
        const int64_t amount = in.number();
        in.finish();
        const int64_t sum = table_.add(key, amount);
        wake(key);
        return number(sum);
      }
      case Action::CompareSet: {
        const std::string key = in.text();
        const std::string expected = in.text();
        const std::string desired = in.text();
        in.finish();
        const std::string now = table_.compare_set(key, expected, desired);
        wake(key);
        return text(now);
      }
      case Action::Append: {
        const std::string key = in.text();
        const std::string value = in.text();
        in.finish();
        table_.append(key, value);
        wake(key);
        return done();
      }
      case Action::MultiSet: {
        const Keys keys = in.texts();
        const Keys values = in.texts();
        in.finish();
        if (keys.size() != values.size()) throw wire::Malformed();
        for (size_t i = 0; i < keys.size(); ++i) table_.set(keys[i], values[i]);
        for (const auto& key : keys) wake(key);
        return done();
      }
      case Action::Push: {
        const std::string key = in.text();
        std::string value = in.text();
        in.finish();
        table_.push(key, std::move(value));
        wake(key);
        return done();
      }
      default:
        return look(action, in);
    }
  }

  std::string look(Action action, wire::Reader& in) {
    switch (action) {
      case Action::Check: {
        const Keys keys = in.texts();
        in.finish();
        return number(table_.has_all(keys));
      }
      case Action::Delete: {
        const std::string key = in.text();
        in.finish();
        return number(table_.erase(key));
      }
      case Action::Count:
        in.finish();
        return number(table_.size());
      case Action::PopNow: {
        const std::string key = in.text();
        in.finish();
        auto found = table_.pop(key);
        return found ? text(*found) : Writer(uint8_t(Answer::Empty)).finish();
      }
      case Action::Length: {
        const std::string key = in.text();
        in.finish();
        return number(table_.length(key));
      }
      case Action::Join:
        in.finish();
        joined_ += 1;
        wake(kJoined);
        return number(joined_);
      default:
        throw wire::Malformed();
    }
  }

  // Waiting -------------------------------------------------------------------

  void begin_wait(int fd, Client& client, Action action, wire::Reader& in) {
    Waiting waiting{action, {}, 0, after(Millis(in.number()))};
    if (action == Action::AwaitJoined) {
      waiting.joined = in.number();
      waiting.keys = {kJoined};
    } else {
      waiting.keys = in.texts();
      if (action == Action::Pop && waiting.keys.size() != 1) {
        throw wire::Malformed();
      }
    }
    in.finish();
    client.waiting = std::move(waiting);
    if (try_finish(client)) return;
    ends_.emplace(client.waiting->end, fd);
    for (const auto& key : client.waiting->keys) waiters_.emplace(key, fd);
  }

  // Answers where what the client waits for is there.
  bool try_finish(Client& client) {
    const Waiting& w = *client.waiting;
    if (w.action == Action::AwaitJoined) {
      if (joined_ < w.joined) return false;
      client.out += number(joined_);
    } else if (w.action == Action::Pop) {
      auto found = table_.pop(w.keys[0]);
      if (!found) return false;
      client.out += text(*found);
    } else {
      if (!table_.has_all(w.keys)) return false;
      Keys values;
      if (w.action == Action::Get) {
        for (const auto& key : w.keys) values.push_back(*table_.find(key));
      }
      client.out += Writer(uint8_t(Answer::Done)).texts(values).finish();
    }
    client.waiting.reset();
    return true;
  }

  void forget_wait(int fd) {
    Client& client = clients_.at(fd);
    if (!client.waiting) return;
    ends_.erase({client.waiting->end, fd});
    for (const auto& key : client.waiting->keys) waiters_.erase({key, fd});
    client.waiting.reset();
  }

  void wake(const std::string& key) {
    std::vector<int> found;
    for (auto it = waiters_.lower_bound({key, -1});
         it != waiters_.end() && it->first == key;
         ++it) {
      found.push_back(it->second);
    }
    for (const int fd : found) {
      Client& client = clients_.at(fd);
      const Waiting waiting = *client.waiting;
      if (!try_finish(client)) continue;
      ends_.erase({waiting.end, fd});
      for (const auto& k : waiting.keys) waiters_.erase({k, fd});
      resumed_.insert(fd);
    }
  }

  void expire() {
    const TimePoint now = Clock::now();
    while (!ends_.empty() && ends_.begin()->first <= now) {
      const int fd = ends_.begin()->second;
      Client& client = clients_.at(fd);
      const bool joining = client.waiting->action == Action::AwaitJoined;
      forget_wait(fd);
      client.out += Writer(uint8_t(Answer::TimedOut))
                        .number(joining ? joined_ : 0)
                        .finish();
      resumed_.insert(fd);
    }
    // Serving one client may resume others.
    while (!resumed_.empty()) {
      const int fd = *resumed_.begin();
      resumed_.erase(resumed_.begin());
      if (clients_.contains(fd)) serve(fd, 0);
    }
  }

  static inline const std::string kJoined = std::string("\0joined", 7);

  Socket listener_;
  const int port_;
  Socket events_;
  Socket stop_;
  std::thread thread_;
  // All below is the thread's own.
  Table table_;
  int64_t joined_ = 0;
  std::map<int, Client> clients_;
  std::set<std::pair<TimePoint, int>> ends_;
  std::set<std::pair<std::string, int>> waiters_;
  std::set<int> resumed_;
};

}  // namespace

std::shared_ptr<TCPServer> TCPServer::start(int port,
                                            bool shared,
                                            int listener) {
  // Servers that may be shared, by port. The lock guards the map.
  static std::mutex mutex;
  static auto& servers = *new std::map<int, std::weak_ptr<TCPServer>>();
  if (!shared || port == 0) return std::make_shared<Loop>(port, listener);
  std::lock_guard lock(mutex);
  if (auto found = servers[port].lock()) return found;
  auto made = std::make_shared<Loop>(port, listener);
  servers[port] = made;
  return made;
}

}  // namespace taeda::distributed
