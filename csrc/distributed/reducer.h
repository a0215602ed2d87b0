// Averages a model's gradients over ranks while the backward pass goes on.
// See Note [A pass of the reducer].
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <functional>
#include <mutex>
#include <unordered_map>

namespace taeda::distributed {

TAEDA_INTERNAL_NAMES

// Gradients that travel together.
struct Bucket {
  size_t index = 0;             // in the order of sending
  std::vector<size_t> numbers;  // of its parameters
  Tensor buffer;                // all gradients in one dimension
  std::vector<Tensor> views;    // of the buffer, of the parameters' shapes
  size_t left = 0;              // gradients of this pass that have not come
  bool is_last = false;
  // One parameter, whose gradient is a sparse tensor: that is the buffer, and
  // there are no views.
  bool is_sparse = false;
};

// How buckets travel. All ranks call these in one order.
class BucketSender {
 public:
  virtual ~BucketSender() = default;
  // Waits until the buffer holds the average.
  using Wait = std::function<void()>;
  virtual Wait send(const Bucket& bucket) = 0;
  // Adds up integers in place.
  virtual Wait sum(const Tensor& numbers) = 0;
};

struct ReducerOptions {
  std::vector<int64_t> limits;  // see cut_into_buckets
  bool find_unused = false;     // look in each graph what it does not reach
  bool static_graph = false;    // the first pass tells what each one reaches
  bool views = false;           // gradients are views of the buckets
  std::optional<ScalarType> dtype;  // of buckets; the parameters' by default
  std::vector<bool> sparse;         // of each parameter; empty where none is
  std::vector<std::string> names;   // for errors; empty: only numbers
  bool tells_names = false;         // the text says which were not reached
  int rank = 0;
  Device own_device;  // of what the ranks tell each other beside gradients
};

// Numbers of parameters cut into buckets of one dtype and device, in order.
// `limits` are bytes of the first buckets, the last of them holds for the rest:
// the first is small so as to be sent early.
std::vector<std::vector<size_t>> cut_into_buckets(
    TensorList parameters,
    const std::vector<size_t>& order,
    const ReducerOptions& options);

class Reducer final : public std::enable_shared_from_this<Reducer> {
 public:
  // The parameters are leaves that require gradients, each once.
  static std::shared_ptr<Reducer> make(std::vector<Tensor> parameters,
                                       ReducerOptions options,
                                       std::shared_ptr<BucketSender> sender);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // After a forward pass whose gradients are to be averaged.
  void prepare(TensorList outputs);
  // After one whose gradients stay here.
  void skip();
  // Raises where the pass before left parameters without a gradient.
  void check_finished() const;

  // Once, after the first pass: the order in which gradients arrived.
  std::optional<std::vector<size_t>> take_order();
  // New buckets, in an order on which the ranks have agreed.
  void set_order(const std::vector<size_t>& order);

  // What a rank that has no more inputs does while others go on.
  void shadow();
  void remove_hooks();
  std::vector<size_t> bucket_bytes() const;

 private:
  struct Home {
    size_t bucket;
    size_t place;
  };
  struct Hook;
  struct Sink;
  Reducer(std::vector<Tensor> parameters,
          ReducerOptions options,
          std::shared_ptr<BucketSender> sender);
  void add_hooks();
  void make_buckets(std::vector<std::vector<size_t>> lists);
  Bucket make_bucket(std::vector<size_t> numbers) const;

  bool learns_graph() const {
    return options_.static_graph && !graph_is_known_;
  }
  bool tells_used() const {
    return options_.static_graph ? !use_is_known_ : options_.find_unused;
  }
  void find_missing(TensorList outputs);
  void watch(TensorList outputs);
  void arrived(size_t number);
  void ready(size_t number);
  void take(Bucket& bucket, size_t place);
  void send_complete();
  void queue_end();
  void end();
  void learn_graph();
  Tensor used_here() const;
  void take_used(const Tensor& flags);
  void receive(Bucket& bucket);
  std::string named(size_t number) const;
  [[noreturn]] void fail_twice(size_t number) const;

  const std::vector<Tensor> parameters_;
  const ReducerOptions options_;
  const std::shared_ptr<BucketSender> sender_;
  std::unordered_map<const TensorImpl*, size_t> numbers_;
  std::vector<std::shared_ptr<Hook>> hooks_;

  // Guards all below. A hook of the program that sends a bucket may ask for
  // what stands here, hence recursive.
  mutable std::recursive_mutex mutex_;
  std::vector<Bucket> buckets_;
  std::vector<Home> homes_;  // by number
  std::vector<size_t> arrivals_;
  std::vector<bool> seen_;     // gradients of this pass that are in a bucket
  std::vector<bool> missing_;  // unused here, in this pass
  std::vector<bool> used_;     // by some rank
  // Of a static graph: how often a parameter is arrived at in each pass, and
  // how often it still will be in this one.
  std::vector<int> visits_;
  std::vector<int> visits_left_;
  std::vector<BucketSender::Wait> waits_;  // of buckets that were sent
  BucketSender::Wait used_wait_;
  Tensor used_flags_;
  size_t next_bucket_ = 0;
  uint64_t pass_ = 0;
  bool active_ = false;         // gradients that arrive are of interest
  bool has_begun_ = false;      // some have arrived
  bool end_is_queued_ = false;  // end() will be called
  bool has_finished_ = false;   // some pass
  bool is_first_order_ = true;
  // Of a static graph. Who joined before it had a batch of its own knows what
  // the others use, and will learn what it reaches itself.
  bool use_is_known_ = false;
  bool graph_is_known_ = false;
};

}  // namespace taeda::distributed
