// Tensors cut into chunks that are joined chunk by chunk, as sharded parameters
// are laid out before a collective.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/gen/native/_chunk_cat.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/reshape.h>

namespace taeda::native {

Tensor chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  TAEDA_CHECK(num_chunks >= 1,
              "_chunk_cat expects positive num_chunks, got ",
              num_chunks);
  TAEDA_CHECK(!tensors.empty(),
              "_chunk_cat expects a non-empty input tensor list");
  dim = wrap_dim(dim, tensors[0].dim());
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    TAEDA_CHECK(
        t.dim() > dim &&
            t.sizes().slice(0, static_cast<size_t>(dim)) ==
                tensors[0].sizes().slice(0, static_cast<size_t>(dim)),
        "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all "
        "tensors, got ",
        tensors[0].sizes(),
        " and ",
        t.sizes());
    TAEDA_CHECK(
        t.dtype() == tensors[0].dtype(),
        "_chunk_cat expects all input tensors with the same dtype, got ",
        tensors[0].dtype(),
        " and ",
        t.dtype());
    TAEDA_CHECK(t.numel() > 0,
                "_chunk_cat expects all tensors to be non-empty");
    int64_t short_of = (num_chunks - t.sizes()[dim] % num_chunks) % num_chunks;
    DimVector pads(static_cast<size_t>(2 * (t.dim() - dim)), 0);
    pads[pads.size() - 1] = short_of;
    Tensor whole =
        short_of == 0 ? t : ops::constant_pad_nd(t, pads, Scalar(int64_t{0}));
    DimVector shape(t.sizes().slice(0, static_cast<size_t>(dim)));
    shape.push_back(num_chunks);
    shape.push_back(-1);
    rows.push_back(ops::reshape(whole, shape));
  }
  return ops::cat(rows, dim + 1);
}

}  // namespace taeda::native
