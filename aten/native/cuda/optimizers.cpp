// Fused optimizers on the device.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/tables.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

constexpr unsigned kThreads = 256;

// Of the call; the lists of state follow the gradients.
struct Step {
  const char* op;
  const char* rule;
  OptimizerCall call{};
  Tensor rate{}, grad_scale{}, found_inf{};
};

Tensor or_none(const OptionalTensor& t) {
  return t && t->defined() ? Tensor(*t) : Tensor();
}

// Collects rows whose tensors lie alike; what does not is copied, and copied
// back after the step.
class Lists {
 public:
  Lists(const Step& step, TensorList params) : step_(step), params_(params) {}

  void add(int list, TensorList tensors, bool written) {
    TAEDA_CHECK(tensors.size() == params_.size(),
                step_.op,
                ": expected one tensor per parameter (",
                params_.size(),
                "), got ",
                tensors.size());
    rows.resize(params_.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      rows[i].numel = params_[i].numel();
      rows[i].memory[list] = memory(tensors[i], params_[i], written);
    }
  }
  void write_back() const {
    for (const auto& [target, copy] : copies_) copy_into(target, copy);
  }
  std::vector<TableRow> rows;

 private:
  void* memory(const Tensor& t, const Tensor& param, bool written) {
    TAEDA_CHECK(t.sizes() == param.sizes(),
                step_.op,
                ": expected a tensor of the parameter's shape ",
                param.sizes(),
                ", got ",
                t.sizes());
    TAEDA_CHECK(param.dtype() == params_[0].dtype(),
                step_.op,
                ": params must all have one dtype, found ",
                param.dtype());
    if (written) {
      derived::check_writable(t);
      t.impl()->bump_version();
    }
    bool dense = param.is_non_overlapping_and_dense();
    if (t.dtype() == param.dtype() && dense && t.strides() == param.strides()) {
      return const_cast<void*>(t.const_raw_data());
    }
    Tensor copy =
        dense ? make_tensor_strided(step_.op,
                                    param.sizes(),
                                    param.strides(),
                                    param.dtype(),
                                    param.device())
              : make_tensor(
                    step_.op, param.sizes(), param.dtype(), param.device());
    copy_into(copy, t);
    if (written) {
      copies_.emplace_back(t, copy);
    } else {
      kept_.push_back(copy);
    }
    return copy.mutable_raw_data();
  }

  const Step& step_;
  TensorList params_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
  std::vector<Tensor> kept_;
};

// Counts on the device are read there; those of the CPU are numbers already.
void set_count(OptimizerCall& call, int place, const Tensor& count) {
  call.step[place] = nullptr;
  if (count.is_cpu()) {
    Scalar value = Scalar::load(count.dtype(), count.const_raw_data());
    call.count[place] = static_cast<float>(value.to_double());
  } else {
    call.step[place] = static_cast<const float*>(count.const_raw_data());
  }
}

void run(Step& step,
         TensorList params,
         TensorList grads,
         std::initializer_list<TensorList> state,
         TensorList counts) {
  if (params.empty()) return;
  Device device = params[0].device();
  DeviceGuard guard(device.index);
  OptimizerCall& call = step.call;
  Lists lists(step, params);
  lists.add(0, params, true);
  lists.add(1, grads, step.grad_scale.defined());
  int list = 2;
  for (TensorList tensors : state) {
    if (!tensors.empty()) lists.add(list, tensors, true);
    ++list;
  }
  if (step.rate.defined() && step.rate.is_cpu()) {
    call.lr =
        Scalar::load(step.rate.dtype(), step.rate.const_raw_data()).to_double();
    step.rate = Tensor();
  }
  auto memory = [](const Tensor& t) -> const float* {
    if (!t.defined()) return nullptr;
    return static_cast<const float*>(t.const_raw_data());
  };
  call.rate = memory(step.rate);
  call.grad_scale = memory(step.grad_scale);
  call.found_inf = memory(step.found_inf);
  ScalarType t = params[0].dtype();
  if (!is_floating(t)) not_implemented_for(step.op, t);
  TemplateArgument arguments[] = {
      step.rule, t, step.rate.defined() ? step.rate.dtype() : kFloat};
  std::vector<Tensor> kept;
  for_tables(
      lists.rows, [&](const TensorTable& table, size_t first, unsigned chunks) {
        call.table = table;
        for (int i = 0; i < table.tensors && !counts.empty(); ++i) {
          Tensor count = counts[first + static_cast<size_t>(i)];
          if (count.is_cuda() && count.dtype() != kFloat) {
            Tensor made = make_tensor(step.op, count.sizes(), kFloat, device);
            copy_into(made, count);
            kept.push_back(made);
            count = made;
          }
          set_count(call, i, count);
        }
        if (chunks == 0) return;
        run_blocks({step.op, "optimizers", "optimizer_step", "OptimizerCall"},
                   arguments,
                   Grid{chunks, 1, kThreads},
                   &call);
      });
  lists.write_back();
}

