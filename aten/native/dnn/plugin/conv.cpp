#include "conv.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "descriptors.h"
#include "plan.h"
#include "runtime.h"

namespace taeda::dnn {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

enum class Pass : int64_t { kForward, kData, kWeights };

dnnl::memory::data_type type_of(DataType dtype) {
  return dtype == DataType::kBF16 ? dnnl::memory::data_type::bf16
                                  : dnnl::memory::data_type::f32;
}

// Dense strides; with `channel` >= 0 that dimension innermost.
Dims dense_strides(const Dims& dims, int channel) {
  Dims strides(dims.size());
  int64_t step = 1;
  if (channel >= 0) {
    strides[static_cast<size_t>(channel)] = 1;
    step = dims[static_cast<size_t>(channel)];
  }
  for (size_t i = dims.size(); i-- > 0;) {
    if (static_cast<int>(i) != channel) {
      strides[i] = step;
      step *= dims[i];
    }
  }
  return strides;
}

Dims spatial_part(const Conv& conv, const std::array<int64_t, 3>& values) {
  return {values.begin(), values.begin() + conv.spatial};
}

Desc user_desc(const Conv& conv, const Dims& dims, int channel) {
  return {dims, type_of(conv.dtype), dense_strides(dims, channel)};
}

Desc any_desc(const Conv& conv, const Dims& dims) {
  return {dims, type_of(conv.dtype), dnnl::memory::format_tag::any};
}

// The tensors as the caller has them.
struct UserTensors {
  Desc src;
  Desc weight;
  Desc bias;
  Desc dst;
};

Dims src_dims(const Conv& conv) {
  Dims dims{conv.batch, conv.in_channels};
  for (int i = 0; i < conv.spatial; ++i) {
    dims.push_back(conv.in[static_cast<size_t>(i)]);
  }
  return dims;
}

Dims dst_dims(const Conv& conv) {
  Dims dims{conv.batch, conv.out_channels};
  for (int i = 0; i < conv.spatial; ++i) {
    dims.push_back(conv.out(i));
  }
  return dims;
}

Dims weight_dims(const Conv& conv) {
  Dims dims;
  if (conv.groups > 1) {
    dims.push_back(conv.groups);
  }
  dims.push_back(conv.out_channels / conv.groups);
  dims.push_back(conv.in_channels / conv.groups);
  for (int i = 0; i < conv.spatial; ++i) {
    dims.push_back(conv.kernel[static_cast<size_t>(i)]);
  }
  return dims;
}

UserTensors user_tensors(const Conv& conv, bool has_bias) {
  const int channel = conv.channels_last ? 1 : -1;
  const int in_channel = conv.groups > 1 ? 2 : 1;
  UserTensors user{
      user_desc(conv, src_dims(conv), channel),
      user_desc(
          conv, weight_dims(conv), conv.weight_channels_last ? in_channel : -1),
      {},
      user_desc(conv, dst_dims(conv), channel)};
  if (has_bias) {
    user.bias = user_desc(conv, {conv.out_channels}, -1);
  }
  return user;
}

// Layouts are the primitive's choice, except that channels-last activations
// stay: nothing is gained by reordering those.
ConvTensors asked_tensors(const Conv& conv, const UserTensors& user) {
  Dims dilates = spatial_part(conv, conv.dilation);
  for (auto& dilate : dilates) {
    --dilate;
  }
  return {conv.channels_last ? user.src : any_desc(conv, src_dims(conv)),
          any_desc(conv, weight_dims(conv)),
          user.bias,
          conv.channels_last ? user.dst : any_desc(conv, dst_dims(conv)),
          spatial_part(conv, conv.stride),
          dilates,
          spatial_part(conv, conv.pad_begin),
          spatial_part(conv, conv.pad_end)};
}

Key key_of(const Conv& conv, Pass pass, bool has_bias) {
  Key key;
  key.add(static_cast<int64_t>(pass))
      .add(has_bias)
      .add(static_cast<int64_t>(conv.dtype))
      .add(conv.channels_last)
      .add(conv.weight_channels_last)
      .add(conv.spatial)
      .add(conv.batch)
      .add(conv.in_channels)
      .add(conv.out_channels)
      .add(conv.groups)
      .add_all(spatial_part(conv, conv.in))
      .add_all(spatial_part(conv, conv.kernel))
      .add_all(spatial_part(conv, conv.stride))
      .add_all(spatial_part(conv, conv.dilation))
      .add_all(spatial_part(conv, conv.pad_begin))
      .add_all(spatial_part(conv, conv.pad_end));
  return key;
}

// oneDNN 2.6 (Debian 12) computes some bfloat16 channels-last convolutions with
// 1 x 1 kernels wrongly.
bool trusted(const Conv& conv) {
  return DNNL_VERSION_MAJOR >= 3 || conv.dtype != DataType::kBF16 ||
         !conv.channels_last;
}

// Code for 1 x 1 kernels gathers the pixels that strides pick into a scratch
// area with room for the true channels, and places them a whole block of
// channels apart: with fewer it writes past the end
// (github.com/uxlfoundation/oneDNN/issues/6035). A block has at most 16.
bool overruns(const Conv& conv,
              const dnnl::convolution_backward_weights::primitive_desc& pd) {
  constexpr int64_t kBlock = 16;
  const Dims strides = spatial_part(conv, conv.stride);
  return conv.channels_last && conv.in_channels / conv.groups < kBlock &&
         std::ranges::any_of(strides, [](int64_t s) { return s != 1; }) &&
         std::string_view(pd.impl_info_str()).find("1x1") !=
             std::string_view::npos;
}

std::unique_ptr<Plan> build_forward(const Conv& conv, bool has_bias) {
  const UserTensors user = user_tensors(conv, has_bias);
  const auto pd = forward_desc(asked_tensors(conv, user));
  if (!trusted(conv) || !pd) {
    return nullptr;
  }
  std::vector<Slot> slots{
      {DNNL_ARG_SRC, Role::kInput, user.src, pd.src_desc()},
      {DNNL_ARG_WEIGHTS, Role::kWeight, user.weight, pd.weights_desc()},
      {DNNL_ARG_DST, Role::kOutput, user.dst, pd.dst_desc()}};
  if (has_bias) {
    slots.push_back({DNNL_ARG_BIAS, Role::kInput, user.bias, pd.bias_desc()});
  }
  return std::make_unique<Plan>(
      dnnl::convolution_forward(pd), pd.scratchpad_desc(), std::move(slots));
}

std::unique_ptr<Plan> build_data(const Conv& conv) {
  const UserTensors user = user_tensors(conv, /*has_bias=*/false);
  const ConvTensors asked = asked_tensors(conv, user);
  const auto forward = forward_desc(asked);
  if (!trusted(conv) || !forward) {
    return nullptr;
  }
  const auto pd = backward_data_desc(asked, forward);
  if (!pd) {
    return nullptr;
  }
  std::vector<Slot> slots{
      {DNNL_ARG_DIFF_DST, Role::kInput, user.dst, pd.diff_dst_desc()},
      {DNNL_ARG_WEIGHTS, Role::kWeight, user.weight, pd.weights_desc()},
      {DNNL_ARG_DIFF_SRC, Role::kOutput, user.src, pd.diff_src_desc()}};
  return std::make_unique<Plan>(dnnl::convolution_backward_data(pd),
                                pd.scratchpad_desc(),
                                std::move(slots));
}

std::unique_ptr<Plan> build_weights(const Conv& conv, bool has_bias) {
  const UserTensors user = user_tensors(conv, has_bias);
  const ConvTensors asked = asked_tensors(conv, user);
  const auto forward = forward_desc(asked);
  if (!trusted(conv) || !forward) {
    return nullptr;
  }
  auto pd = backward_weights_desc(asked, forward);
  if (!pd) {
    return nullptr;
  }
  while (overruns(conv, pd)) {
    if (!pd.next_impl()) {
      return nullptr;
    }
  }
  std::vector<Slot> slots{
      {DNNL_ARG_SRC, Role::kInput, user.src, pd.src_desc()},
      {DNNL_ARG_DIFF_DST, Role::kInput, user.dst, pd.diff_dst_desc()},
      {DNNL_ARG_DIFF_WEIGHTS,
       Role::kOutput,
       user.weight,
       pd.diff_weights_desc()}};
  if (has_bias) {
    slots.push_back(
        {DNNL_ARG_DIFF_BIAS, Role::kOutput, user.bias, pd.diff_bias_desc()});
  }
  return std::make_unique<Plan>(dnnl::convolution_backward_weights(pd),
                                pd.scratchpad_desc(),
                                std::move(slots));
}

}  // namespace

