// resize_ and resize_as_ of sparse tensors.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/resize_.h>
#include <taeda/gen/ops/sparse_resize_.h>

namespace taeda::native {

namespace {

using MaybeFormat = std::optional<MemoryFormat>;

// The offsets of `rows` rows: those that are new have no entries.
Tensor offsets_for(const Tensor& offsets, int64_t rows) {
  int64_t old = offsets.size(0) - 1;
  if (rows <= old) return ops::narrow(offsets, 0, 0, rows + 1);
  std::vector<Tensor> pieces{offsets};
  pieces.resize(static_cast<size_t>(rows - old) + 1,
                ops::narrow(offsets, 0, old, 1));
  return ops::cat(pieces);
}

// Rows may come and, with their entries, go; columns may only come.
void resize_csr(const Tensor& self, IntArrayRef size) {
  TAEDA_CHECK_AS(
      NotImplemented,
      self.layout() == Layout::SparseCsr && self.dim() == 2 && size.size() == 2,
      "resize_: ",
      layout_word(self.layout()),
      " tensor of sizes ",
      self.sizes(),
      " to sizes ",
      size,
      "; only CSR matrices are resized");
  TAEDA_CHECK(size[0] >= 0 && size[1] >= self.size(1),
              "resize_: Resizing columns of sparse CSR tensors to a smaller "
              "value is not supported. The original number of columns is ",
              self.size(1),
              " while the requested new number of columns is ",
              size[1]);
  const SparseParts& p = parts_of(self);
  Tensor offsets = offsets_for(p.offsets, size[0]);
  int64_t kept = ops::item(ops::narrow(offsets, 0, size[0], 1)).to_int();
  set_parts(self,
            make_compressed(self.layout(),
                            offsets,
                            ops::narrow(p.indices, 0, 0, kept),
                            ops::narrow(p.values, 0, 0, kept),
                            size));
}

void check_format(const char* op, MaybeFormat format) {
  TAEDA_CHECK(!format || *format == MemoryFormat::Contiguous,
              op,
              ": Unsupported memory format for sparse tensor: ",
              *format);
}

void resize_sparse(const Tensor& self, IntArrayRef size, MaybeFormat format) {
  check_format("resize_", format);
  TAEDA_CHECK_AS(NotImplemented,
                 !is_coo(self),
                 "resize_: not implemented for COO tensors, whose sparse and "
                 "dense dims sparse_resize_ is told");
  resize_csr(self, size);
}

void resize_as_sparse(const Tensor& self,
                      const Tensor& like,
                      MaybeFormat format) {
  check_format("resize_as_", format);
  if (is_coo(self) && is_coo(like)) {
    ops::sparse_resize_(
        self, like.sizes(), sparse_dims(like), dense_dims(like));
    return;
  }
  if (!is_sparse(self)) {
    ops::resize_(self, like.sizes(), format);
    return;
  }
  TAEDA_CHECK_AS(NotImplemented,
                 !is_coo(self),
                 "resize_as_: not implemented for a ",
                 layout_word(self.layout()),
                 " tensor and a template of layout ",
                 layout_word(like.layout()));
  resize_csr(self, like.sizes());
}

}  // namespace

void add_resizes(Library& m) {
  m.impl("resize_", resize_sparse);
  m.impl("resize_as_", resize_as_sparse);
}

}  // namespace taeda::native
