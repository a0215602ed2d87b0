#include <taeda/aten/native/cuda/list_launch.h>

#include <taeda/aten/native/cuda/launchers.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace taeda::cuda {

namespace {

using Part = ListedCall::Part;

bool overlap(const Part& a, const Part& b) {
  return a.begin < b.end && b.begin < a.end;
}

// What reads or writes what the other writes.
bool hang_together(const ListedCall& a, const ListedCall& b) {
  return std::any_of(std::begin(a.parts),
                     std::end(a.parts),
                     [&](const Part& p) { return overlap(p, b.parts[0]); }) ||
         std::any_of(std::begin(b.parts),
                     std::end(b.parts),
                     [&](const Part& p) { return overlap(p, a.parts[0]); });
}

template <int kNumbers>
void launch_table(const ListedCall* calls,
                  const TensorTable& table,
                  unsigned chunks) {
  PointwiseTable<kNumbers> call{};
  call.table = table;
  for (int i = 0; i < table.tensors; ++i) {
    for (int n = 0; n < kNumbers; ++n) {
      std::memcpy(call.rows[i].numbers[n], calls[i].numbers[n], 16);
    }
  }
  launch(calls->op, calls->function, Grid{chunks, 1, kTableThreads}, &call);
}

// A thread's kept calls, all of one program, device and stream.
class KeptCalls final : public KeptWork {
 public:
  int open = 0;

  void keep(ListedCall call) {
    GpuStream stream = current_stream();
    bool follows =
        !calls_.empty() && calls_.size() < kTableTensors &&
        calls_[0].function == call.function && stream_ == stream &&
        std::none_of(calls_.begin(), calls_.end(), [&](const ListedCall& kept) {
          return hang_together(kept, call);
        });
    if (!follows) launch_kept_work();
    launched_.clear();
    stream_ = stream;
    calls_.push_back(std::move(call));
    keep_work(this);
  }

  void let_go() { launched_.clear(); }

  void launch() override {
    // launched_ is empty: what was kept came after it was cleared.
    launched_ = std::move(calls_);
    calls_.clear();
    std::vector<ListedCall>& calls = launched_;
    std::vector<TableRow> rows(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      rows[i].numel = calls[i].numel;
      for (int k = 0; k < kTableLists; ++k) {
        rows[i].memory[k] = reinterpret_cast<void*>(calls[i].parts[k].begin);
      }
    }
    DeviceGuard guard(stream_.device);
    for_tables(rows,
               [&](const TensorTable& table, size_t first, unsigned chunks) {
                 const ListedCall* part = &calls[first];
                 switch (part->count) {
                   case 0:
                     return launch_table<0>(part, table, chunks);
                   case 1:
                     return launch_table<1>(part, table, chunks);
                   default:
                     return launch_table<2>(part, table, chunks);
                 }
               });
  }

 private:
  std::vector<ListedCall> calls_;
  std::vector<ListedCall> launched_;  // whose memory is still held
  GpuStream stream_{};
};

thread_local KeptCalls kept;

}  // namespace

void ListedCall::add(int k, const TensorBase& t, const void* memory) {
  auto begin = reinterpret_cast<uintptr_t>(memory);
  auto bytes = static_cast<uintptr_t>(t.numel()) * t.itemsize();
  parts[k] = {t.storage(), begin, begin + bytes};
}

bool list_is_open() { return kept.open > 0; }

void keep_in_list(ListedCall call) { kept.keep(std::move(call)); }

void list_of_calls(bool begins) {
  kept.open += begins ? 1 : -1;
  if (begins) return;
  launch_kept_work();
  kept.let_go();
}

}  // namespace taeda::cuda
