#include "descriptors.h"

#include "runtime.h"

namespace taeda::dnn {
namespace {

// The caller's thread gives the scratch memory, so a primitive can run on
// several threads at once.
dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// The same with beta times the destination added to the result.
dnnl::primitive_attr attributes_adding(float beta) {
  dnnl::primitive_attr attr = attributes();
  if (beta != 0.0f) {
    dnnl::post_ops after;
    after.append_sum(beta);
    attr.set_post_ops(after);
  }
  return attr;
}

// Winograd would be quicker on some shapes but loses digits.
constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
constexpr bool kAllowEmpty = true;

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

dnnl::convolution_forward::primitive_desc forward_desc(const ConvTensors& t) {
  const auto kind = dnnl::prop_kind::forward_training;
  if (t.bias.get_size() == 0) {
    return {engine(),
            kind,
            kAlgorithm,
            t.src,
            t.weight,
            t.dst,
            t.strides,
            t.dilates,
            t.pad_begin,
            t.pad_end,
            attributes(),
            kAllowEmpty};
  }
  return {engine(),
          kind,
          kAlgorithm,
          t.src,
          t.weight,
          t.bias,
          t.dst,
          t.strides,
          t.dilates,
          t.pad_begin,
          t.pad_end,
          attributes(),
          kAllowEmpty};
}

dnnl::convolution_backward_data::primitive_desc backward_data_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),
          kAlgorithm,
          t.src,
          t.weight,
          t.dst,
          t.strides,
          t.dilates,
          t.pad_begin,
          t.pad_end,
          forward,
          attributes(),
          kAllowEmpty};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward) {
  if (t.bias.get_size() == 0) {
    return {engine(),
            kAlgorithm,
            t.src,
            t.weight,
            t.dst,
            t.strides,
            t.dilates,
            t.pad_begin,
            t.pad_end,
            forward,
            attributes(),
            kAllowEmpty};
  }
  return {engine(),
          kAlgorithm,
          t.src,
          t.weight,
          t.bias,
          t.dst,
          t.strides,
          t.dilates,
          t.pad_begin,
          t.pad_end,
          forward,
          attributes(),
          kAllowEmpty};
}

dnnl::matmul::primitive_desc matmul_desc(const dnnl::memory::desc& a,
                                         const dnnl::memory::desc& b,
                                         const dnnl::memory::desc& bias,
                                         const dnnl::memory::desc& c,
                                         float beta) {
  if (bias.get_size() == 0) {
    return {engine(), a, b, c, attributes_adding(beta), kAllowEmpty};
  }
  return {engine(), a, b, bias, c, attributes_adding(beta), kAllowEmpty};
}

#else

dnnl::convolution_forward::primitive_desc forward_desc(const ConvTensors& t) {
  const dnnl::convolution_forward::desc op(dnnl::prop_kind::forward_training,
                                           kAlgorithm,
                                           t.src,
                                           t.weight,
                                           t.bias,
                                           t.dst,
                                           t.strides,
                                           t.dilates,
                                           t.pad_begin,
                                           t.pad_end);
  return {op, attributes(), engine(), kAllowEmpty};
}

dnnl::convolution_backward_data::primitive_desc backward_data_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_data::desc op(kAlgorithm,
                                                 t.src,
                                                 t.weight,
                                                 t.dst,
                                                 t.strides,
                                                 t.dilates,
                                                 t.pad_begin,
                                                 t.pad_end);
  return {op, attributes(), engine(), forward, kAllowEmpty};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_desc(
    const ConvTensors& t,
    const dnnl::convolution_forward::primitive_desc& forward) {
  const dnnl::convolution_backward_weights::desc op(kAlgorithm,
                                                    t.src,
                                                    t.weight,
                                                    t.bias,
                                                    t.dst,
                                                    t.strides,
                                                    t.dilates,
                                                    t.pad_begin,
                                                    t.pad_end);
  return {op, attributes(), engine(), forward, kAllowEmpty};
}

dnnl::matmul::primitive_desc matmul_desc(const dnnl::memory::desc& a,
                                         const dnnl::memory::desc& b,
                                         const dnnl::memory::desc& bias,
                                         const dnnl::memory::desc& c,
                                         float beta) {
  const dnnl::matmul::desc op(a, b, bias, c);
  return {op, attributes_adding(beta), engine(), kAllowEmpty};
}

#endif

}  // namespace taeda::dnn