template <class Rate>
void set_rate(Step& step, const Rate& lr) {
  if constexpr (std::is_same_v<Rate, double>) {
    step.call.lr = lr;
  } else {
    step.rate = lr;
  }
}

template <class Rate>
void sgd(TensorList self,
         TensorList grads,
         TensorList buffers,
         double weight_decay,
         double momentum,
         Rate lr,
         double dampening,
         bool nesterov,
         bool maximize,
         bool is_first_step,
         const OptionalTensor& grad_scale,
         const OptionalTensor& found_inf) {
  Step step{"_fused_sgd_", "SgdRule"};
  set_rate<std::decay_t<Rate>>(step, lr);
  OptimizerCall& c = step.call;
  c.weight_decay = weight_decay;
  c.momentum = momentum;
  c.dampening = dampening;
  c.nesterov = nesterov ? 1 : 0;
  c.maximize = maximize ? 1 : 0;
  c.first = is_first_step ? 1 : 0;
  step.grad_scale = or_none(grad_scale);
  step.found_inf = or_none(found_inf);
  run(step, self, grads, {momentum == 0 ? TensorList() : buffers}, {});
}

template <class Rate, bool kDecoupled>
void adam(TensorList self,
          TensorList grads,
          TensorList means,
          TensorList squares,
          TensorList largest,
          TensorList counts,
          Rate lr,
          double beta1,
          double beta2,
          double weight_decay,
          double eps,
          bool amsgrad,
          bool maximize,
          const OptionalTensor& grad_scale,
          const OptionalTensor& found_inf) {
  Step step{kDecoupled ? "_fused_adamw_" : "_fused_adam_", "AdamRule"};
  set_rate<std::decay_t<Rate>>(step, lr);
  OptimizerCall& c = step.call;
  c.beta1 = beta1;
  c.beta2 = beta2;
  c.weight_decay = weight_decay;
  c.eps = eps;
  c.maximize = maximize ? 1 : 0;
  c.decoupled = kDecoupled ? 1 : 0;
  step.grad_scale = or_none(grad_scale);
  step.found_inf = or_none(found_inf);
  TensorList top = amsgrad ? largest : TensorList();
  run(step, self, grads, {means, squares, top}, counts);
}

template <class Rate>
void adagrad(TensorList self,
             TensorList grads,
             TensorList sums,
             TensorList counts,
             Rate lr,
             double lr_decay,
             double weight_decay,
             double eps,
             bool maximize,
             const OptionalTensor& grad_scale,
             const OptionalTensor& found_inf) {
  Step step{"_fused_adagrad_", "AdagradRule"};
  set_rate<std::decay_t<Rate>>(step, lr);
  OptimizerCall& c = step.call;
  c.momentum = lr_decay;  // the rule's third number
  c.weight_decay = weight_decay;
  c.eps = eps;
  c.maximize = maximize ? 1 : 0;
  step.grad_scale = or_none(grad_scale);
  step.found_inf = or_none(found_inf);
  run(step, self, grads, {sums}, counts);
}

void rmsprop(TensorList self,
             TensorList grads,
             TensorList squares,
             TensorList means,
             TensorList buffers,
             double lr,
             double alpha,
             double eps,
             double weight_decay,
             double momentum,
             bool centered,
             bool maximize,
             const OptionalTensor& grad_scale,
             const OptionalTensor& found_inf) {
  Step step{"_fused_rmsprop_", "RmspropRule"};
  OptimizerCall& c = step.call;
  c.lr = lr;
  c.beta2 = alpha;
  c.eps = eps;
  c.weight_decay = weight_decay;
  c.momentum = momentum;
  c.maximize = maximize ? 1 : 0;
  step.grad_scale = or_none(grad_scale);
  step.found_inf = or_none(found_inf);
  run(step,
      self,
      grads,
      {squares,
       centered ? means : TensorList(),
       momentum > 0 ? buffers : TensorList()},
      {});
}

}  // namespace

Definitions optimizer_definitions() {
  using R = const Tensor&;
  static const Definition all[] = {
      defined_as("_fused_sgd_", sgd<double>),
      defined_as("_fused_sgd_.tensor_lr", sgd<R>),
      defined_as("_fused_adam_", adam<double, false>),
      defined_as("_fused_adam_.tensor_lr", adam<R, false>),
      defined_as("_fused_adamw_", adam<double, true>),
      defined_as("_fused_adamw_.tensor_lr", adam<R, true>),
      defined_as("_fused_adagrad_", adagrad<double>),
      defined_as("_fused_adagrad_.tensor_lr", adagrad<R>),
      defined_as("_fused_rmsprop_", rmsprop),
  };
  return all;
}

}  // namespace taeda::cuda
