#include <taeda/csrc/compiler/graph/backwards.h>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/compiler/graph/layouts.h>
#include <taeda/csrc/compiler/graph/passes.h>

namespace taeda::compiler {

namespace {

// A program that asks for more sets of gradients gets zeros in the others.
constexpr size_t kMostPasses = 16;

}  // namespace

std::unique_ptr<const Backwards::Pass> Backwards::make(
    const TangentSet& arrived) {
  Graph joint = tape_->backward(arrived);
  // What it would decide about symbols does not hold for all calls.
  if (tape_->has_decided()) return nullptr;
  // As for the first pass, so that what was saved has the same name.
  merge_equal(joint, results_);
  std::optional<Graph> found = backward_from(joint, inputs_, saved_);
  if (!found) return nullptr;
  auto pass = std::make_unique<Pass>();
  std::vector<bool> read(found->values.size());
  for (const Node& node : found->nodes) {
    for (const Use& u : node.uses) read[static_cast<size_t>(u.value)] = true;
  }
  for (ValueId id : found->outputs) {
    if (id != kNoValue) read[static_cast<size_t>(id)] = true;
  }
  for (size_t i = 0; i < saved_.size(); ++i) {
    pass->reads.push_back(read[static_cast<size_t>(found->inputs[i])]);
  }
  if (options_.layouts) {
    choose_layouts(*found, {.fixed = found->outputs.size(), .turned = turned_});
  }
  if (options_.fuse) options_.fuse(*found);
  check(*found);
  pass->executor = std::make_unique<Executor>(std::move(*found));
  return pass;
}

const Backwards::Pass* Backwards::of(const TangentSet& arrived) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto known = passes_.find(arrived);
  if (known != passes_.end()) return known->second.get();
  // Whoever traces this pass, as compiled autograd does, is not to see how its
  // graph is made.
  std::optional<BelowLevel> outside;
  if (!levels().empty()) outside.emplace(*levels().front());
  if (passes_.size() >= kMostPasses || is_watched()) return nullptr;
  auto made = make(arrived);
  return passes_.emplace(arrived, std::move(made)).first->second.get();
}

}  // namespace taeda::compiler
