// Kernels written by hand that take an operator's arguments as they are.
#include <taeda/aten/core/memory.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/c10/cuda/generator.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace taeda::cuda {

// The body runs for each element of the first result.
struct Written {
  const char* op;
  const char* header;
  const char* body;
  // How many blocks of words an element draws from a subsequence of its own,
  // as a rule; 0 where all share those of Note [Draws on a device].
  int blocks = 0;
};

namespace {

constexpr const char* kProduct =
    "g.result.write(i, product_at(g.self, g.mat2, g.result, i));";
constexpr const char* kUniform = "uniform_at(g, i, 0, 1);";
constexpr const char* kNormal = "normal_at(g, i, 0, 1);";
// normal, by what are tensors.
constexpr const char* kOfNumbers =
    "normal_at(g, i, g.mean.real(), g.std.real());";
constexpr const char* kOfMeans =
    "normal_at(g, i, chance_of(g.mean, g.result, i), g.std.real());";
constexpr const char* kOfSpreads =
    "normal_at(g, i, g.mean.real(), chance_of(g.std, g.result, i));";
constexpr const char* kOfBoth =
    "normal_at(g, i, chance_of(g.mean, g.result, i),"
    " chance_of(g.std, g.result, i));";
constexpr const char* kBelow = "integer_at(g, i, 0, g.high.integer());";
constexpr const char* kBetween =
    "integer_at(g, i, g.low.integer(), g.high.integer() - g.low.integer());";

constexpr Written kWritten[] = {
    {"mm", "products", kProduct},
    {"bmm", "products", kProduct},
    {"mv", "products", "g.result.write(i, inner(g.self, g.vec, 0, i, 0));"},
    {"addmm",
     "products",
     "write_sum(g, i, product_at(g.mat1, g.mat2, g.result, i));"},
    {"baddbmm",
     "products",
     "write_sum(g, i, product_at(g.batch1, g.batch2, g.result, i));"},
    {"addmv", "products", "write_sum(g, i, inner(g.mat, g.vec, 0, i, 0));"},

    {"convolution", "layers", "convolution_at(g, i);"},
    {"col2im", "layers", "col2im_at(g, i);"},
    {"max_pool2d_with_indices",
     "layers",
     "max_pool_at<2>(g, g.out0, g.out1, i);"},
    {"max_pool3d_with_indices",
     "layers",
     "max_pool_at<3>(g, g.out0, g.out1, i);"},
    {"adaptive_max_pool2d",
     "layers",
     "adaptive_max_at<2>(g, g.out0, g.out1, i);"},
    {"adaptive_max_pool3d",
     "layers",
     "adaptive_max_at<3>(g, g.out0, g.out1, i);"},
    {"_adaptive_avg_pool2d", "layers", "adaptive_mean_at<2>(g, i);"},
    {"_adaptive_avg_pool3d", "layers", "adaptive_mean_at<3>(g, i);"},
    {"_adaptive_avg_pool2d_backward",
     "pooling_gradients",
     "adaptive_mean_back_at<2>(g, i);"},
    {"_adaptive_avg_pool3d_backward",
     "pooling_gradients",
     "adaptive_mean_back_at<3>(g, i);"},
    {"avg_pool2d", "layers", "mean_pool_at<2>(g, i);"},
    {"avg_pool3d", "layers", "mean_pool_at<3>(g, i);"},
    {"avg_pool2d_backward", "pooling_gradients", "mean_pool_back_at<2>(g, i);"},
    {"avg_pool3d_backward", "pooling_gradients", "mean_pool_back_at<3>(g, i);"},

    {"_embedding_bag_per_sample_weights_backward",
     "sequences",
     "bag_factor_back_at(g, i);"},
    {"fractional_max_pool2d",
     "layers",
     "fractional_max_at<2>(g, g.out0, g.out1, i);"},
    {"fractional_max_pool3d",
     "layers",
     "fractional_max_at<3>(g, g.out0, g.out1, i);"},
    {"_cdist_forward", "distances", "cdist_at(g, i);"},
    {"_cdist_backward", "distances", "cdist_back_at(g, i);"},
    {"_pdist_forward", "distances", "pdist_at(g, i);"},
    {"_pdist_backward", "distances", "pdist_back_at(g, i);"},
    {"multi_margin_loss", "distances", "multi_margin_at(g, i);"},
    {"multi_margin_loss_backward", "distances", "multi_margin_back_at(g, i);"},
    {"multilabel_margin_loss_forward",
     "distances",
     "multilabel_margin_at(g, i);"},
    {"multilabel_margin_loss_backward",
     "distances",
     "multilabel_margin_back_at(g, i);"},
    {"grid_sampler_2d", "sampling", "sampled_at<2>(g, i);"},
    {"grid_sampler_3d", "sampling", "sampled_at<3>(g, i);"},
    {"frexp.Tensor", "counting", "frexp_at(g, i);"},

    {"rand", "random", kUniform},
    {"rand.generator", "random", kUniform},
    {"rand.out", "random", kUniform},
    {"rand.generator_out", "random", kUniform},
    {"rand_like", "random", kUniform},
    {"rand_like.generator", "random", kUniform},
    {"randn", "random", kNormal},
    {"randn.generator", "random", kNormal},
    {"randn.out", "random", kNormal},
    {"randn.generator_out", "random", kNormal},
    {"randn_like", "random", kNormal},
    {"randn_like.generator", "random", kNormal},
    {"randint", "random", kBelow},
    {"randint.generator", "random", kBelow},
    {"randint.low", "random", kBetween},
    {"randint.low_generator", "random", kBetween},
    {"randint_like", "random", kBelow},
    {"randint_like.generator", "random", kBelow},
    {"randint_like.low_dtype", "random", kBetween},
    {"randint_like.low_generator_dtype", "random", kBetween},
    {"uniform_", "random", "uniform_at(g, i, g.from.real(), g.to.real());"},
    {"normal_", "random", kOfNumbers},
    {"normal_functional", "random", kOfNumbers},
    {"normal.float_float", "random", kOfNumbers},
    {"normal.float_float_out", "random", kOfNumbers},
    {"normal.Tensor_float", "random", kOfMeans},
    {"normal.Tensor_float_out", "random", kOfMeans},
    {"normal.float_Tensor", "random", kOfSpreads},
    {"normal.float_Tensor_out", "random", kOfSpreads},
    {"normal.Tensor_Tensor", "random", kOfBoth},
    {"normal.Tensor_Tensor_out", "random", kOfBoth},
    {"random_",
     "random",
     "integer_at(g, i, 0, integers_of<decltype(g.result)::Stored>());"},
    {"random_.to", "random", "integer_at(g, i, 0, g.to.integer());"},
    {"random_.from",
     "random",
     "integer_at(g, i, g.from.integer(),"
     " g.to.missing ? integers_of<decltype(g.result)::Stored>() -"
     " g.from.integer() : g.to.integer() - g.from.integer());"},
    {"bernoulli", "random", "chance_at(g, i, g.self.flat(i));"},
    {"bernoulli.out", "random", "chance_at(g, i, g.self.flat(i));"},
    {"bernoulli.p", "random", "chance_at(g, i, g.p.real());"},
    {"bernoulli_.float", "random", "chance_at(g, i, g.p.real());"},
    {"bernoulli_.Tensor",
     "random",
     "chance_at(g, i, chance_of(g.p, g.result, i));"},
    {"native_dropout", "random", "dropout_at(g, i);"},
    {"exponential_",
     "random",
     "g.result.write(i, exponential_of(g, i) / g.lambd.real());"},
    {"geometric_",
     "random",
     "g.result.write(i, 1 + math::floor(exponential_of(g, i) /"
     " -math::log1p(-g.p.real())));"},
    {"cauchy_",
     "random",
     "g.result.write(i, g.median.real() + g.sigma.real() *"
     " math::tan_any(3.141592653589793 * (drawn(g, i) - 0.5)));"},
    {"log_normal_",
     "random",
     "g.result.write(i, math::exp(g.mean.real() + g.std.real() *"
     " normal_of<DrawnAs<decltype(g.result)::Stored>>(g, i)));"},
    {"poisson", "distributions", "poisson_at(g, i);", 16},
    {"binomial", "distributions", "binomial_at(g, i);", 16},
    {"_standard_gamma", "distributions", "gamma_at(g, i);", 8},
};

const IValue* argument(const OperatorEntry& op,
                       const IValue* values,
                       std::initializer_list<std::string_view> names) {
  ArrayRef<ArgInfo> arguments = arguments_of(*op.info);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view own = name_of(arguments[i], op.schema);
    bool named = std::find(names.begin(), names.end(), own) != names.end();
    if (named && !values[i].is_none()) return &values[i];
  }
  return nullptr;
}

