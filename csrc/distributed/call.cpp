#include <taeda/csrc/distributed/call.h>

namespace taeda::distributed {

const char* name_of(Kind kind) {
  constexpr std::array names{"nothing",
                             "all_reduce",
                             "broadcast",
                             "reduce",
                             "all_gather",
                             "gather",
                             "scatter",
                             "reduce_scatter",
                             "all_to_all",
                             "barrier",
                             "send",
                             "recv"};
  const auto index = static_cast<size_t>(kind);
  return index < names.size() ? names[index] : "unknown";
}

std::string describe(const Head& head) {
  std::string text = str_cat(name_of(head.kind), " #", head.sequence);
  if (head.kind == Kind::Barrier || head.kind == Kind::None) return text;
  text += str_cat(" of ", dtype_name(head.dtype));
  if (head.bytes != 0) text += str_cat(", ", head.bytes, " bytes");
  const bool reduces = head.kind == Kind::AllReduce ||
                       head.kind == Kind::Reduce ||
                       head.kind == Kind::ReduceScatter;
  if (reduces) text += str_cat(", ", name_of(head.op));
  if (head.root >= 0) text += str_cat(", root ", head.root);
  return text;
}

}  // namespace taeda::distributed
