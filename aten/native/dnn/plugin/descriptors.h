// The primitive descriptors in the version of oneDNN at hand: v2 goes by way of
// operation descriptors, v3 does not. Each is empty where oneDNN has no code.
#pragma once

#include <dnnl.hpp>

namespace taeda::dnn {

// The tensors of a convolution; `bias` is a zero descriptor for none.
struct ConvTensors {
  dnnl::memory::desc src;
  dnnl::memory::desc weight;
  dnnl::memory::desc bias;
  dnnl::memory::desc dst;
  dnnl::memory::dims strides;
  dnnl::memory::dims dilates;  // 0: none
  dnnl::memory::dims pad_begin;
  dnnl::memory::dims pad_end;
};

dnnl::convolution_forward::primitive_desc forward_desc(const ConvTensors& t);
dnnl::convolution_backward_data::primitive_desc backward_data_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward);
dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward);

// c = a b + bias + beta c; `bias` is a zero descriptor for none.
dnnl::matmul::primitive_desc matmul_desc(const dnnl::memory::desc& a,
                                         const dnnl::memory::desc& b,
                                         const dnnl::memory::desc& bias,
                                         const dnnl::memory::desc& c,
                                         float beta);

}  // namespace taeda::dnn
