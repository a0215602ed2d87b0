#include <taeda/csrc/distributed/group_sender.h>

#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/view_as_real.h>

namespace taeda::distributed {

BucketSender::Wait GroupSender::all_reduce(const Tensor& tensor, ReduceOp op) {
  auto group = group_.lock();
  if (!group) {
    fail(Fault::Backend,
         "DistributedDataParallel: the process group has been destroyed");
  }
  Reduction r{op, tensor.dtype()};
  check_reduction("all_reduce", r);
  if (op == ReduceOp::Avg) r.factor = 1.0 / group->place().size;
  const Head head{.bytes = tensor.nbytes(),
                  .kind = Kind::AllReduce,
                  .dtype = tensor.dtype(),
                  .op = op};
  auto body = [r, tensor](Channel& channel, const Call& call) {
    channel.all_reduce(call, r, tensor.mutable_raw_data(), tensor.numel());
  };
  auto work = group->run(
      head,
      std::move(body),
      {.async = true, .where = line_, .shape = Shape(tensor.sizes())});
  return [work = std::move(work)] { work->wait(Millis(-1)); };
}

BucketSender::Wait GroupSender::send(const Bucket& bucket) {
  Tensor buffer = bucket.buffer;
  if (buffer.is_complex()) buffer = ops::view_as_real(buffer);
  if (divisor_ == 0) return all_reduce(buffer, ReduceOp::Avg);
  // Ranks without inputs do not count.
  ops::div_(buffer, Scalar(int64_t{divisor_}));
  return all_reduce(buffer, ReduceOp::Sum);
}

BucketSender::Wait GroupSender::sum(const Tensor& numbers) {
  return all_reduce(numbers, ReduceOp::Sum);
}

}  // namespace taeda::distributed
