#include <taeda/c10/core/generator.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/c10/core/scalar.h>

#include "../errors.h"

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace taeda {
namespace {

constexpr ScalarType kAllTypes[] = {
#define _(name, type, number, text) k##name,
    TAEDA_FORALL_TYPES(_)
#undef _
};

template <class T>
void every_code_survives(int codes) {
  for (int code = 0; code < codes; ++code) {
    T x;
    x.bits = static_cast<decltype(x.bits)>(code);
    float value = x;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(T(value))));
    } else {
      EXPECT_EQ(T(value).bits, x.bits) << value;
    }
  }
}

TEST(SmallFloats, EveryCodeSurvivesAFloat) {
  every_code_survives<Half>(1 << 16);
  every_code_survives<BFloat16>(1 << 16);
  every_code_survives<Float8_e4m3fn>(256);
  every_code_survives<Float8_e5m2>(256);
  every_code_survives<Float8_e4m3fnuz>(256);
  every_code_survives<Float8_e5m2fnuz>(256);
  every_code_survives<Float8_e8m0fnu>(256);
}

TEST(SmallFloats, TiesGoToEven) {
  EXPECT_EQ(static_cast<float>(Half(2049.0f)), 2048.0f);
  EXPECT_EQ(static_cast<float>(Half(2051.0f)), 2052.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(257.0f)), 256.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(259.0f)), 260.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Half(65520.0f))));
  EXPECT_EQ(static_cast<float>(Half(65519.0f)), 65504.0f);
}

TEST(ScalarTypes, PromotionIsALattice) {
  auto joined = [](ScalarType a, ScalarType b) {
    try {
      return promote_types(a, b);
    } catch (const Error&) {
      return ScalarType::Undefined;  // no common type
    }
  };
  for (ScalarType a : kAllTypes) {
    EXPECT_EQ(joined(a, a), a);
    for (ScalarType b : kAllTypes) {
      ScalarType ab = joined(a, b);
      EXPECT_EQ(ab, joined(b, a)) << type_name(a) << type_name(b);
      if (ab == ScalarType::Undefined) continue;
      EXPECT_TRUE(can_cast(a, ab));
      EXPECT_EQ(joined(ab, a), ab);
    }
  }
  expect_throws(
      ErrorKind::Runtime, "uint16", [] { promote_types(kUInt16, kInt); });
  expect_throws(ErrorKind::Runtime, "Float8", [] {
    promote_types(kFloat8_e5m2, kFloat);
  });
}

TEST(ScalarTypes, CastsLoseNoKind) {
  EXPECT_FALSE(can_cast(kFloat, kLong));
  EXPECT_FALSE(can_cast(kComplexFloat, kDouble));
  EXPECT_FALSE(can_cast(kInt, kBool));
  EXPECT_TRUE(can_cast(kDouble, kHalf));
  EXPECT_TRUE(can_cast(kLong, kByte));
}

TEST(Scalar, EveryTypeStoresAndLoads) {
  for (ScalarType t : kAllTypes) {
    alignas(16) unsigned char memory[16] = {};
    Scalar(1).store(t, memory);
    EXPECT_TRUE(Scalar::load(t, memory).equal(1.0)) << type_name(t);
  }
}

TEST(Scalar, ConversionsCheckTheRange) {
  std::string part = "without overflow";
  auto refused = [&](auto f) { expect_throws(ErrorKind::Runtime, part, f); };
  refused([] { Scalar(1e300).to<int64_t>(); });
  refused([] { Scalar(std::nan("")).to<int32_t>(); });
  refused([] { Scalar(256).to<uint8_t>(); });
  refused([] { Scalar(-129).to<int8_t>(); });
  refused([] { Scalar(1e10).to<Half>(); });
  refused([] { Scalar(complex<double>(1, 1)).to<double>(); });
  refused([] { Scalar(~uint64_t{0}).to<int64_t>(); });
  EXPECT_EQ(Scalar(~uint64_t{0}).to<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(Scalar(-1).to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(INT64_MIN).to<int64_t>(), INT64_MIN);
  EXPECT_TRUE(std::isinf(Scalar(INFINITY).to<float>()));
  EXPECT_TRUE((-Scalar(INT64_MIN)).equal(Scalar(INT64_MIN)));
}

TEST(Device, Parses) {
  EXPECT_EQ(Device::parse("cuda:3"), Device(DeviceType::CUDA, 3));
  EXPECT_EQ(Device::parse("meta").str(), "meta");
  for (auto text : {"",
                    "gpu",
                    "cuda:",
                    "cuda:-1",
                    "cuda:01",
                    "cuda:999",
                    "cpu:x",
                    "cuda:1:2"}) {
    EXPECT_THROW(Device::parse(text), Error) << text;
  }
}

TEST(LocalState, GuardsRestore) {
  uint64_t mask = local_state.mask;
  DispatchKeySet autograd(DispatchKey::Autograd);
  {
    GradModeGuard off(false);
    EXPECT_EQ(local_state.mask & autograd.bits(), 0u);
    GradModeGuard on(true);
    EXPECT_NE(local_state.mask & autograd.bits(), 0u);
    BelowAutograd below;
    EXPECT_EQ(local_state.mask & autograd.bits(), 0u);
    InferenceModeGuard inference(true);
    EXPECT_TRUE(inference_mode());
    EXPECT_FALSE(grad_enabled());
    std::thread([] { EXPECT_TRUE(grad_enabled()); }).join();
  }
  EXPECT_EQ(local_state.mask, mask);
  EXPECT_FALSE(inference_mode());
}

TEST(DispatchKeys, NamesParse) {
  DispatchKey key = DispatchKey::CPU;
  EXPECT_TRUE(parse_dispatch_key("AutogradCPU", &key));
  EXPECT_EQ(key, DispatchKey::Autograd);
  EXPECT_FALSE(parse_dispatch_key("NoSuchKey", &key));
  DispatchKeySet set{DispatchKey::CPU, DispatchKey::Autograd};
  EXPECT_EQ(set.highest(), DispatchKey::Autograd);
  EXPECT_EQ((set & DispatchKeySet::below(DispatchKey::Autograd)).highest(),
            DispatchKey::CPU);
}

TEST(Generator, StatesRoundTripAndForeignBytesAreRefused) {
  auto g = make_intrusive<CpuGeneratorImpl>(7);
  for (int i = 0; i < 700; ++i) g->random();
  std::vector<uint8_t> state(g->state_size());
  g->get_state(state.data());
  auto copy = g->clone();
  uint32_t next = g->random();
  EXPECT_EQ(static_cast<CpuGeneratorImpl&>(*copy).random(), next);
  g->manual_seed(1);
  g->set_state(state.data(), state.size());
  EXPECT_EQ(g->random(), next);
  EXPECT_EQ(g->initial_seed(), 7u);
  expect_throws(ErrorKind::Runtime, "expected a CPU state", [&] {
    g->set_state(state.data(), 17);
  });
  std::fill(state.begin(), state.end(), uint8_t{0xff});
  expect_throws(ErrorKind::Runtime, "MT19937", [&] {
    g->set_state(state.data(), state.size());
  });
}

}  // namespace
}  // namespace taeda
