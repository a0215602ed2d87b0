// Collectives and messages through Gloo, between hosts. A library of its own,
// which load_gloo.cpp opens when ranks are not on one host.
#include <taeda/csrc/distributed/channel.h>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <thread>

namespace taeda::distributed {

namespace {

// Our store as Gloo's: it writes and waits for addresses.
class GlooStore : public ::gloo::rendezvous::Store {
 public:
  GlooStore(distributed::Store& store, Millis limit)
      : store_(store), limit_(limit) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    store_.wait({key}, limit_);
    const std::string value = store_.get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    store_.wait(keys, limit_);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds&) override {
    // Gloo's own limit is that of a connection, which is shorter.
    store_.wait(keys, limit_);
  }

 private:
  distributed::Store& store_;
  Millis limit_;
};

// GLOO_SOCKET_IFNAME names the interface; else the host's own address where it
// has one, and the loopback interface otherwise.
std::shared_ptr<::gloo::transport::Device> make_device() {
  ::gloo::transport::tcp::attr attr;
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    attr.iface = interface;
    return ::gloo::transport::tcp::CreateDevice(attr);
  }
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  addrinfo* found = nullptr;
  attr.hostname = "127.0.0.1";
  if (::getaddrinfo(name, nullptr, nullptr, &found) == 0) {
    attr.hostname = name;
    ::freeaddrinfo(found);
  }
  return ::gloo::transport::tcp::CreateDevice(attr);
}

class GlooChannel : public Channel {
 public:
  GlooChannel(const Place& place, distributed::Store& store, Millis limit)
      : place_(place), device_(make_device()) {
    auto context =
        std::make_shared<::gloo::rendezvous::Context>(place.rank, place.size);
    // To connect, Gloo waits five times as long as it is told.
    context->setTimeout(std::max(limit / 5, Millis(1)));
    GlooStore addresses(store, limit);
    try {
      guarded("init_process_group",
              [&] { context->connectFullMesh(addresses, device_); });
    } catch (const DistError& error) {
      if (error.fault() != Fault::Store) throw;
      fail(Fault::Store,
           "init_process_group: rank ",
           place.rank,
           " of ",
           place.size,
           " did not find the others' addresses: ",
           error.what());
    }
    context->setTimeout(limit);
    context_ = context;
  }

