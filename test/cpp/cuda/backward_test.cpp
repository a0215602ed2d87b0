#include <taeda/c10/core/gpu.h>
#include <taeda/c10/util/check.h>
#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/gen/ops/copy_.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "../in_child.h"

namespace taeda::autograd {
namespace {

constexpr int kThreads = 4, kRounds = 5;
constexpr int64_t kSize = 64;

// The driver is looked for once in a process, and others' tests have found none
// in this one: the test runs anew in a process of its own.
template <class Body>
::testing::AssertionResult on_emulated_devices(const Body& body) {
  constexpr const char* kDriver = "TAEDA_CUDA_DRIVER";
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string only =
      str_cat("--gtest_filter=", test->test_suite_name(), ".", test->name());
  return in_child([&] {
    if (std::getenv(kDriver) != nullptr) return body();
    setenv(kDriver, EMULATED_CUDA, /*overwrite=*/1);
    // By its path, by which a death test would start it once more.
    std::string path = std::filesystem::read_symlink("/proc/self/exe");
    execl(path.c_str(), path.c_str(), only.c_str(), nullptr);
    return false;
  });
}

Device gpu_device(int index) {
  return {DeviceType::CUDA, static_cast<int8_t>(index)};
}

Tensor moved(const Tensor& t, Device device) {
  GradModeGuard off(false);
  Tensor made = make_tensor("test", t.sizes(), t.dtype(), device);
  ops::copy_(made, t);
  return made;
}

Tensor filled(float value, Device device) {
  Tensor t = make_tensor("test", {&kSize, 1}, kFloat);
  std::fill_n(t.mutable_data<float>(), kSize, value);
  return device.is_cpu() ? t : moved(t, device);
}

bool all_are(const Tensor& t, float value) {
  Tensor here = moved(t, DeviceType::CPU);
  const float* p = here.const_data<float>();
  return std::all_of(p, p + kSize, [=](float v) { return v == value; });
}

// Which threads ran nodes of which device.
struct Seen {
  std::mutex mutex;
  std::set<std::pair<int, std::thread::id>> places;
};

// The identity, to another place, by copies alone: no kernel is compiled.
class Through final : public Node {
 public:
  Through(Device from, Device to, Seen* seen)
      : from_(from), to_(to), seen_(seen) {}
  std::string name() const override { return "Through"; }
  Tensors apply(Tensors&& grads) override {
    std::lock_guard guard(seen_->mutex);
    seen_->places.emplace(to_.index, std::this_thread::get_id());
    return {moved(grads[0], from_)};
  }

 private:
  Device from_, to_;
  Seen* seen_;
};

Tensor through(const Tensor& t, Device to, Seen* seen) {
  Tensor made = moved(t, to);
  auto node = make_intrusive<Through>(t.device(), to, seen);
  node->add_next_edge(gradient_edge(t));
  set_history(made, node);
  return made;
}

class Fails final : public Node {
 public:
  std::string name() const override { return "Fails"; }
  Tensors apply(Tensors&&) override {
    throw_error(ErrorKind::Value, "of the device");
  }
};

// One thread's passes, through both devices and a stream of its own.
bool passes(Seen* seen) {
  for (int round = 0; round < kRounds; ++round) {
    Tensor leaf = filled(1, gpu_device(round % 2));
    set_requires_grad(leaf, true);
    GpuStream before = gpu().current_stream(0);
    Tensor there = through(leaf, gpu_device(1), seen);
    GpuStream own = gpu().new_stream(1, 0);
    gpu().synchronize(1);
    gpu().set_stream(own);
    Tensor again = through(there, gpu_device(1), seen);
    gpu().wait(own);
    gpu().set_stream({1, 0});
    Tensor home = through(through(again, gpu_device(0), seen), {}, seen);
    backward({home}, {filled(static_cast<float>(round), {})});
    if (!all_are(grad_of(leaf), static_cast<float>(round))) return false;
    if (gpu().current_stream(0) != before) return false;
  }
  return true;
}

TEST(Backward, DevicesHaveAThreadThatManyPassesShare) {
  EXPECT_TRUE(on_emulated_devices([] {
    Seen seen;
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] { right += passes(&seen) ? 1 : 0; });
    }
    for (std::thread& t : threads) t.join();
    std::set<std::thread::id> of[2];
    for (const auto& [device, thread] : seen.places) {
      if (device >= 0) of[device].insert(thread);
    }
    return right == kThreads && of[0].size() == 1 && of[1].size() == 1 &&
           of[0] != of[1];
  }));
}

TEST(Backward, ErrorsOfADevicesThreadAreThrownByTheCall) {
  EXPECT_TRUE(on_emulated_devices([] {
    Seen seen;
    for (int round = 0; round < kRounds; ++round) {
      Tensor leaf = filled(1, gpu_device(0));
      set_requires_grad(leaf, true);
      Tensor bad = moved(leaf, gpu_device(1));
      auto node = make_intrusive<Fails>();
      node->add_next_edge(gradient_edge(leaf));
      set_history(bad, node);
      Tensor end = through(bad, {}, &seen);
      try {
        backward({end}, {filled(1, {})});
        return false;
      } catch (const Error& error) {
        if (error.message().find("of the device") == std::string::npos) {
          return false;
        }
      }
    }
    return true;
  }));
}

}  // namespace
}  // namespace taeda::autograd
