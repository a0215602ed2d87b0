// Streams that record; see Note [Emulated graphs].
#include "emulator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

using namespace emulator;

#define EXPORT extern "C" __attribute__((visibility("default"))) Result

namespace emulator {

namespace {

// How this thread takes captures: 0 global, 1 its own alone, 2 not at all.
thread_local int thread_mode = 0;

int64_t this_thread() { return gettid(); }

}  // namespace

Result Machine::refuse_wait(Stream* stream) {
  int device = stream != nullptr ? stream->device : current_device;
  if (devices[static_cast<size_t>(device)].reset) return kReset;
  bool refused = false;
  for (auto& [number, capture] : captures) {
    bool meant =
        stream != nullptr
            ? stream->capture == capture
            : capture->origin->device == current_device &&
                  (capture->mode == 0 || capture->thread == this_thread());
    if (!meant) continue;
    capture->spoilt = true;
    refused = true;
  }
  return refused ? kNotRecorded : 0;
}

Result Machine::refuse_unsafe() {
  if (thread_mode == 2) return 0;
  for (auto& [number, capture] : captures) {
    bool mine = capture->thread == this_thread();
    bool meant = capture->mode == 0 ? thread_mode == 0 || mine
                                    : capture->mode == 1 && mine;
    if (!meant) continue;
    capture->spoilt = true;
    return kNotRecorded;
  }
  return 0;
}

Result Machine::run_graph(const Graph& graph, std::vector<bool>& done) {
  for (;;) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const auto& behind = graph.nodes[i].behind;
      bool free = !done[i] && std::all_of(behind.begin(),
                                          behind.end(),
                                          [&](size_t n) { return done[n]; });
      if (free) ready.push_back(i);
    }
    if (ready.empty()) return 0;
    size_t chosen = ready[draw_() % ready.size()];
    Result result = graph.nodes[chosen].work.run();
    if (result != 0) return result;
    now += 0.001;
    done[chosen] = true;
  }
}

namespace {

// Whether all that the stream recorded lies before the nodes.
bool is_joined(const Graph& graph,
               const std::vector<size_t>& last,
               const std::vector<size_t>& end) {
  std::vector<bool> before(graph.nodes.size());
  for (size_t node : end) before[node] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!before[i]) continue;
    for (size_t node : graph.nodes[i].behind) before[node] = true;
  }
  // What only tells the checker of blocks is none of a real driver's.
  return std::all_of(last.begin(), last.end(), [&](size_t node) {
    const Graph::Node& n = graph.nodes[node];
    return before[node] || (n.work.instant && is_joined(graph, n.behind, end));
  });
}

}  // namespace

}  // namespace emulator

using Guard = std::lock_guard<std::recursive_mutex>;
using SharedGraph = std::shared_ptr<Graph>;

EXPORT cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, thread_mode);
  return 0;
}
EXPORT cuStreamBeginCapture_v2(Stream* stream, int mode) {
  Machine& m = Machine::get();
  Guard guard(m.mutex);
  if (stream == nullptr || stream->capture != nullptr) return kNotRecorded;
  // What is in the queue is done before anything that is replayed.
  if (Result result = m.finish(stream)) return result;
  static uint64_t count = 0;
  auto* capture = new Capture;
  capture->number = ++count;
  capture->mode = mode;
  capture->thread = this_thread();
  capture->origin = stream;
  capture->graph = std::make_shared<Graph>();
  stream->capture = capture;
  stream->last.clear();
  m.captures[capture->number] = capture;
  return 0;
}
EXPORT cuStreamEndCapture(Stream* stream, SharedGraph** out) {
  Machine& m = Machine::get();
  Guard guard(m.mutex);
  *out = nullptr;
  Capture* capture = stream->capture;
  if (capture == nullptr) return kNotRecorded;
  bool joined = true;
  for (Stream* s : m.streams) {
    if (s->capture != capture) continue;
    joined &= is_joined(*capture->graph, s->last, stream->last);
  }
  for (Stream* s : m.streams) {
    if (s->capture == capture) s->capture = nullptr;
  }
  std::unique_ptr<Capture> ended(capture);
  m.captures.erase(capture->number);
  if (capture->spoilt) return kSpoilt;
  if (!joined) return kUnjoined;
  *out = new SharedGraph(capture->graph);
  return 0;
}
EXPORT cuStreamGetCaptureInfo_v2(
    Stream* stream, int* status, uint64_t* number, void*, void*, void*) {
  Guard guard(Machine::get().mutex);
  Capture* capture = stream == nullptr ? nullptr : stream->capture;
  *status = capture == nullptr ? 0 : capture->spoilt ? 2 : 1;
  if (capture != nullptr && number != nullptr) *number = capture->number;
  return 0;
}
EXPORT cuGraphGetNodes(SharedGraph* graph, void*, size_t* count) {
  // What only tells the checker of blocks is none of a real driver's.
  *count = static_cast<size_t>(std::count_if(
      (*graph)->nodes.begin(), (*graph)->nodes.end(), [](const Graph::Node& n) {
        return !n.work.instant;
      }));
  return 0;
}
EXPORT cuGraphDebugDotPrint(SharedGraph* graph, const char* path, unsigned) {
  std::ofstream out(path);
  out << "digraph graph_1 {\n";
  for (size_t i = 0; i < (*graph)->nodes.size(); ++i) {
    const Graph::Node& node = (*graph)->nodes[i];
    out << "  n" << i << " [label=\"" << node.work.what << "\"];\n";
    for (size_t n : node.behind) out << "  n" << n << " -> n" << i << ";\n";
  }
  out << "}\n";
  return out.good() ? 0 : kInvalid;
}
EXPORT cuGraphInstantiateWithFlags(SharedGraph** out,
                                   SharedGraph* graph,
                                   unsigned long long) {
  *out = new SharedGraph(*graph);
  return 0;
}
EXPORT cuGraphLaunch(SharedGraph* graph, void* stream) {
  Machine& m = Machine::get();
  Guard guard(m.mutex);
  SharedGraph launched = *graph;
  if (m.stream(stream)->capture != nullptr) return kNotRecorded;
  auto done = std::make_shared<std::vector<bool>>(launched->nodes.size());
  return m.enqueue(
      stream, {"graph", [=, &m] { return m.run_graph(*launched, *done); }});
}
EXPORT cuGraphExecDestroy(SharedGraph* graph) {
  delete graph;
  return 0;
}
EXPORT cuGraphDestroy(SharedGraph* graph) {
  delete graph;
  return 0;
}
