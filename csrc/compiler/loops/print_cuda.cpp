// Text of kernels for CUDA: which thread goes where. What stands inside of the
// loops is printed by print_body.cpp, as for the CPU.
#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/loops/cuda_text.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

// Blocks of a grid for each processor at most; then blocks go on in steps.
constexpr int64_t kBlocks = 32;
constexpr int64_t kScratchAlignment = 16;

int64_t part_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

class CudaPrinter final : CudaText {
 public:
  CudaPrinter(const Program& program,
              const CudaSchedule& s,
              const CudaDevice& device)
      : CudaText(program, s), device_(device) {
    elements_ = p_.extent(p_.reduced()).plain();
    points_ = p_.extent(p_.all_axes() & ~p_.reduced()).plain();
  }

  CudaCode print(const std::string& name) {
    if (s_.layout == CudaSchedule::kElements) {
      elements_kernel(name);
    } else if (s_.splits == 1) {
      fold_kernel(name, 0, s_.nest.passes);
    } else {
      place_partials();
      for (int pass = 0; pass <= s_.nest.passes; ++pass) {
        if (has_work(pass)) fold_kernel(str_cat(name, "_", pass), pass, pass);
      }
    }
    made_.text = any_argument(std::move(made_.text));
    return std::move(made_);
  }

 private:
  int64_t grid(int64_t blocks) const {
    return std::min(blocks, device_.processors * kBlocks);
  }

  void elements_kernel(const std::string& name) {
    int64_t count = points_ / s_.width;
    head({name, grid(part_up(count, s_.block)), 1, s_.block, 0});
    CudaBody body(p_, s_, names_);
    line(message("const Index step = static_cast<Index>(gridDim.x) * {};",
                 s_.block));
    line(message("Index t = static_cast<Index>(blockIdx.x) * {} + threadIdx.x;",
                 s_.block));
    line(message("for (; t < {}; t += step) ", count) + "{");
    line(message("const Index o = t * {};", s_.width));
    indices(s_.points, "o");
    elements(body, body.parts(0), "0", "");
    line("}\n}");
  }

  // Reductions ----------------------------------------------------------------

  std::vector<Var> sums_of(int pass) const {
    std::vector<Var> sums;
    for (Var v = 0; v < p_.count(); ++v) {
      auto at = static_cast<size_t>(v);
      if (p_[v].op == Op::Reduce && s_.nest.stage[at] == pass + 1) {
        sums.push_back(v);
      }
    }
    return sums;
  }

  // Whether a pass, or what is known before it, leaves anything in memory.
  bool has_work(int pass) const {
    if (!sums_of(pass).empty()) return true;
    for (Var v = 0; v < p_.count(); ++v) {
      bool now = s_.nest.stage[static_cast<size_t>(v)] == pass;
      if (p_[v].op == Op::Store && now) return true;
    }
    return false;
  }

  void place_partials() {
    partials_.assign(static_cast<size_t>(p_.count()), 0);
    for (Var v = 0; v < p_.count(); ++v) {
      if (p_[v].op != Op::Reduce) continue;
      partials_[static_cast<size_t>(v)] = made_.scratch_bytes;
      int64_t bytes = s_.splits * points_ * bytes_of(v);
      made_.scratch_bytes +=
          part_up(bytes, kScratchAlignment) * kScratchAlignment;
    }
  }

  int64_t bytes_of(Var v) const {
    return static_cast<int64_t>(element_size(type_of(p_[v].computes)));
  }
  // Shared memory in which the lanes meet.
  int64_t meeting_bytes() const {
    bool columns = s_.layout == CudaSchedule::kColumns;
    if (s_.lanes == 1 || (!columns && s_.lanes <= 32)) return 0;
    int64_t largest = 0;
    for (Var v = 0; v < p_.count(); ++v) {
      if (p_[v].op == Op::Reduce) largest = std::max(largest, bytes_of(v));
    }
    return largest * (columns ? s_.block : s_.block / 32);
  }

