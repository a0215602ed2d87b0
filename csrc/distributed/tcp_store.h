// A store that a server thread at one of the ranks keeps.
#pragma once

#include <taeda/csrc/distributed/sockets.h>
#include <taeda/csrc/distributed/store.h>
#include <taeda/csrc/distributed/tcp_server.h>
#include <taeda/csrc/distributed/wire.h>

#include <mutex>
#include <optional>

namespace taeda::distributed {

struct TCPStoreOptions {
  int port = 0;
  bool is_server = false;
  std::optional<int64_t> workers;
  bool wait_for_workers = true;
  Millis limit = Store::kDefaultTimeout;
  bool multi_tenant = false;
  int listener = -1;
};

class TCPStore : public Store {
 public:
  // The server's side waits for all workers where they are counted.
  TCPStore(std::string host, const TCPStoreOptions& options);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired) override;
  bool check(const Keys& keys) override;
  void wait(const Keys& keys, Millis limit) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const Keys& values) override;
  bool has_extended_api() const override { return true; }
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;
  std::shared_ptr<Store> clone() override;

  const std::string& host() const { return host_; }
  int port() const { return port_; }

 private:
  TCPStore(const TCPStore& other, Millis limit);
  void connect(Millis limit);
  void meet(const TCPStoreOptions& options);
  // The answer's frame after its first byte. `limit` is how long the server
  // may take; then the connection is given up.
  std::string ask(wire::Writer& message, const Keys& keys, Millis limit);
  std::string ask(wire::Writer& message) { return ask(message, {}, timeout()); }
  std::string ask(wire::Writer&& message) { return ask(message); }

  std::string host_;
  int port_;
  std::shared_ptr<TCPServer> server_;
  std::mutex mutex_;  // one question at a time on the connection
  Socket socket_;
};

}  // namespace taeda::distributed
