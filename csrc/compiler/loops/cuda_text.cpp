#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/loops/cuda_text.h>

namespace taeda::compiler::loops {

std::vector<Var> CudaBody::packs(const std::vector<Var>& roots) const {
  std::vector<Var> found;
  for (Var v : needs_of(roots, /*with_roots=*/false).defined) {
    if (s_.is_packed(program_, v)) found.push_back(v);
  }
  for (Var v : roots) {
    if (s_.is_packed(program_, v)) found.push_back(v);
  }
  return found;
}

std::string CudaBody::address(Var v) const {
  return "&" + BodyPrinter::place(v, /*index=*/"0");
}

std::string CudaBody::place(Var v, const std::string& index) const {
  if (!s_.is_packed(program_, v)) return BodyPrinter::place(v, index);
  return message("x{}.at[e]", int64_t{v});
}

CudaText::CudaText(const Program& program, const CudaSchedule& s)
    : p_(program), s_(s), shared_(shares_memory(p_)) {
  made_.alignment = s_.alignment;
}

void CudaText::head(const CudaLaunch& launch) {
  line(message("extern \"C\" __global__ void __launch_bounds__({}) {}(",
               launch.threads,
               launch.kernel));
  std::string parameters;
  for (size_t b = 0; b < p_.buffers().size(); ++b) {
    const Buffer& buffer = p_.buffers()[b];
    if (b > 0) parameters += ", ";
    parameters += message("{}{}* {}b{}",
                          buffer.written ? "" : "const ",
                          memory_name(buffer.dtype),
                          shared_[b] ? "" : "__restrict ",
                          b);
  }
  if (made_.scratch_bytes > 0) parameters += ", unsigned char* scratch";
  line(parameters + ") {");
  line(message("using Index = {};", s_.wide ? "int64_t" : "int"));
  for (Var v = 0; v < p_.count(); ++v) {
    const Instruction& i = p_[v];
    if (i.buffer < 0) continue;
    auto b = static_cast<size_t>(i.buffer);
    line(message("{}{}* q{} = b{} + {};",
                 p_.buffers()[b].written ? "" : "const ",
                 memory_name(p_.buffers()[b].dtype),
                 int64_t{v},
                 b,
                 i.place.offset.plain()));
  }
  made_.launches.push_back(launch);
}

void CudaText::indices(const std::vector<size_t>& axes,
                       const std::string& from) {
  int64_t below = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    size_t a = axes[k];
    std::string at = below == 1 ? from : message("{} / {}", from, below);
    if (k > 0) at = message("{} % {}", at, p_.sizes()[a].plain());
    line(message("[[maybe_unused]] const Index i{} = {};", a, at));
    below *= p_.sizes()[a].plain();
  }
}

void CudaText::declare_packs(const CudaBody& body,
                             const std::vector<Var>& packs) {
  for (Var v : packs) {
    const Instruction& i = p_[v];
    ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
    line(
        message("Pack<{}, {}> x{};", memory_name(dtype), s_.width, int64_t{v}));
    if (i.op == Op::Store) continue;
    line(message("read_pack(x{}, {});", int64_t{v}, body.address(v)));
  }
}

void CudaText::elements(CudaBody& body,
                        const PassParts& parts,
                        const std::string& turn,
                        const char* guard) {
  std::vector<Var> roots = parts.stores;
  roots.insert(roots.end(), parts.sums.begin(), parts.sums.end());
  std::vector<Var> packs = body.packs(roots);
  declare_packs(body, packs);
  if (s_.width > 1) {
    line(message("const Index w = i{};", s_.pack_axis()));
    line("#pragma unroll");
    line(message("for (int e = 0; e < {}; ++e) ", s_.width) + "{");
    line(message("[[maybe_unused]] const Index i{} = w + e;", s_.pack_axis()));
  }
  line(message("[[maybe_unused]] const int k = {};",
               s_.width > 1 ? turn + " + e" : turn));
  line(body.operands_of(roots, "0"));
  for (Var v : parts.kept) {
    line(message("v{}k[k] = v{};", int64_t{v}, int64_t{v}));
  }
  for (Var v : parts.stores) {
    bool packed = s_.is_packed(p_, v);
    line((packed ? "" : guard) + body.definition(v, "0"));
  }
  for (Var v : parts.sums) line(body.fold(v, message("v{}r", int64_t{v})));
  if (s_.width > 1) line("}");
  for (Var v : packs) {
    if (p_[v].op != Op::Store) continue;
    line(message("{}write_pack(x{}, {});", guard, int64_t{v}, body.address(v)));
  }
}

}  // namespace taeda::compiler::loops
