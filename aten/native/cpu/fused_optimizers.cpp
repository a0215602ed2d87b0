// Optimizers that update a whole list of parameters in one parallel pass.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/cpu/optimizer_launch.h>
#include <taeda/gen/native/_fused_adagrad_.h>
#include <taeda/gen/native/_fused_adam_.h>
#include <taeda/gen/native/_fused_adamw_.h>
#include <taeda/gen/native/_fused_rmsprop_.h>
#include <taeda/gen/native/_fused_sgd_.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

namespace {

// A list that an option does without is empty; its place in a launch is null.
const Tensor* item(TensorList list, size_t i) {
  return list.empty() ? nullptr : &list[i];
}

void check_lengths(std::string_view op,
                   TensorList params,
                   std::initializer_list<TensorList> others) {
  for (TensorList list : others) {
    TAEDA_CHECK(list.size() == params.size(),
                op,
                ": expected one tensor per parameter (",
                params.size(),
                "), got ",
                list.size());
  }
}

// What an Adam step reads and writes; each list has one tensor per parameter.
struct AdamLists {
  TensorList params, grads, means, squares, max_squares, steps;
};

void adam_step(std::string_view op,
               const AdamLists& lists,
               OptimizerNumbers numbers,
               bool amsgrad,
               const OptionalTensor& grad_scale,
               const OptionalTensor& found_inf) {
  const auto& [params, grads, means, squares, max_squares, steps] = lists;
  check_lengths(op, params, {grads, means, squares, steps});
  if (amsgrad) check_lengths(op, params, {max_squares});
  OptimizerLaunch launch(op, OptimizerRule::kAdam, numbers);
  if (!launch.scale(grad_scale, found_inf)) return;
  TensorList largest = amsgrad ? max_squares : TensorList();
  for (size_t i = 0; i < params.size(); ++i) {
    // Each parameter has a count of its own, for some may have joined later.
    // The corrections are numbers and need no loop.
    double t = number_in(steps[i]);
    OptimizerNumbers& k = launch.numbers();
    k.step_size = k.lr / (1 - std::pow(k.beta1, t));
    k.correction = std::sqrt(1 - std::pow(k.beta2, t));
    launch.add(
        {&params[i], &grads[i], &means[i], &squares[i], item(largest, i)});
  }
  launch.run();
}

OptimizerNumbers adam_numbers(double lr,
                              double beta1,
                              double beta2,
                              double weight_decay,
                              double eps,
                              bool maximize,
                              bool decoupled) {
  OptimizerNumbers k;
  k.lr = lr;
  k.beta1 = beta1;
  k.beta2 = beta2;
  k.weight_decay = weight_decay;
  k.eps = eps;
  k.maximize = maximize;
  k.decoupled = decoupled;
  return k;
}

}  // namespace

void _fused_sgd_(TensorList self,
                 TensorList grads,
                 TensorList momentum_buffer_list,
                 double weight_decay,
                 double momentum,
                 double lr,
                 double dampening,
                 bool nesterov,
                 bool maximize,
                 bool is_first_step,
                 const OptionalTensor& grad_scale,
                 const OptionalTensor& found_inf) {
  check_lengths("_fused_sgd_", self, {grads});
  if (momentum != 0) check_lengths("_fused_sgd_", self, {momentum_buffer_list});
  OptimizerNumbers k;
  k.lr = lr;
  k.weight_decay = weight_decay;
  k.momentum = momentum;
  k.dampening = dampening;
  k.nesterov = nesterov;
  k.maximize = maximize;
  k.first = is_first_step;
  OptimizerLaunch launch("_fused_sgd_", OptimizerRule::kSgd, k);
  if (!launch.scale(grad_scale, found_inf)) return;
  TensorList buffers = momentum == 0 ? TensorList() : momentum_buffer_list;
  for (size_t i = 0; i < self.size(); ++i) {
    launch.add({&self[i], &grads[i], item(buffers, i)});
  }
  launch.run();
}

void _fused_sgd_tensor_lr_(TensorList self,
                           TensorList grads,
                           TensorList momentum_buffer_list,
                           double weight_decay,
                           double momentum,
                           const Tensor& lr,
                           double dampening,
                           bool nesterov,
                           bool maximize,
                           bool is_first_step,
                           const OptionalTensor& grad_scale,
                           const OptionalTensor& found_inf) {
  _fused_sgd_(self,
              grads,
              momentum_buffer_list,
              weight_decay,
              momentum,
              number_in(lr),
              dampening,
              nesterov,
              maximize,
              is_first_step,
              grad_scale,
              found_inf);
}

