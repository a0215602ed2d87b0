#include <taeda/aten/iter/symbolic.h>
#include <taeda/csrc/compiler/loops/meta_call.h>

#include <algorithm>

namespace taeda::compiler::loops {

MetaCall::MetaCall(const Graph& graph, const Node& node, ShapeEnv* env)
    : env_(env), node_(node), arguments_(node.arguments) {
  for (const Use& u : node.uses) inputs_.push_back(meta(graph[u.value]));
  for (IValue& v : arguments_) {
    if (v.is<SymInt>()) v = moved(v.get<SymInt>());
    if (v.is<std::vector<SymInt>>()) v = moved(v.get<std::vector<SymInt>>());
  }
}

Stack MetaCall::stack(std::span<const TensorBase> given) const {
  Stack stack(arguments_.begin(), arguments_.end());
  for (size_t i = 0; i < given.size(); ++i) {
    stack[node_.uses[i].argument] = given[i];
  }
  return stack;
}

SymInt MetaCall::moved(const SymInt& v) const {
  return v.is_symbolic() && env_ != nullptr ? env_->wrap(v.node()->id) : v;
}

std::vector<SymInt> MetaCall::moved(const std::vector<SymInt>& list) const {
  std::vector<SymInt> out;
  for (const SymInt& v : list) out.push_back(moved(v));
  return out;
}

TensorBase MetaCall::meta(const Value& v) const {
  if (!all_plain(v.sizes) || !all_plain(v.strides)) {
    return make_symbolic_tensor(moved(v.sizes), moved(v.strides), v.dtype);
  }
  return make_tensor_strided("compile",
                             as_plain(v.sizes),
                             as_plain(v.strides),
                             v.dtype,
                             DeviceType::Meta);
}

bool has_plain_sizes(const Graph& graph, const Node& node) {
  auto plain_value = [&](const Use& u) {
    const Value& v = graph[u.value];
    return all_plain(v.sizes) && all_plain(v.strides);
  };
  auto plain_argument = [](const IValue& v) {
    if (v.is<SymInt>()) return !v.get<SymInt>().is_symbolic();
    if (!v.is<std::vector<SymInt>>()) return true;
    return all_plain(v.get<std::vector<SymInt>>());
  };
  return std::all_of(node.uses.begin(), node.uses.end(), plain_value) &&
         std::all_of(
             node.arguments.begin(), node.arguments.end(), plain_argument);
}

}  // namespace taeda::compiler::loops
