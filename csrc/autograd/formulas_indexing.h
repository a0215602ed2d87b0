// Derivatives of joining, rearranging and indexing.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <string>
#include <tuple>
#include <vector>

namespace taeda::autograd {

// Joining and rearranging ----------------------------------------------------

TAEDA_API std::vector<Tensor> cat_backward(
    const Tensor& grad,
    const std::vector<Dims<SymInt>>& sizes,
    const std::vector<ScalarType>& dtypes,
    int64_t dim);
TAEDA_API std::vector<Tensor> stack_backward(
    const Tensor& grad, const std::vector<ScalarType>& dtypes, int64_t dim);
TAEDA_API Tensor roll_backward(const Tensor& grad,
                               SymIntArrayRef shifts,
                               IntArrayRef dims);
TAEDA_API Tensor repeat_backward(const Tensor& grad,
                                 SymIntArrayRef repeats,
                                 SymIntArrayRef sizes);
TAEDA_API Tensor constant_pad_backward(const Tensor& grad, SymIntArrayRef pad);
// Of frames that repeat self's own elements, reflected or those of the border.
TAEDA_API Tensor framed_backward(const Tensor& grad,
                                 SymIntArrayRef sizes,
                                 SymIntArrayRef padding,
                                 bool reflected);

// Indexing -------------------------------------------------------------------

TAEDA_API Tensor index_backward(const Tensor& grad,
                                SymIntArrayRef sizes,
                                ArrayRef<OptionalTensor> indices);
TAEDA_API Tensor index_put_self_backward(const Tensor& grad,
                                         ArrayRef<OptionalTensor> indices,
                                         SymIntArrayRef value_sizes,
                                         bool accumulate);
TAEDA_API Tensor index_put_values_backward(const Tensor& grad,
                                           ArrayRef<OptionalTensor> indices,
                                           SymIntArrayRef value_sizes);
TAEDA_API Tensor index_select_grad(const Tensor& grad,
                                   SymIntArrayRef sizes,
                                   int64_t dim,
                                   const Tensor& index);
TAEDA_API Tensor index_add_source_backward(const Tensor& grad,
                                           SymIntArrayRef source_sizes,
                                           int64_t dim,
                                           const Tensor& index,
                                           const Scalar& alpha);
TAEDA_API Tensor index_copy_source_backward(const Tensor& grad,
                                            SymIntArrayRef source_sizes,
                                            int64_t dim,
                                            const Tensor& index);
TAEDA_API Tensor index_fill_value_backward(const Tensor& grad,
                                           int64_t dim,
                                           const Tensor& index,
                                           ScalarType dtype);
TAEDA_API Tensor gather_backward(const Tensor& grad,
                                 SymIntArrayRef sizes,
                                 int64_t dim,
                                 const Tensor& index);
TAEDA_API std::tuple<Tensor, Tensor> scatter_reduce_backward(
    const Tensor& grad,
    const Tensor& self,
    int64_t dim,
    const Tensor& index,
    const Tensor& src,
    const std::string& reduce,
    bool include_self,
    const Tensor& result);
TAEDA_API std::tuple<Tensor, Tensor> index_reduce_backward(
    const Tensor& grad,
    const Tensor& self,
    int64_t dim,
    const Tensor& index,
    const Tensor& source,
    const std::string& reduce,
    bool include_self,
    const Tensor& result);
TAEDA_API Tensor take_backward(const Tensor& grad,
                               SymIntArrayRef sizes,
                               const Tensor& index);
TAEDA_API Tensor put_self_backward(const Tensor& grad,
                                   const Tensor& index,
                                   bool accumulate);
TAEDA_API Tensor masked_select_grad(const Tensor& grad,
                                    SymIntArrayRef sizes,
                                    const Tensor& mask);

}  // namespace taeda::autograd
