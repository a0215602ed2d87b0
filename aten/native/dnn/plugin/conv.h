// Convolution, as in dnn.h.
#pragma once

#include <taeda/aten/native/dnn/problems.h>

namespace taeda::dnn {

bool run_conv_forward(const Conv& conv,
                      const void* src,
                      const void* weight,
                      WeightId id,
                      const void* bias,
                      void* dst);
bool run_conv_backward_data(const Conv& conv,
                            const void* diff_dst,
                            const void* weight,
                            WeightId id,
                            void* diff_src);
bool run_conv_backward_weights(const Conv& conv,
                               const void* src,
                               const void* diff_dst,
                               void* diff_weight,
                               void* diff_bias);

}  // namespace taeda::dnn
