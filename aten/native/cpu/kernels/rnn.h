// One step of recurrent cells over rows, per ISA level. Gates stand beside each
// other in a row, in PyTorch's order: i f g o (LSTM), r z n (GRU).
#pragma once

#include <cstdint>

namespace taeda {

template <class A>
struct RnnKernels {
  // Gates are replaced by their activations; c holds the old cell and then the
  // new one; h gets the output.
  void (*lstm)(A* gates, A* c, A* h, int64_t rows, int64_t n);
  // dh and dc are gradients of h and c; dc becomes that of the old cell, gates
  // become their gradients.
  void (*lstm_backward)(A* gates,
                        const A* c,
                        const A* old_c,
                        const A* dh,
                        A* dc,
                        int64_t rows,
                        int64_t n);
  // `hidden` is what comes from the old h, bias included; its n part is kept.
  void (*gru)(
      A* gates, const A* hidden, const A* old_h, A* h, int64_t rows, int64_t n);
  // Gates become the gradients on the input's side; hidden, whose n part is
  // read, those on the old h's side; dh becomes the direct part of old h's.
  void (*gru_backward)(
      A* gates, A* hidden, const A* old_h, A* dh, int64_t rows, int64_t n);
  void (*tanh)(const A* gates, A* h, int64_t count);
  void (*relu)(const A* gates, A* h, int64_t count);
  void (*tanh_backward)(const A* h, const A* dh, A* gates, int64_t count);
  void (*relu_backward)(const A* h, const A* dh, A* gates, int64_t count);
};

struct RnnTable {
  RnnKernels<float> f32;
  RnnKernels<double> f64;
};

namespace isa_default {
extern const RnnTable kRnnTable;
}
namespace isa_avx2 {
extern const RnnTable kRnnTable;
}
namespace isa_avx512 {
extern const RnnTable kRnnTable;
}

}  // namespace taeda