bool run_conv_forward(const Conv& conv,
                      const void* src,
                      const void* weight,
                      WeightId id,
                      const void* bias,
                      void* dst) {
  const bool has_bias = bias != nullptr;
  const auto plan = find_plan(key_of(conv, Pass::kForward, has_bias),
                              [&] { return build_forward(conv, has_bias); });
  if (plan == nullptr) {
    return false;
  }
  if (has_bias) {
    plan->run({src, weight, dst, bias}, id);
  } else {
    plan->run({src, weight, dst}, id);
  }
  return true;
}

bool run_conv_backward_data(const Conv& conv,
                            const void* diff_dst,
                            const void* weight,
                            WeightId id,
                            void* diff_src) {
  const auto plan = find_plan(key_of(conv, Pass::kData, false),
                              [&] { return build_data(conv); });
  if (plan == nullptr) {
    return false;
  }
  plan->run({diff_dst, weight, diff_src}, id);
  return true;
}

bool run_conv_backward_weights(const Conv& conv,
                               const void* src,
                               const void* diff_dst,
                               void* diff_weight,
                               void* diff_bias) {
  const bool has_bias = diff_bias != nullptr;
  const auto plan = find_plan(key_of(conv, Pass::kWeights, has_bias),
                              [&] { return build_weights(conv, has_bias); });
  if (plan == nullptr) {
    return false;
  }
  if (has_bias) {
    plan->run({src, diff_dst, diff_weight, diff_bias}, {});
  } else {
    plan->run({src, diff_dst, diff_weight}, {});
  }
  return true;
}

}  // namespace taeda::dnn
