// Rows of a table by index: shapes.
#include <taeda/aten/native/embedding.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/gen/native/embedding.h>
#include <taeda/gen/native/embedding_dense_backward.h>

namespace taeda::native {

template <class I>
void embedding_shape(const Spec<I>& weight,
                     const Spec<I>& indices,
                     I,
                     bool,
                     bool,
                     Plan<I>& plan) {
  TAEDA_CHECK(weight.dim() == 2, "'weight' must be 2-D, got ", weight);
  check_indices("embedding", indices);
  Dims<I> sizes(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  plan.set(0, sizes, weight.dtype());
}
TAEDA_SHAPE(embedding_shape);

template <class I>
void embedding_dense_backward_shape(const Spec<I>& grad_output,
                                    const Spec<I>& indices,
                                    I num_weights,
                                    I,
                                    bool,
                                    Plan<I>& plan) {
  check_indices("embedding_dense_backward", indices);
  TAEDA_CHECK(grad_output.dim() > 0,
              "embedding_dense_backward: expected grad_output of at least one "
              "dim, got none");
  plan.set(0,
           {num_weights, grad_output.sizes()[grad_output.dim() - 1]},
           grad_output.dtype());
}
TAEDA_SHAPE(embedding_dense_backward_shape);

}  // namespace taeda::native
