// One direction of one recurrent layer: shapes.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/gen/native/_rnn_layer.h>
#include <taeda/gen/native/_rnn_layer_backward.h>

namespace taeda::native {

namespace {

// Returns their sum.
template <class I>
I check_rows(const Spec<I>& input, const Spec<I>& h0, ArrayRef<I> counts) {
  I rows = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    bool falls =
        i == 0 ? counts[i] <= h0.sizes()[0] : counts[i] <= counts[i - 1];
    TAEDA_CHECK((counts[i] > 0 || h0.sizes()[0] == 0) && falls,
                "rnn: expected row counts from ",
                h0.sizes()[0],
                " downwards, got ",
                counts);
    rows += counts[i];
  }
  TAEDA_CHECK(rows == input.sizes()[0],
              "rnn: expected an input of ",
              rows,
              " rows, got ",
              input.sizes());
  return rows;
}

template <class I>
void check_matrix(const char* name,
                  const Spec<I>& t,
                  const I& rows,
                  const I& columns) {
  if (t.defined()) check_shape("rnn", name, t, Dims<I>{rows, columns});
}

// Refuses what does not fit; returns the number of rows.
template <class I>
I check_layer(int64_t mode,
              const Spec<I>& input,
              const Spec<I>& h0,
              const Spec<I>& c0,
              const Spec<I>& w_ih,
              const Spec<I>& w_hh,
              const Spec<I>& b_ih,
              const Spec<I>& b_hh,
              const Spec<I>& w_hr,
              ArrayRef<I> counts) {
  ScalarType type = compute_type(input.dtype());
  TAEDA_CHECK_AS(NotImplemented,
                 type == kFloat || type == kDouble,
                 "rnn: not implemented for '",
                 input.dtype(),
                 "'");
  TAEDA_CHECK(mode >= kLstm && mode <= kRelu, "rnn: no mode ", mode);
  for (const Spec<I>* t : {&input, &h0, &w_ih, &w_hh}) {
    TAEDA_CHECK(t->dim() == 2, "rnn: expected a matrix, got ", t->sizes());
  }
  const SizesOver<I> z(mode, input, h0, w_hh);
  I rows = check_rows(input, h0, counts);
  TAEDA_CHECK(z.gates == gates_of(mode) * z.hidden,
              "rnn: weight_hh first dim must be ",
              gates_of(mode),
              " * hidden_size = ",
              gates_of(mode) * z.hidden,
              ", but got ",
              z.gates);
  check_matrix("weight_ih", w_ih, z.gates, z.input);
  check_matrix("weight_hh", w_hh, z.gates, z.state);
  for (const Spec<I>* b : {&b_ih, &b_hh}) {
    if (b->defined()) check_shape("rnn", "a bias", *b, ArrayRef<I>(z.gates));
  }
  TAEDA_CHECK(w_hr.defined() || z.state == z.hidden,
              "rnn: expected states of width ",
              z.hidden,
              ", got ",
              h0.sizes());
  check_matrix("w_hr", w_hr, z.state, z.hidden);
  TAEDA_CHECK(c0.defined() == (mode == kLstm), "rnn: an LSTM alone has cells");
  check_matrix("c0", c0, z.batch, z.hidden);
  return rows;
}

}  // namespace

template <class I>
void _rnn_layer_shape(int64_t mode,
                      const Spec<I>& input,
                      const Spec<I>& h0,
                      const Spec<I>& c0,
                      const Spec<I>& w_ih,
                      const Spec<I>& w_hh,
                      const Spec<I>& b_ih,
                      const Spec<I>& b_hh,
                      const Spec<I>& w_hr,
                      ArrayRef<I> counts,
                      bool,
                      Plan<I>& plan) {
  I rows =
      check_layer(mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts);
  const SizesOver<I> z(mode, input, h0, w_hh);
  const Dims<I> none{0, 0};
  ScalarType type = input.dtype(), sum_type = compute_type(type);
  plan.set(0, {rows, z.state}, type);
  plan.set(1, h0.sizes(), type);
  plan.set(2, mode == kLstm ? c0.sizes() : ArrayRef<I>(none), type);
  plan.set(3, {rows, z.gates}, sum_type);
  Dims<I> extra{rows, mode == kLstm ? z.hidden : z.gates};
  plan.set(4, mode == kLstm || mode == kGru ? extra : none, sum_type);
}
TAEDA_SHAPE(_rnn_layer_shape);

template <class I>
void _rnn_layer_backward_shape(const Spec<I>& grad_out,
                               const Spec<I>&,
                               const Spec<I>&,
                               int64_t mode,
                               const Spec<I>& input,
                               const Spec<I>& h0,
                               const Spec<I>& c0,
                               const Spec<I>& w_ih,
                               const Spec<I>& w_hh,
                               const Spec<I>& b_ih,
                               const Spec<I>& b_hh,
                               const Spec<I>& w_hr,
                               const Spec<I>& output,
                               const Spec<I>& gates,
                               const Spec<I>& extra,
                               ArrayRef<I> counts,
                               bool,
                               Plan<I>& plan) {
  constexpr std::string_view kName = "rnn_backward";
  I rows =
      check_layer(mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts);
  const SizesOver<I> z(mode, input, h0, w_hh);
  check_shape(kName, "output", output, Dims<I>{rows, z.state});
  check_shape(kName, "gates", gates, Dims<I>{rows, z.gates});
  if (mode == kLstm || mode == kGru) {
    Dims<I> wanted{rows, mode == kLstm ? z.hidden : z.gates};
    check_shape(kName, "extra", extra, wanted);
  }
  if (grad_out.defined()) {
    check_shape(kName, "grad_out", grad_out, output.sizes());
  }
  const Spec<I> none;
  const bool biased = b_ih.defined();
  const Spec<I>* like[] = {
      &input, &h0, &c0, &w_ih, &w_hh, &b_ih, biased ? &b_hh : &none, &w_hr};
  for (size_t i = 0; i < std::size(like); ++i) {
    if (like[i]->defined()) plan.set(i, like[i]->sizes(), input.dtype());
  }
}
TAEDA_SHAPE(_rnn_layer_backward_shape);

}  // namespace taeda::native
