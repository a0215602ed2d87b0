// Runs backward passes as compiled stages.
#pragma once

#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/walk/walk.h>

#include <mutex>

namespace taeda::compiler {

// Makes code of graphs, and is told what happens.
class SegmentCompiler {
 public:
  virtual ~SegmentCompiler() = default;
  virtual std::unique_ptr<SegmentCode> compile(Graph graph) = 0;
  // A pass is captured that no plan was for.
  virtual void captured() {}
  // A stretch ended before the end of the pass.
  virtual void ended(const std::string& node, const std::string& reason) {
    (void)node, (void)reason;
  }
  // The engine runs the pass, or the rest of it.
  virtual void left(const std::string& reason) { (void)reason; }
};

// Fused, or call by call.
std::unique_ptr<SegmentCode> make_code(Graph graph, void (*fuse)(Graph& graph));

// Plans that were made. Threads may share them.
class PassPlans {
 public:
  // A pass that fits no plan gets one; null where there are too many.
  struct Found {
    std::shared_ptr<WalkPlan> plan;
    DimVector symbols;
  };
  Found find(const PassRecord& record, bool dynamic);
  void clear();
  // Held while a plan's stages are looked for and captured.
  std::mutex& mutex() { return mutex_; }

 private:
  using PlanList = std::vector<std::shared_ptr<WalkPlan>>;
  struct KeyHash {
    size_t operator()(const std::vector<uint64_t>& key) const;
  };
  using PlanTable =
      std::unordered_map<std::vector<uint64_t>, PlanList, KeyHash>;
  PlanTable plans_;
  std::mutex mutex_;
};

class CompiledPasses final : public autograd::PassRunner {
 public:
  CompiledPasses(PassPlans& plans, SegmentCompiler& compiler, bool dynamic)
      : plans_(plans), compiler_(compiler), dynamic_(dynamic) {}
  bool run(autograd::PassView& pass) override;

 private:
  PassPlans& plans_;
  SegmentCompiler& compiler_;
  bool dynamic_;
};

}  // namespace taeda::compiler
