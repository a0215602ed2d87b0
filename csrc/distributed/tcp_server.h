// Serves a table to TCPStore's clients from one thread.
#pragma once

#include <memory>
#include <string>

namespace taeda::distributed {

class TCPServer {
 public:
  // Listens at `port`, at one that the system chooses if it is 0, or at a
  // socket that listens already (its descriptor; -1 for none). With `shared`,
  // a server of this process that has the port is taken.
  static std::shared_ptr<TCPServer> start(int port, bool shared, int listener);

  virtual ~TCPServer() = default;
  virtual int port() const = 0;
};

}  // namespace taeda::distributed
