// What the parts of the toy device share.
#pragma once

#include <torch/all.h>

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <functional>

namespace toy {

constexpr int kDevices = 2;

// Work for the current stream of a device. It runs when somebody waits: what
// reads results before that reads what was there.
void enqueue(int device, std::function<void()> work);
// Runs all that is queued on a device.
void drain(int device);
// The same for the current stream alone.
void drain_stream(int device, int64_t stream);

int64_t blocks_in_use();
// Pieces of work done so far.
int64_t work_done();

at::Generator default_generator(int device);
at::Generator new_generator(int device);

}  // namespace toy