  ~GlooChannel() override {
    // Threads that wait for messages hold the context.
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return waiting_ == 0; });
  }

  void all_reduce(const Call& call,
                  const Reduction& r,
                  void* data,
                  size_t n) override {
    if (n == 0) return barrier(call);
    run(call, [&] {
      ::gloo::AllreduceOptions options(context_);
      give(options, call);
      set_typed(options, r, data, n);
      ::gloo::allreduce(options);
    });
    scale(r, data, n);
  }

  void broadcast(const Call& call, Span data) override {
    if (data.bytes == 0) return barrier(call);
    run(call, [&] {
      ::gloo::BroadcastOptions options(context_);
      give(options, call);
      options.setRoot(call.head.root);
      options.setOutput<char>(data.data, data.bytes);
      ::gloo::broadcast(options);
    });
  }

  void reduce(const Call& call,
              const Reduction& r,
              void* data,
              size_t n) override {
    if (n == 0) return barrier(call);
    run(call, [&] {
      ::gloo::ReduceOptions options(context_);
      give(options, call);
      options.setRoot(call.head.root);
      set_typed(options, r, data, n);
      ::gloo::reduce(options);
    });
    if (call.head.root == place_.rank) scale(r, data, n);
  }

  void all_gather(const Call& call,
                  Span in,
                  const std::vector<char*>& out) override {
    if (in.bytes == 0) return barrier(call);
    std::string joined(in.bytes * out.size(), '\0');
    run(call, [&] {
      ::gloo::AllgatherOptions options(context_);
      give(options, call);
      options.setInput<char>(in.data, in.bytes);
      options.setOutput<char>(joined.data(), joined.size());
      ::gloo::allgather(options);
    });
    part(joined, in.bytes, out);
  }

  void gather(const Call& call,
              Span in,
              const std::vector<char*>& out) override {
    if (in.bytes == 0) return barrier(call);
    std::string joined(in.bytes * out.size(), '\0');
    run(call, [&] {
      ::gloo::GatherOptions options(context_);
      give(options, call);
      options.setRoot(call.head.root);
      options.setInput<char>(in.data, in.bytes);
      if (!out.empty()) {
        options.setOutput<char>(joined.data(), joined.size());
      }
      ::gloo::gather(options);
    });
    part(joined, in.bytes, out);
  }

  void scatter(const Call& call,
               const std::vector<char*>& in,
               Span out) override {
    if (out.bytes == 0) return barrier(call);
    run(call, [&] {
      ::gloo::ScatterOptions options(context_);
      give(options, call);
      options.setRoot(call.head.root);
      if (!in.empty()) options.setInputs<char>(in, out.bytes);
      options.setOutput<char>(out.data, out.bytes);
      ::gloo::scatter(options);
    });
  }

  // Gloo has none: an exchange of the parts and a reduction of what came.
  void reduce_scatter(const Call& call,
                      const Reduction& r,
                      const std::vector<char*>& in,
                      void* out,
                      size_t n) override {
    const size_t bytes = n * element_size(r.dtype);
    std::string came(bytes * in.size(), '\0');
    std::vector<Span> from, to;
    std::vector<const void*> parts;
    for (size_t i = 0; i < in.size(); ++i) {
      char* place = came.data() + i * bytes;
      from.push_back({in[i], bytes});
      to.push_back({place, bytes});
      parts.push_back(place);
    }
    all_to_all(call, from, to);
    if (n > 0) distributed::reduce(r, out, parts.data(), parts.size(), n);
  }

  void all_to_all(const Call& call,
                  const std::vector<Span>& in,
                  const std::vector<Span>& out) override {
    std::string sent;
    std::vector<int64_t> sent_sizes, came_sizes;
    size_t total = 0;
    for (const Span& s : in) {
      sent.append(s.data, s.bytes);
      sent_sizes.push_back(static_cast<int64_t>(s.bytes));
    }
    for (const Span& s : out) {
      total += s.bytes;
      came_sizes.push_back(static_cast<int64_t>(s.bytes));
    }
    // Gloo does not take buffers of no bytes at all.
    sent.resize(std::max<size_t>(sent.size(), 1));
    std::string came(std::max<size_t>(total, 1), '\0');
    run(call, [&] {
      ::gloo::AlltoallvOptions options(context_);
      give(options, call);
      options.setInput<char>(sent.data(), sent_sizes);
      options.setOutput<char>(came.data(), came_sizes);
      ::gloo::alltoallv(options);
    });
    size_t at = 0;
    for (const Span& s : out) {
      if (s.bytes > 0) std::memcpy(s.data, came.data() + at, s.bytes);
      at += s.bytes;
    }
  }

  void barrier(const Call& call) override {
    run(call, [&] {
      ::gloo::BarrierOptions options(context_);
      give(options, call);
      ::gloo::barrier(options);
    });
  }

  void send(std::shared_ptr<Work> work,
            Span data,
            int to,
            uint64_t tag,
            TimePoint end) override {
    auto size = std::make_shared<Sized>(*this, data.bytes);
    auto shared = shared_buffer(data);
    const std::string what = str_cat("send to rank ", to);
    auto wait = [=] {
      if (!size->buffer->waitSend(left_until(end)) ||
          !shared->waitSend(left_until(end))) {
        fail(Fault::Backend, what, ": it was aborted");
      }
      return -1;
    };
    auto post = [&] {
      size->buffer->send(to, tag ^ kSizes);
      shared->send(to, tag);
    };
    start(work, what, post, wait);
  }

  void receive(std::shared_ptr<Work> work,
               Span data,
               int from,
               uint64_t tag,
               TimePoint end) override {
    auto size = std::make_shared<Sized>(*this, 0);
    std::vector<int> sources;
    for (int r = 0; r < place_.size; ++r) {
      if (r != place_.rank) sources.push_back(r);
    }
    const std::string what =
        from < 0 ? "recv from any rank" : str_cat("recv from rank ", from);
    const Key key{from, tag};
    const uint64_t turn = take_turn(key);
    auto post = [&] {
      if (from >= 0) {
        size->buffer->recv(from, tag ^ kSizes);
      } else {
        size->buffer->recv(sources, tag ^ kSizes);
      }
    };
    auto turns = std::shared_ptr<void>(
        nullptr, [this, key, turn](void*) { leave_turn(key, turn); });
    auto wait = [=, this]() mutable {
      int source = from;
      if (!size->buffer->waitRecv(&source, left_until(end))) {
        fail(Fault::Backend, what, ": it was aborted");
      }
      std::string aside;
      Span to = data;
      if (size->bytes != data.bytes) {
        aside.resize(size->bytes);
        to = {aside.data(), aside.size()};
      }
      auto shared = shared_buffer(to);
      await_turn(key, turn, end);
      shared->recv(source, tag);
      turns.reset();
      if (!shared->waitRecv(nullptr, left_until(end))) {
        fail(Fault::Backend, what, ": it was aborted");
      }
      if (to.data != data.data) {
        fail(Fault::Backend,
             "recv: expected ",
             data.bytes,
             " bytes, got a message of ",
             to.bytes,
             " bytes from rank ",
             source);
      }
      return source;
    };
    start(work, what, post, wait);
  }

  void abort(const std::string& reason) override {
    std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
    context_->closeConnections();
  }
  const char* name() const override { return "gloo"; }

 private:
  // Note [Sizes before messages]
  // Gloo ends the process where a message is longer than its receiver's buffer.
  // So a message's size goes ahead, under another tag, and what has another
  // size than was expected is taken aside. Contents of one sender and tag are
  // asked for in the order in which their sizes were, by turns.
  static constexpr uint64_t kSizes = uint64_t{1} << 62;
  struct Sized {
    Sized(GlooChannel& channel, size_t n) : bytes(n) {
      buffer = channel.shared_buffer(
          {reinterpret_cast<char*>(&bytes), sizeof(bytes)});
    }
    uint64_t bytes;
    std::shared_ptr<::gloo::transport::UnboundBuffer> buffer;
  };
  using Key = std::pair<int, uint64_t>;  // who sends, and the tag

  uint64_t take_turn(const Key& key) {
    std::lock_guard lock(mutex_);
    turns_[key].insert(++last_turn_);
    return last_turn_;
  }
  void await_turn(const Key& key, uint64_t turn, TimePoint end) {
    std::unique_lock lock(mutex_);
    auto is_first = [&] { return *turns_[key].begin() == turn; };
    if (!turned_.wait_until(lock, end, is_first)) {
      fail(Fault::Backend, "recv: an earlier message did not come in time");
    }
  }
  void leave_turn(const Key& key, uint64_t turn) {
    std::lock_guard lock(mutex_);
    auto found = turns_.find(key);
    found->second.erase(turn);
    if (found->second.empty()) turns_.erase(found);
    turned_.notify_all();
  }

  template <class F>
  void guarded(const std::string& what, F&& f) {
    {
      std::lock_guard lock(mutex_);
      if (!reason_.empty()) fail(Fault::Backend, what, ": ", reason_);
    }
    try {
      f();
    } catch (const DistError&) {
      throw;
    } catch (const std::exception& error) {
      fail(Fault::Backend,
           what,
           " at rank ",
           place_.rank,
           " of ",
           place_.size,
           " in group '",
           place_.group,
           "': ",
           error.what());
    }
  }
  template <class F>
  void run(const Call& call, F&& f) {
    guarded(describe(call.head), f);
  }

  template <class Options>
  static void give(Options& options, const Call& call) {
    options.setTag(static_cast<uint32_t>(call.head.sequence));
    options.setTimeout(std::max(left_until(call.end), Millis(1)));
  }

  std::shared_ptr<::gloo::transport::UnboundBuffer> shared_buffer(Span data) {
    return {context_->createUnboundBuffer(data.data, data.bytes)};
  }

  static auto combine(const Reduction& r) {
    Reduction plain = r;
    plain.factor = 1.0;
    return [plain](void* out, const void* a, const void* b, size_t n) {
      const void* both[] = {a, b};
      distributed::reduce(plain, out, both, 2, n);
    };
  }

  // Gloo asks for a C++ type, of which it uses the size alone.
  template <class Options, class T>
  static void set_sized(Options& options, void* data, size_t n) {
    options.setOutput(static_cast<T*>(data), n);
  }
  template <class Options>
  static void set_typed(Options& options,
                        const Reduction& r,
                        void* data,
                        size_t n) {
    struct Sixteen {
      char bytes[16];
    };
    switch (element_size(r.dtype)) {
      case 1:
        set_sized<Options, uint8_t>(options, data, n);
        break;
      case 2:
        set_sized<Options, uint16_t>(options, data, n);
        break;
      case 4:
        set_sized<Options, uint32_t>(options, data, n);
        break;
      case 8:
        set_sized<Options, uint64_t>(options, data, n);
        break;
      default:
        set_sized<Options, Sixteen>(options, data, n);
    }
    options.setReduceFunction(combine(r));
  }

  static void scale(const Reduction& r, void* data, size_t n) {
    if (r.factor == 1.0) return;
    const void* alone[] = {data};
    distributed::reduce(r, data, alone, 1, n);
  }

  static void part(const std::string& joined,
                   size_t bytes,
                   const std::vector<char*>& out) {
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(out[i], joined.data() + i * bytes, bytes);
    }
  }

  // Gloo is told of a message by the caller: those of one tag keep the order of
  // the calls. It is waited for by a thread of its own.
  template <class Post, class Wait>
  void start(std::shared_ptr<Work> work,
             const std::string& what,
             Post post,
             Wait wait) {
    try {
      guarded(what, post);
    } catch (...) {
      return work->complete(std::current_exception());
    }
    {
      std::lock_guard lock(mutex_);
      waiting_ += 1;
    }
    std::thread([this, work, what, wait]() mutable {
      std::exception_ptr error;
      int source = -1;
      try {
        // What it holds is let go of while the channel is there for certain.
        auto own = std::move(wait);
        guarded(what, [&] { source = own(); });
      } catch (...) {
        error = std::current_exception();
      }
      work->complete(std::move(error), source);
      std::lock_guard lock(mutex_);
      waiting_ -= 1;
      idle_.notify_all();
    }).detach();
  }

  const Place place_;
  std::shared_ptr<::gloo::transport::Device> device_;
  std::shared_ptr<::gloo::Context> context_;
  std::mutex mutex_;  // guards all below
  std::condition_variable idle_, turned_;
  int waiting_ = 0;
  // Receives whose content has not been asked for yet.
  std::map<Key, std::set<uint64_t>> turns_;
  uint64_t last_turn_ = 0;
  std::string reason_;
};

}  // namespace

}  // namespace taeda::distributed

// Exceptions and the channel are used across libraries: both are built from the
// same sources, by one build.
extern "C" __attribute__((visibility("default"))) taeda::distributed::Channel*
taeda_open_gloo_channel(const taeda::distributed::Place& place,
                        taeda::distributed::Store& store,
                        taeda::distributed::Millis limit) {
  return new taeda::distributed::GlooChannel(place, store, limit);
}
