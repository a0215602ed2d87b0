// Buckets of gradients over a group of this module.
#pragma once

#include <taeda/csrc/distributed/group.h>
#include <taeda/csrc/distributed/reducer.h>

namespace taeda::distributed {

class GroupSender final : public BucketSender {
 public:
  // The group may go before this; sending raises then.
  explicit GroupSender(const std::shared_ptr<Group>& group) : group_(group) {}
  Wait send(const Bucket& bucket) override;
  Wait sum(const Tensor& numbers) override;

  // Sums are divided by this many ranks; by all of the group if 0.
  void set_divisor(int ranks) { divisor_ = ranks; }
  // The caller's line, for the record.
  void set_line(std::string line) { line_ = std::move(line); }

 private:
  Wait all_reduce(const Tensor& tensor, ReduceOp op);

  std::weak_ptr<Group> group_;
  int divisor_ = 0;
  std::string line_;
};

}  // namespace taeda::distributed