// Whether whole numbers take 64 bits each, as PyTorch draws them: ranges from
// 2^28 on, and all that a wide type can hold.
bool draws_wide(const OperatorEntry& op, const IValue* values, ScalarType t) {
  const IValue* low = argument(op, values, {"low", "from"});
  const IValue* high = argument(op, values, {"high", "to"});
  if (high == nullptr) {
    return t == kLong || t == kDouble || (t == kInt && low != nullptr);
  }
  if (!high->is<int64_t>()) return false;
  auto first = low == nullptr ? 0 : static_cast<uint64_t>(low->get<int64_t>());
  return static_cast<uint64_t>(high->get<int64_t>()) - first >= 1u << 28;
}

Given number(const char* name, int64_t value) {
  Given given;
  given.name = name;
  given.integer = value;
  return given;
}

// Where seed and offset stand when the call is part of a graph; none else.
Given recorded_state(const Draws& draws, Device device) {
  Given given;
  given.name = "state";
  given.type = Given::Type::Tensor;
  given.missing = draws.state == 0;
  if (given.missing) return given;
  constexpr int64_t kWords[] = {2};
  DataPtr memory{reinterpret_cast<void*>(draws.state), nullptr, nullptr};
  constexpr int64_t kSteps[] = {1};
  given.tensor = over_memory(memory, 16, kLong, kWords, kSteps, device);
  return given;
}

