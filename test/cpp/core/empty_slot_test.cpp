// Calls on a device for which a record has no kernel.
#include "../errors.h"

#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/op_info.h>

#include <gtest/gtest.h>

namespace taeda {
namespace {

constexpr int kCpuSlot = static_cast<int>(DispatchKey::CPU);
constexpr int kCudaSlot = static_cast<int>(DispatchKey::CUDA);

TEST(EmptySlot, RefusesByOperatorAndDevice) {
  int refused = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    if (op->info->record->family == Family::User) continue;
    if (op->slots[kCudaSlot] != nullptr) continue;
    EXPECT_NE(op->slots[kCpuSlot], nullptr) << op->schema;
    auto call = [op] { boxed_kernel(*op, DispatchKey::CUDA); };
    expect_throws(ErrorKind::NotImplemented, op->qualified_name(), call);
    expect_throws(ErrorKind::NotImplemented, "'CUDA' backend", call);
    ++refused;
  }
  EXPECT_GT(refused, 900);
}

// What reads and writes elements has a function for each device, so that none
// meets a pointer of another's.
TEST(EmptySlot, NoFormulaComputesOnTwoDevices) {
  int formulas = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    const RecordInfo& record = *op->info->record;
    // Formulas beside a kernel have no rule of dtypes; such a kernel may be made
    // of other operators, for all devices.
    if (record.dtypes.computes == 0) continue;
    EXPECT_NE(op->slots[kCudaSlot], op->slots[kCpuSlot]) << op->schema;
    ++formulas;
  }
  EXPECT_GT(formulas, 400);
}

}  // namespace
}  // namespace taeda