#define TAEDA_ADAM(NAME, LR_TYPE, LR, DECOUPLED)                            \
  void NAME(TensorList self,                                                \
            TensorList grads,                                               \
            TensorList exp_avgs,                                            \
            TensorList exp_avg_sqs,                                         \
            TensorList max_exp_avg_sqs,                                     \
            TensorList state_steps,                                         \
            LR_TYPE lr,                                                     \
            double beta1,                                                   \
            double beta2,                                                   \
            double weight_decay,                                            \
            double eps,                                                     \
            bool amsgrad,                                                   \
            bool maximize,                                                  \
            const OptionalTensor& grad_scale,                               \
            const OptionalTensor& found_inf) {                              \
    adam_step(                                                              \
        #NAME,                                                              \
        {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps}, \
        adam_numbers(                                                       \
            LR, beta1, beta2, weight_decay, eps, maximize, DECOUPLED),      \
        amsgrad,                                                            \
        grad_scale,                                                         \
        found_inf);                                                         \
  }
TAEDA_ADAM(_fused_adam_, double, lr, false)
TAEDA_ADAM(_fused_adam_tensor_lr_, const Tensor&, number_in(lr), false)
TAEDA_ADAM(_fused_adamw_, double, lr, true)
TAEDA_ADAM(_fused_adamw_tensor_lr_, const Tensor&, number_in(lr), true)
#undef TAEDA_ADAM

void _fused_adagrad_(TensorList self,
                     TensorList grads,
                     TensorList state_sums,
                     TensorList state_steps,
                     double lr,
                     double lr_decay,
                     double weight_decay,
                     double eps,
                     bool maximize,
                     const OptionalTensor& grad_scale,
                     const OptionalTensor& found_inf) {
  check_lengths("_fused_adagrad_", self, {grads, state_sums, state_steps});
  OptimizerNumbers k;
  k.lr = lr;
  k.weight_decay = weight_decay;
  k.eps = eps;
  k.maximize = maximize;
  OptimizerLaunch launch("_fused_adagrad_", OptimizerRule::kAdagrad, k);
  if (!launch.scale(grad_scale, found_inf)) return;
  for (size_t i = 0; i < self.size(); ++i) {
    double t = number_in(state_steps[i]);
    launch.numbers().step_size = lr / (1 + (t - 1) * lr_decay);
    launch.add({&self[i], &grads[i], &state_sums[i]});
  }
  launch.run();
}

void _fused_adagrad_tensor_lr_(TensorList self,
                               TensorList grads,
                               TensorList state_sums,
                               TensorList state_steps,
                               const Tensor& lr,
                               double lr_decay,
                               double weight_decay,
                               double eps,
                               bool maximize,
                               const OptionalTensor& grad_scale,
                               const OptionalTensor& found_inf) {
  _fused_adagrad_(self,
                  grads,
                  state_sums,
                  state_steps,
                  number_in(lr),
                  lr_decay,
                  weight_decay,
                  eps,
                  maximize,
                  grad_scale,
                  found_inf);
}

void _fused_rmsprop_(TensorList self,
                     TensorList grads,
                     TensorList square_avgs,
                     TensorList grad_avgs,
                     TensorList momentum_buffer_list,
                     double lr,
                     double alpha,
                     double eps,
                     double weight_decay,
                     double momentum,
                     bool centered,
                     bool maximize,
                     const OptionalTensor& grad_scale,
                     const OptionalTensor& found_inf) {
  check_lengths("_fused_rmsprop_", self, {grads, square_avgs});
  if (centered) check_lengths("_fused_rmsprop_", self, {grad_avgs});
  if (momentum > 0) {
    check_lengths("_fused_rmsprop_", self, {momentum_buffer_list});
  }
  OptimizerNumbers k;
  k.lr = lr;
  k.beta2 = alpha;
  k.eps = eps;
  k.weight_decay = weight_decay;
  k.momentum = momentum;
  k.maximize = maximize;
  OptimizerLaunch launch("_fused_rmsprop_", OptimizerRule::kRmsprop, k);
  if (!launch.scale(grad_scale, found_inf)) return;
  TensorList means = centered ? grad_avgs : TensorList();
  TensorList buffers = momentum > 0 ? momentum_buffer_list : TensorList();
  for (size_t i = 0; i < self.size(); ++i) {
    launch.add({&self[i],
                &grads[i],
                &square_avgs[i],
                item(means, i),
                item(buffers, i)});
  }
  launch.run();
}

}  // namespace taeda::native