  // Passes first to last; what is known before the last one is written too.
  void fold_kernel(const std::string& name, int first, int last) {
    bool passes = first < s_.nest.passes && !sums_or_stores(first).empty();
    int64_t splits = passes ? s_.splits : 1;
    int64_t blocks = part_up(points_, s_.points_of_block());
    head({name, grid(blocks), splits, s_.block, meeting_bytes()});
    threads();
    CudaBody body(p_, s_, names_);
    line(message("for (Index base = static_cast<Index>(blockIdx.x) * {}; "
                 "base < {}; base += static_cast<Index>(gridDim.x) * {}) ",
                 s_.points_of_block(),
                 points_,
                 s_.points_of_block()) +
         "{");
    line("Index o = base + point;");
    line(message("const bool live = o < {};", points_));
    line(message("if (!live) o = {};", points_ - 1));
    indices(s_.points, "o");
    for (int stage = 0; stage <= last; ++stage) {
      row_values(body, stage, /*writes=*/stage >= first);
      if (stage < first) {
        fold_partials(body, stage);
      } else if (stage < s_.nest.passes) {
        pass(body, stage);
      }
    }
    line("}\n}");
  }

  std::vector<Var> sums_or_stores(int pass) const {
    std::vector<Var> found = sums_of(pass);
    for (Var v = 0; v < p_.count(); ++v) {
      auto at = static_cast<size_t>(v);
      bool now = s_.nest.stage[at] == pass && s_.nest.full[at];
      if (p_[v].op == Op::Store && now) found.push_back(v);
    }
    return found;
  }

  void threads() {
    int64_t points = s_.points_of_block();
    bool columns = s_.layout == CudaSchedule::kColumns;
    line(message("const int lane = threadIdx.x {} {};",
                 columns ? "/" : "%",
                 columns ? points : s_.lanes));
    line(message("const int point = threadIdx.x {} {};",
                 columns ? "%" : "/",
                 columns ? points : s_.lanes));
    if (int64_t bytes = meeting_bytes(); bytes > 0) {
      line(message("alignas(16) __shared__ unsigned char meeting[{}];", bytes));
    } else {
      line("unsigned char* const meeting = nullptr;");
    }
  }

  // What is one value for each point.
  void row_values(CudaBody& body, int stage, bool writes) {
    for (Var v = 0; v < p_.count(); ++v) {
      auto at = static_cast<size_t>(v);
      if (s_.nest.full[at] || s_.nest.stage[at] != stage) continue;
      if (p_[v].op != Op::Store) {
        line(body.definition(v, "0"));
      } else if (writes) {
        const char* one = s_.splits > 1 ? " && blockIdx.y == 0" : "";
        line(message("if (live && lane == 0{}) ", one) +
             body.definition(v, "0"));
      }
    }
  }

  void pass(CudaBody& body, int stage) {
    PassParts parts = body.parts(stage);
    if (parts.empty()) return;
    start_sums(body, parts.sums);
    for (Var v : parts.kept) {
      line(message("{} v{}k[{}];",
                   type_name(p_[v].type),
                   int64_t{v},
                   s_.turns * s_.width));
    }
    if (s_.turns > 0) {
      line("#pragma unroll");
      line(message("for (int t = 0; t < {}; ++t) ", s_.turns) + "{");
      line(
          message("const Index r = (t * {} + lane) * {};", s_.lanes, s_.width));
      line(message("if (r < {}) ", elements_) + "{");
    } else {
      part_loop();
    }
    indices(s_.folded, "r");
    elements(body,
             parts,
             s_.turns > 0 ? message("t * {}", s_.width) : "0",
             "if (live) ");
    line("}\n}");
    body.mark_kept(parts.kept);
    for (Var v : parts.sums) meet(body, v);
    if (s_.splits > 1) write_partials(parts.sums);
  }