// Where the call draws from, as slots of its kernel.
void add_draws(GivenCall& call,
               const OperatorEntry& op,
               const IValue* values,
               const TensorBase& result,
               int64_t blocks) {
  const IValue* given = argument(op, values, {"generator"});
  ScalarType dtype = result.dtype();
  bool wide = draws_wide(op, values, dtype);
  bool long_words = wide || dtype == kDouble || dtype == kComplexDouble;
  int64_t count = result.numel() * (is_complex(dtype) ? 2 : 1);
  if (blocks > 0) count = 1;
  Draws draws = take_draws(given ? given->get<Generator>() : Generator(),
                           result.device().index,
                           count,
                           long_words ? 2 : 4,
                           std::max<int64_t>(blocks, 1));
  call.slots.insert(call.slots.begin(),
                    {number("seed", static_cast<int64_t>(draws.seed)),
                     number("offset", static_cast<int64_t>(draws.offset)),
                     number("threads", draws.threads),
                     number("wide", wide ? 1 : 0),
                     recorded_state(draws, result.device())});
}

std::string name_of(const OperatorEntry& op) {
  std::string name = op.name;
  if (*op.overload != '\0') name += str_cat(".", op.overload);
  return name;
}

}  // namespace

const Written* written_kernel(const OperatorEntry& op) {
  std::string name = name_of(op);
  auto found = std::find_if(std::begin(kWritten),
                            std::end(kWritten),
                            [&](const Written& w) { return name == w.op; });
  return found == std::end(kWritten) ? nullptr : found;
}

void run_written(const OperatorEntry& op,
                 const Written& kernel,
                 const IValue* values,
                 const std::vector<TensorBase>& results) {
  GivenCall call;
  call.op = op.name;
  call.formula = &kernel;
  call.slots = slots_of(op, values, results);
  call.header = header_text(kernel.header);
  call.body = kernel.body;
  if (op.info->has(OpTag::NondeterministicSeeded)) {
    add_draws(call, op, values, results[0], kernel.blocks);
  }
  call.count = results[0].numel();
  run_given(call);
}

}  // namespace taeda::cuda
