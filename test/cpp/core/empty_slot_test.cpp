// Calls on a device for which a record has no kernel.
#include "../errors.h"

#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/c10/core/gpu.h>

#include <gtest/gtest.h>

namespace taeda {
namespace {

constexpr int kCpuSlot = static_cast<int>(DispatchKey::CPU);
constexpr int kCudaSlot = static_cast<int>(DispatchKey::CUDA);

bool has_gpu() {
  try {
    gpu();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(EmptySlot, RefusesByOperatorAndDevice) {
  int refused = 0, of_cuda_alone = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    if (op->info->record->family == Family::User) continue;
    if (op->slots[kCudaSlot] != nullptr) continue;
    if (op->slots[kCpuSlot] == nullptr) {
      auto call = [op] { no_kernel(*op, DispatchKey::CPU); };
      expect_throws(ErrorKind::NotImplemented, op->qualified_name(), call);
      ++of_cuda_alone;
    }
    auto call = [op] { no_kernel(*op, DispatchKey::CUDA); };
    expect_throws(ErrorKind::NotImplemented, op->qualified_name(), call);
    expect_throws(ErrorKind::NotImplemented, "'CUDA' backend", call);
    ++refused;
  }
  EXPECT_GT(refused, 450);
  // Attention by tiles and over sequences, and their derivatives, which are the
  // GPU's alone in PyTorch too.
  EXPECT_LE(of_cuda_alone, 4);
}

// Where there is no GPU, that is the error: no operator could do better.
TEST(EmptySlot, LooksForTheDeviceFirst) {
  const OperatorEntry* op = Dispatcher::get().find("sort", "");
  ASSERT_NE(op, nullptr);
  ASSERT_EQ(op->slots[kCudaSlot], nullptr);
  auto call = [op] { boxed_kernel(*op, DispatchKey::CUDA); };
  ErrorKind kind = has_gpu() ? ErrorKind::NotImplemented : ErrorKind::Assertion;
  expect_throws(kind, has_gpu() ? "sort" : "CUDA enabled", call);
}

// A formula is planned by one function for all devices, which reads and writes
// no element: that is the launcher's, of which each device has its own.
TEST(EmptySlot, FormulasAreLaunchedByTheirDevice) {
  int formulas = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    Family family = op->info->record->family;
    if (family != Family::Pointwise && family != Family::Reduction) continue;
    if (op->info->record->dtypes.computes == 0) continue;
    EXPECT_EQ(op->slots[kCudaSlot], op->slots[kCpuSlot]) << op->schema;
    ++formulas;
  }
  EXPECT_GT(formulas, 400);
  auto launch = [](DeviceType type) {
    return [type] { launchers_of("add", Device(type)); };
  };
  expect_throws(ErrorKind::NotImplemented,
                "add: no kernel for device meta",
                launch(DeviceType::Meta));
  EXPECT_NE(launchers_of("add", Device()).pointwise, nullptr);
}

}  // namespace
}  // namespace taeda
