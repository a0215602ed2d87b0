#include <taeda/csrc/distributed/tcp_store.h>

#include <algorithm>

namespace taeda::distributed {

namespace {
using wire::Action;
using wire::Answer;
using wire::Reader;
using wire::Writer;

Writer message(Action action) { return Writer(static_cast<uint8_t>(action)); }
Reader reader(const std::string& body) {
  return Reader(body.data(), body.size());
}
// Beyond a server's own limit, for the way there and back.
constexpr auto kSlack = std::chrono::seconds(3);
}  // namespace

TCPStore::TCPStore(std::string host, const TCPStoreOptions& options)
    : Store(options.limit), host_(std::move(host)), port_(options.port) {
  TAEDA_CHECK_AS(Value,
                 port_ >= 0 && port_ < 65536,
                 "TCPStore: expected a port of 0 to 65535, got ",
                 port_);
  if (options.is_server) {
    server_ = TCPServer::start(port_, options.multi_tenant, options.listener);
    port_ = server_->port();
  }
  connect(options.limit);
  if (options.wait_for_workers && options.workers) meet(options);
}

TCPStore::TCPStore(const TCPStore& other, Millis limit)
    : Store(limit),
      host_(other.host_),
      port_(other.port_),
      server_(other.server_) {
  connect(limit);
}

void TCPStore::connect(Millis limit) {
  // The server of this process is reached whatever the host's name means.
  socket_ = connect_to(server_ ? "localhost" : host_, port_, limit);
  send_all(socket_, wire::kHello, wire::kHelloSize, after(limit));
}

void TCPStore::meet(const TCPStoreOptions& options) {
  try {
    ask(message(Action::Join));
  } catch (const DistError& error) {
    fail(error.fault(), "TCPStore: could not join in time: ", error.what());
  }
  if (!server_) return;
  auto question = message(Action::AwaitJoined);
  question.number(options.limit.count()).number(*options.workers);
  const std::string body = ask(question, {}, options.limit);
  const int64_t joined = reader(body).number();
  if (joined >= *options.workers) return;
  fail(Fault::Store,
       "Timed out after ",
       static_cast<int64_t>(options.limit.count()),
       "ms waiting for clients. ",
       joined,
       "/",
       *options.workers,
       " clients joined.");
}

std::string TCPStore::ask(Writer& question, const Keys& keys, Millis limit) {
  std::lock_guard lock(mutex_);
  if (!socket_) {
    fail(Fault::Network, "TCPStore: the connection to the server was lost");
  }
  TimePoint end =
      after(limit < Millis::zero() ? limit : limit + Millis(kSlack));
  const TimePoint deadline = StoreDeadline::current();
  if (deadline != TimePoint::max()) end = std::min(end, deadline + kSlack);
  std::string body;
  Answer kind;
  try {
    const std::string& frame = question.finish();
    send_all(socket_, frame.data(), frame.size(), end);
    uint32_t size = 0;
    receive_all(socket_, reinterpret_cast<char*>(&size), sizeof(size), end);
    if (size == 0) throw wire::Malformed();
    body.resize(size);
    receive_all(socket_, body.data(), size, end);
    kind = static_cast<Answer>(body[0]);
    body.erase(0, 1);
  } catch (...) {
    // What comes next on this connection would answer an earlier question.
    socket_.close();
    throw;
  }
  switch (kind) {
    case Answer::Done:
      return body;
    case Answer::TimedOut:
      // Of AwaitJoined: the caller tells who is missing.
      if (keys.empty()) return body;
      wait_timed_out(keys, limit);
    case Answer::Empty:
      fail(Fault::QueueEmpty, "queue_pop: the queue is empty");
    case Answer::Failed:
      fail(Fault::Store, reader(body).text());
  }
  fail(Fault::Network, "TCPStore: the server sent an unknown answer");
}

void TCPStore::set(const std::string& key, const std::string& value) {
  ask(message(Action::Set).text(key).text(value));
}

std::string TCPStore::get(const std::string& key) {
  return multi_get({key}).at(0);
}

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  const auto body = ask(message(Action::Add).text(key).number(amount));
  return reader(body).number();
}

std::string TCPStore::compare_set(const std::string& key,
                                  const std::string& expected,
                                  const std::string& desired) {
  auto question = message(Action::CompareSet);
  const auto body = ask(question.text(key).text(expected).text(desired));
  return reader(body).text();
}

bool TCPStore::check(const Keys& keys) {
  const auto body = ask(message(Action::Check).texts(keys));
  return reader(body).number() != 0;
}

void TCPStore::wait(const Keys& keys, Millis limit) {
  if (keys.empty()) return;
  ask(message(Action::Wait).number(limit.count()).texts(keys), keys, limit);
}

bool TCPStore::delete_key(const std::string& key) {
  const auto body = ask(message(Action::Delete).text(key));
  return reader(body).number() != 0;
}

int64_t TCPStore::num_keys() {
  const auto body = ask(message(Action::Count));
  return reader(body).number();
}

void TCPStore::append(const std::string& key, const std::string& value) {
  ask(message(Action::Append).text(key).text(value));
}

Keys TCPStore::multi_get(const Keys& keys) {
  if (keys.empty()) return {};
  const Millis limit = timeout();
  auto question = message(Action::Get);
  const auto body =
      ask(question.number(limit.count()).texts(keys), keys, limit);
  return reader(body).texts();
}

void TCPStore::multi_set(const Keys& keys, const Keys& values) {
  check_pairs(keys, values);
  ask(message(Action::MultiSet).texts(keys).texts(values));
}

void TCPStore::queue_push(const std::string& key, const std::string& value) {
  ask(message(Action::Push).text(key).text(value));
}

std::string TCPStore::queue_pop(const std::string& key, bool block) {
  const Millis limit = timeout();
  auto question = message(block ? Action::Pop : Action::PopNow);
  if (block) {
    question.number(limit.count()).texts({key});
  } else {
    question.text(key);
  }
  const auto body = ask(question, {key}, limit);
  return reader(body).text();
}

int64_t TCPStore::queue_len(const std::string& key) {
  const auto body = ask(message(Action::Length).text(key));
  return reader(body).number();
}

std::shared_ptr<Store> TCPStore::clone() {
  return std::shared_ptr<Store>(new TCPStore(*this, timeout()));
}

}  // namespace taeda::distributed