  // The elements of a point, or of this block's part of it.
  void part_loop() {
    bool split = s_.splits > 1;
    line("{");
    std::string first = "0", last = str_cat(elements_);
    if (split) {
      line(message("const Index first = static_cast<Index>(blockIdx.y) * {};",
                   s_.part));
      line(message("const Index last = first + {} < {} ? first + {} : {};",
                   s_.part,
                   elements_,
                   s_.part,
                   elements_));
      first = "first";
      last = "last";
    }
    line(message("for (Index r = {} + lane * {}; r < {}; r += {}) ",
                 first,
                 s_.width,
                 last,
                 s_.lanes * s_.width) +
         "{");
  }

  void start_sums(CudaBody& body, const std::vector<Var>& sums) {
    for (Var v : sums) {
      line(message("{} v{}r = {};",
                   type_name(p_[v].computes),
                   int64_t{v},
                   body.initial(v)));
    }
  }

  void meet(CudaBody& body, Var v) {
    bool columns = s_.layout == CudaSchedule::kColumns;
    line(message("v{}r = meet<{}, {}, {}>(v{}r, lane, point, meeting, {});",
                 int64_t{v},
                 s_.lanes,
                 s_.points_of_block(),
                 columns ? "true" : "false",
                 int64_t{v},
                 body.meeting(v)));
  }

  std::string partials(Var v) const {
    return message("reinterpret_cast<{}*>(scratch + {})",
                   type_name(p_[v].computes),
                   partials_[static_cast<size_t>(v)]);
  }

  void write_partials(const std::vector<Var>& sums) {
    for (Var v : sums) {
      line(message("if (live && lane == 0) {}[{} * blockIdx.y + o] = v{}r;",
                   partials(v),
                   points_,
                   int64_t{v}));
    }
  }

  // The sums of a pass that an earlier kernel made.
  void fold_partials(CudaBody& body, int pass) {
    std::vector<Var> sums = sums_of(pass);
    start_sums(body, sums);
    for (Var v : sums) {
      const char* type = type_name(p_[v].computes);
      line(
          message("for (int s = lane; s < {}; s += {}) ", s_.splits, s_.lanes) +
          "{");
      line(message("v{}r = static_cast<{}>({}(v{}r, {}[{} * s + o]));",
                   int64_t{v},
                   type,
                   "(" + body.meeting(v) + ")",
                   int64_t{v},
                   partials(v),
                   points_));
      line("}");
      meet(body, v);
    }
  }

  const CudaDevice& device_;
  std::vector<int64_t> partials_;  // by reduction: bytes before its own
  int64_t elements_ = 1, points_ = 1;
};

}  // namespace

std::string cuda_prelude() {
  return "#include <taeda/aten/native/cuda/loops.cuh>\n";
}

CudaCode cuda_code(const Program& program,
                   const CudaSchedule& schedule,
                   const CudaDevice& device,
                   const std::string& name) {
  CudaCode code = CudaPrinter(program, schedule, device).print(name);
  code.text = "namespace taeda {\n" + code.text + "}  // namespace taeda\n";
  return code;
}

std::string launches_of(const CudaCode& code) {
  std::string text =
      message("// Memory at multiples of {} bytes, {} of scratch.\n",
              code.alignment,
              code.scratch_bytes);
  for (const CudaLaunch& launch : code.launches) {
    text += message("// {}: grid {} x {}, block {}, shared {}\n",
                    launch.kernel,
                    launch.blocks,
                    launch.splits,
                    launch.threads,
                    launch.shared_bytes);
  }
  return text;
}

std::vector<CudaCode> cuda_codes(const Program& program,
                                 const CudaDevice& device,
                                 const std::string& name) {
  TAEDA_CHECK_AS(NotImplemented,
                 !has_symbols(program),
                 "compile: CUDA text of loops whose sizes are symbols");
  std::vector<CudaCode> codes;
  CudaSchedule aligned = cuda_schedule(program, device, /*aligned=*/true);
  if (aligned.alignment > 1) {
    codes.push_back(cuda_code(program, aligned, device, name + "_aligned"));
  }
  CudaSchedule any = cuda_schedule(program, device, /*aligned=*/false);
  codes.push_back(cuda_code(program, any, device, name));
  return codes;
}

}  // namespace taeda::compiler::loops
