// Tensors brought to ranks and shapes that fit together.
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/view.h>
#include <taeda/gen/native/atleast_1d.h>
#include <taeda/gen/native/atleast_2d.h>
#include <taeda/gen/native/atleast_3d.h>
#include <taeda/gen/native/broadcast_tensors.h>
#include <taeda/gen/native/meshgrid.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view.h>

namespace taeda::native {

using Views = std::vector<Tensor>;

Tensor atleast_1d(const Tensor& self) {
  return self.dim() == 0 ? ops::reshape(self, {1}) : self;
}
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return ops::reshape(self, {1, 1});
  return self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return ops::reshape(self, {1, 1, 1});
  if (self.dim() == 1) return ops::unsqueeze(ops::unsqueeze(self, 0), -1);
  return self.dim() == 2 ? ops::unsqueeze(self, -1) : self;
}
Views atleast_1d(TensorList tensors) {
  Views out;
  for (const Tensor& t : tensors) out.push_back(atleast_1d(t));
  return out;
}
Views atleast_2d(TensorList tensors) {
  Views out;
  for (const Tensor& t : tensors) out.push_back(atleast_2d(t));
  return out;
}
Views atleast_3d(TensorList tensors) {
  Views out;
  for (const Tensor& t : tensors) out.push_back(atleast_3d(t));
  return out;
}

Views broadcast_tensors(TensorList tensors) {
  Dims<SymInt> shape;
  for (const Tensor& t : tensors) {
    shape =
        broadcast_shapes<SymInt>("broadcast_tensors", shape, symbolic_sizes(t));
  }
  Views out;
  for (const Tensor& t : tensors) out.push_back(expand_sized(t, shape));
  return out;
}

Views meshgrid(TensorList tensors) { return meshgrid(tensors, "ij"); }

Views meshgrid(TensorList tensors, std::string_view indexing) {
  TAEDA_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  for (const Tensor& t : tensors) {
    TAEDA_CHECK(t.dim() <= 1,
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list "
                "but got: ",
                t);
    TAEDA_CHECK(t.dtype() == tensors[0].dtype(),
                "torch.meshgrid expects all tensors to have the same dtype");
    TAEDA_CHECK(t.device() == tensors[0].device(),
                "torch.meshgrid expects all tensors to have the same device");
  }
  bool swap = indexing == "xy" && tensors.size() >= 2;
  TAEDA_CHECK(swap || indexing == "ij" || indexing == "xy",
              "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but "
              "received: ",
              indexing);
  SmallVector<int64_t, 8> order;
  for (size_t i = 0; i < tensors.size(); ++i) order.push_back(int64_t(i));
  if (swap) std::swap(order[0], order[1]);
  auto size_of = [&](int64_t i) {
    return sym_numel(*tensors[static_cast<size_t>(i)].impl());
  };
  Dims<SymInt> shape;
  for (int64_t i : order) shape.push_back(size_of(i));
  Views out(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Tensor& t = tensors[static_cast<size_t>(order[i])];
    Dims<SymInt> line(shape.size(), SymInt(1));
    line[i] = size_of(order[i]);
    Tensor grid = expand_sized(reshape_sized(t, line), shape);
    out[static_cast<size_t>(order[i])] = grid;
  }
  return out;
}

}  // namespace taeda::native
