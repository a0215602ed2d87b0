#include <taeda/aten/native/cuda/folds.h>

#include <taeda/c10/cuda/device.h>
#include <taeda/c10/util/format.h>
#include <taeda/aten/native/cuda/folds_calls.cuh>

#include <algorithm>
#include <climits>

namespace taeda::cuda {

namespace {

// Shorter rows, and so many that lie across each other, are a thread's: it
// reads what its neighbours read beside it.
constexpr int64_t kLeastCount = 32, kManyRows = 4096;
// From here on a block has a row, and then several have.
constexpr int64_t kLeastOfBlock = 2048, kLeastShare = 8192;
constexpr int64_t kBlocksPerProcessor = 8;

constexpr int kKinds = 4;  // more than a formula has texts

// How a call goes; also the number that tells its programs apart.
enum class Way : int { Threads, Warps, Blocks, Parts, Joined };

std::string body_of(Way way, int step) {
  const char* lanes = way == Way::Warps ? "32" : "256";
  switch (way) {
    case Way::Threads:
      return step == 0 ? "fold_row<Fold<Given>>(g, i, g.count_.integer());"
                       : message(
                             "scan_row<Fold<Given>, {}>"
                             "(g, i, g.count_.integer());",
                             step);
    case Way::Parts:
      return message("fold_shares<Fold<Given>, {}>(g, g.count_.integer());",
                     step);
    case Way::Joined:
      return step == 0 ? "join_shares<Fold<Given>>"
                         "(g, call.count, g.count_.integer());"
                       : message(
                             "scan_shares<Fold<Given>, {}>"
                             "(g, g.count_.integer());",
                             step);
    default:
      return step == 0 ? message(
                             "fold_rows<Fold<Given>, {}>"
                             "(g, call.count, g.count_.integer());",
                             lanes)
                       : message(
                             "scan_rows<Fold<Given>, {}, {}>"
                             "(g, call.count, g.count_.integer());",
                             step,
                             lanes);
  }
}

void run_as(GivenCall& call, Way way, int step, Grid grid) {
  std::string body = body_of(way, step);
  call.body = body;
  call.variant = call.variant % kKinds + kKinds * static_cast<int>(way);
  if (way != Way::Threads) {
    call.header = header_text("folds");
    grid.threads = kFoldThreads;
    call.blocks = grid;
  }
  run_given(call);
}

Given number(const char* name, int64_t value) {
  Given given;
  given.name = name;
  given.integer = value;
  return given;
}

// How many elements of a row each of several blocks has; all, where one has.
int64_t share_of(const FoldedRows& rows, Device device) {
  int64_t wanted =
      kBlocksPerProcessor * properties_of(device.index).multiprocessors;
  if (2 * rows.rows > wanted || rows.count < 2 * kLeastShare) return rows.count;
  int64_t splits = wanted / std::max<int64_t>(rows.rows, 1);
  int64_t share = std::max(kLeastShare, (rows.count + splits - 1) / splits);
  return (share + kFoldTile - 1) / kFoldTile * kFoldTile;
}

// Shares of rows: a launch for what each folds to, and one that needs these.
void run_shares(GivenCall& call, const FoldedRows& rows, int64_t share) {
  int64_t splits = (rows.count + share - 1) / share;
  Device device = call.slots.back().tensor.device();
  Given parts;
  parts.name = "parts";
  parts.type = Given::Type::Tensor;
  parts.tensor =
      make_tensor(call.op, {rows.rows * splits * kFoldState}, kByte, device);
  call.slots.insert(
      call.slots.begin(),
      {number("share", share), number("splits", splits), std::move(parts)});
  Grid grid{static_cast<unsigned>(rows.rows), static_cast<unsigned>(splits)};
  run_as(call, Way::Parts, rows.step, grid);
  constexpr int64_t kRows = kFoldThreads / 32;
  if (rows.step == 0) {
    grid = Grid{static_cast<unsigned>((rows.rows + kRows - 1) / kRows)};
  }
  run_as(call, Way::Joined, rows.step, grid);
}

}  // namespace

void run_rows_of(GivenCall& call, const FoldedRows& rows) {
  bool across = !rows.beside && rows.rows >= kManyRows;
  if (rows.count < kLeastCount || across || rows.rows > INT_MAX) {
    return run_as(call, Way::Threads, rows.step, Grid());
  }
  int64_t share = share_of(rows, call.slots.back().tensor.device());
  if (share < rows.count) return run_shares(call, rows, share);
  Grid grid{static_cast<unsigned>(rows.rows)};
  if (rows.count >= kLeastOfBlock) {
    return run_as(call, Way::Blocks, rows.step, grid);
  }
  constexpr int64_t kRows = kFoldThreads / 32;
  grid.x = static_cast<unsigned>((rows.rows + kRows - 1) / kRows);
  run_as(call, Way::Warps, rows.step, grid);
}

}  // namespace taeda::cuda
