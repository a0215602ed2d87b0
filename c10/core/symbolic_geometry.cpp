#include <taeda/c10/core/symbolic_geometry.h>

#include <taeda/c10/symbolic/shape_env.h>

#include <algorithm>

namespace taeda {

SymbolicGeometry::SymbolicGeometry(ArrayRef<SymInt> size,
                                   ArrayRef<SymInt> stride,
                                   SymInt start)
    : sizes(size), strides(stride), offset(std::move(start)), numel(1) {
  for (const SymInt& n : sizes) numel *= n;
}

void SymbolicGeometry::fix() const {
  for (const SymInt& n : sizes) n.guard();
  for (const SymInt& n : strides) n.guard();
  offset.guard();
}

int64_t hint_of(const SymInt& v, int64_t otherwise) {
  if (!v.is_symbolic()) return v.plain();
  return v.node()->env->hint(v.node()->id).value_or(otherwise);
}

DimVector hints_of(ArrayRef<SymInt> list, int64_t otherwise) {
  DimVector out;
  for (const SymInt& v : list) out.push_back(hint_of(v, otherwise));
  return out;
}

bool has_hints(ArrayRef<SymInt> list) {
  return std::ranges::all_of(list, [](const SymInt& v) {
    return !v.is_symbolic() || v.node()->env->hint(v.node()->id).has_value();
  });
}

// The part of TensorImpl that meets symbols ----------------------------------

namespace {
// Whether two are equal, asking for a decision only where there are hints.
bool surely_equal(const SymInt& a, const SymInt& b) {
  SymBool equal = sym_eq(a, b);
  if (!equal.is_symbolic()) return equal.guard();
  return has_hints({a, b}) && equal.guard();
}

bool row_major(ArrayRef<SymInt> sizes, ArrayRef<SymInt> strides) {
  SymInt expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    // In this order: what is row-major as it stands asks for nothing.
    bool follows = surely_equal(strides[d], expected);
    if (!follows && !surely_equal(sizes[d], 1)) return false;
    expected *= sizes[d];
  }
  return true;
}
}  // namespace

void TensorImpl::set_symbolic(IntrusivePtr<IntrusiveTarget> geometry) {
  const auto& g = static_cast<const SymbolicGeometry&>(*geometry);
  ArrayRef<SymInt> size(g.sizes), stride(g.strides);
  contiguous_ = dense_ = row_major(size, stride);
  channels_last_ = channels_last_3d_ = false;
  bool hinted = has_hints(size) && has_hints(stride);
  if (hinted && size.size() == 4) {
    channels_last_ = strides::dense_in_order<SymInt>(
        size, stride, ArrayRef<int>(kChannelsLast));
  } else if (hinted && size.size() == 5) {
    channels_last_3d_ = strides::dense_in_order<SymInt>(
        size, stride, ArrayRef<int>(kChannelsLast3d));
  }
  dense_ = contiguous_ || channels_last_ || channels_last_3d_ ||
           (hinted && strides::dense<SymInt>(size, stride));
  dim_ = static_cast<int32_t>(size.size());
  heap_ = std::make_unique<int64_t[]>(2 * size.size() + 1);
  for (size_t d = 0; d < size.size(); ++d) {
    heap_[d] = hint_of(size[d], 1);
    heap_[size.size() + d] = hint_of(stride[d], 1);
  }
  storage_offset_ = hint_of(g.offset, 0);
  numel_ = -1;
  extra().symbolic = std::move(geometry);
}

const int64_t* TensorImpl::fixed_geometry() const {
  if (const SymbolicGeometry* g = symbolic_or_null(*this)) g->fix();
  return heap_.get();
}

int64_t TensorImpl::fixed_numel() const {
  return symbolic_or_null(*this)->numel.guard();
}

}  // namespace taeda
