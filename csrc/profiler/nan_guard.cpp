#include <taeda/csrc/profiler/nan_guard.h>

#include <taeda/aten/core/level.h>
#include <taeda/aten/core/observe.h>
#include <taeda/csrc/autograd/observe.h>
#include <taeda/csrc/profiler/finite.h>
#include <taeda/csrc/profiler/recorder.h>

#include <array>
#include <cmath>

namespace taeda::profiler {

namespace {

// Where a node was made, by its number; older ones give way.
struct Site {
  uint64_t sequence = ~uint64_t{0};
  uint32_t stack = 0;
  int64_t module = -1;
};
constexpr size_t kSites = size_t{1} << 14;

// All of a thread's own.
struct Thread {
  std::vector<Site> sites{kSites};
  std::vector<autograd::Tensors> given;  // to the nodes that run
  int64_t module = -1;
};
Thread& here() {
  thread_local Thread thread;
  return thread;
}

GuardOptions guard;  // written by start_guard alone, before calls are seen

bool is_bad(const TensorBase& t) {
  if (!has_bad(t)) return false;
  return guard.infinities || count_bad(t).nans != 0;
}

bool is_bad(const IValue& v) {
  if (v.is<double>()) return !std::isfinite(v.get<double>());
  bool bad = false;
  each_tensor(const_cast<IValue&>(v),
              [&](const TensorBase& t) { bad = bad || is_bad(t); });
  return bad;
}

std::string text(const IValue& v) {
  std::string out;
  each_tensor(const_cast<IValue&>(v), [&](const TensorBase& t) {
    out += str_cat(out.empty() ? "" : ", ", dtype_name(t.dtype()), t.sizes());
  });
  return out;
}

[[noreturn]] void blame(const std::string& who,
                        const TensorBase& bad,
                        const std::string& arguments,
                        const Site& site) {
  BadValues n = count_bad(bad);
  std::string where =
      guard.place == nullptr ? "" : guard.place(site.stack, site.module);
  TAEDA_CHECK(false,
              "nan_guard: ",
              who,
              " made ",
              n.nans,
              " NaN and ",
              n.infinities,
              " inf of ",
              bad.numel(),
              " values, of shape ",
              bad.sizes(),
              " and dtype ",
              dtype_name(bad.dtype()),
              ", from (",
              arguments,
              "), which are finite",
              where);
}

Site this_site() {
  uint32_t stack = capture_stack == nullptr ? 0 : capture_stack();
  return {autograd::next_sequence_nr() - 1, stack, here().module};
}

class CallGuard final : public observe::Observer {
 public:
  // The token: 1 and the number of the next node; 0 where the call is not
  // looked at.
  void begins(observe::Frame& frame) override {
    bool inside = frame.outer != nullptr || !here().given.empty();
    frame.token = inside ? 0 : 1 + autograd::next_sequence_nr();
  }
  void gives(observe::Frame& frame, const observe::Values& results) override {
    if (frame.token == 0) return;
    if (autograd::next_sequence_nr() + 1 != frame.token) {
      Site site = this_site();
      for (uint64_t s = frame.token - 1; s <= site.sequence; ++s) {
        here().sites[s % kSites] = {s, site.stack, site.module};
      }
    }
    if (leaves_out(*frame.op)) return;
    Stack values;
    for (size_t i = 0; i < results.count; ++i) {
      if (const TensorBase* t = results.tensor(i)) {
        if (t->defined() && is_bad(*t)) look_closer(frame, *t);
      } else {
        results.push[i](values, results.at[i]);
      }
    }
    each_tensor(std::span(values), [&](const TensorBase& t) {
      if (is_bad(t)) look_closer(frame, t);
    });
  }
  void ends(observe::Frame&) noexcept override {}

 private:
  static bool leaves_out(const OperatorEntry& op) {
    std::string_view name = op.name;
    return op.info->record->family == Family::View ||
           name.find("empty") != name.npos || name.find("resize") == 0;
  }
  static void look_closer(const observe::Frame& frame, const TensorBase& bad) {
    Stack values;
    frame.arguments.push_to(values);
    const OperatorEntry& op = *frame.op;
    std::string arguments;
    for (size_t i = 0; i < values.size(); ++i) {
      bool written = i >= op.written_first &&
                     i < size_t{op.written_first} + op.written_count;
      if (!written && is_bad(values[i])) return;
      std::string own = text(values[i]);
      if (own.empty()) continue;
      arguments += str_cat(arguments.empty() ? "" : ", ", own);
    }
    std::string who = op.qualified_name();
    blame(who.substr(0, who.find('.')), bad, arguments, this_site());
  }
};

class NodeGuard final : public autograd::NodeObserver {
 public:
  uint64_t evaluates(const autograd::Node&) override { return 0; }
  void evaluated(uint64_t) noexcept override {}
  uint64_t applies(const autograd::Node&,
                   const autograd::Tensors& grads) override {
    here().given.push_back(grads);
    return here().given.size();
  }
  void applied(const autograd::Node& node,
               uint64_t depth,
               const autograd::Tensors* outputs) override {
    if (depth == 0 || here().given.size() < depth) return;
    autograd::Tensors given = std::move(here().given[depth - 1]);
    here().given.resize(depth - 1);
    if (outputs == nullptr) return;
    for (const TensorBase& t : *outputs) {
      if (t.defined() && is_bad(t)) look_closer(node, given, t);
    }
  }

 private:
  static void look_closer(const autograd::Node& node,
                          const autograd::Tensors& given,
                          const TensorBase& bad) {
    std::string arguments;
    for (const TensorBase& t : given) {
      if (!t.defined()) continue;
      if (is_bad(t)) return;
      arguments += str_cat(arguments.empty() ? "gradients " : ", ",
                           dtype_name(t.dtype()),
                           t.sizes());
    }
    Site site = here().sites[node.sequence_nr() % kSites];
    if (site.sequence != node.sequence_nr()) site = Site();
    blame(str_cat(node.name(), " (backward of ", operator_name(node), ")"),
          bad,
          arguments,
          site);
  }
};

CallGuard& call_guard() {
  static auto* observer = new CallGuard;
  return *observer;
}
NodeGuard& node_guard() {
  static auto* observer = new NodeGuard;
  return *observer;
}

}  // namespace

void start_guard(const GuardOptions& options) {
  observe::set_observer(call_guard(), "nan_guard");
  guard = options;
  autograd::node_observer = &node_guard();
}

void stop_guard() {
  observe::clear_observer(call_guard());
  autograd::NodeObserver* own = &node_guard();
  autograd::node_observer.compare_exchange_strong(own, nullptr);
}

int64_t exchange_module(int64_t module) {
  return std::exchange(here().module, module);
}

}  // namespace taeda::profiler
