#include <taeda/c10/cuda/graph.h>

#include <taeda/c10/cuda/memory.h>

namespace taeda::cuda {

namespace {

// CUstreamCaptureMode
int number_of(const std::string& mode) {
  constexpr const char* kModes[] = {"global", "thread_local", "relaxed"};
  for (int i = 0; i < 3; ++i) {
    if (mode == kModes[i]) return i;
  }
  TAEDA_CHECK(false,
              "CUDAGraph: expected a capture_error_mode of global, "
              "thread_local or relaxed, got '",
              mode,
              "'");
}

void need_graphs() {
  const Driver& d = driver();
  need("CUDAGraph",
       d.begin_capture,
       d.end_capture,
       d.capture_info,
       d.graph_instantiate,
       d.graph_launch,
       d.graph_destroy,
       d.graph_exec_destroy,
       d.graph_nodes);
}

}  // namespace

Graph::~Graph() {
  try {
    reset();
  } catch (const Error&) {  // of a device that is lost, which others hear of
  }
}

// Memory for each generator's seed and offset, from before the recording.
void Graph::make_draws(int device) {
  std::vector<Generator> all = generators_;
  all.push_back(Generator::share(&default_generator(device)));
  for (const Generator& generator : all) {
    auto draw = std::make_unique<Draw>();
    draw->generator = generator;
    draw->memory = device_allocator().allocate(2 * sizeof(uint64_t));
    draw->recorded.state = reinterpret_cast<Address>(draw->memory.data);
    draws_.push_back(std::move(draw));
  }
}

// Tells the generators who draws, or that nobody does any more.
void Graph::name_draws(bool recording) {
  for (auto& draw : draws_) {
    auto& generator = static_cast<CudaGeneratorImpl&>(*draw->generator);
    std::lock_guard guard(generator.mutex());
    generator.record(number_, recording ? &draw->recorded : nullptr);
  }
}

void Graph::begin(PoolId pool, const std::string& mode) {
  need_graphs();
  TAEDA_CHECK(state_ == State::Empty,
              "CUDAGraph.capture_begin: this graph was captured already; "
              "reset() it first");
  int number = number_of(mode);
  stream_ = current_stream();
  TAEDA_CHECK(stream_.id != 0,
              "CUDAGraph.capture_begin: the default stream cannot be captured; "
              "use `with taeda.cuda.stream(taeda.cuda.Stream())`");
  TAEDA_CHECK(recording_of(stream_) == 0,
              "CUDAGraph.capture_begin: the stream is being captured already");
  use_context(stream_.device);
  make_draws(stream_.device);
  if (pool == 0) {
    pool_ = new_pool({});
  } else {
    retain_pool(pool);
    pool_ = pool;
  }
  Result status = driver().begin_capture(handle_of(stream_), number);
  if (status != kSuccess) {
    reset();
    throw_status(status, "cuStreamBeginCapture");
  }
  state_ = State::Recording;
  int active = 0;
  check(driver().capture_info(
            handle_of(stream_), &active, &number_, nullptr, nullptr, nullptr),
        "cuStreamGetCaptureInfo");
  begin_recording(number_, pool_);
  name_draws(/*recording=*/true);
}

size_t Graph::end() {
  TAEDA_CHECK(state_ == State::Recording,
              "CUDAGraph.capture_end: no capture was begun");
  use_context(stream_.device);
  Result status = driver().end_capture(handle_of(stream_), &graph_);
  end_recording(number_);
  name_draws(/*recording=*/false);
  if (status != kSuccess || graph_ == nullptr) {
    graph_ = nullptr;
    reset();
    throw_status(status != kSuccess ? status : kNotRecordable,
                 "cuStreamEndCapture");
  }
  state_ = State::Recorded;
  size_t count = 0;
  check(driver().graph_nodes(graph_, nullptr, &count), "cuGraphGetNodes");
  if (!keep_graph_) instantiate();
  return count;
}

void Graph::instantiate() {
  TAEDA_CHECK(state_ == State::Recorded,
              "CUDAGraph.instantiate: there is no captured graph");
  use_context(stream_.device);
  if (executable_ != nullptr) driver().graph_exec_destroy(executable_);
  executable_ = nullptr;
  check(driver().graph_instantiate(&executable_, graph_, 0),
        "cuGraphInstantiate");
}

// Where the draws of this replay begin.
void Graph::replay_draws() {
  GpuStream stream = current_stream(stream_.device);
  for (auto& draw : draws_) {
    if (draw->recorded.words == 0) continue;
    auto& generator = static_cast<CudaGeneratorImpl&>(*draw->generator);
    uint64_t state[2];
    {
      std::lock_guard guard(generator.mutex());
      state[0] = generator.initial_seed();
      state[1] = generator.take(draw->recorded.words);
    }
    // What is not page-locked has been read when the call returns.
    check(driver().to_device(
              draw->recorded.state, state, sizeof(state), handle_of(stream)),
          "cuMemcpyHtoDAsync");
  }
}

void Graph::replay() {
  TAEDA_CHECK(
      state_ == State::Recorded,
      "CUDAGraph.replay: called without a preceding successful capture");
  if (executable_ == nullptr) instantiate();
  DeviceGuard guard(stream_.device);
  use_context(stream_.device);
  replay_draws();
  check(driver().graph_launch(executable_,
                              handle_of(current_stream(stream_.device))),
        "cuGraphLaunch");
}

// What it took goes back when the tensors over it are gone.
void Graph::reset() {
  if (state_ == State::Recording) {
    GraphHandle unfinished = nullptr;
    driver().end_capture(handle_of(stream_), &unfinished);
    end_recording(number_);
    if (unfinished != nullptr) driver().graph_destroy(unfinished);
  }
  name_draws(/*recording=*/false);
  if (executable_ != nullptr) driver().graph_exec_destroy(executable_);
  if (graph_ != nullptr) driver().graph_destroy(graph_);
  executable_ = nullptr;
  graph_ = nullptr;
  for (auto& draw : draws_) {
    if (draw->memory.data != nullptr) {
      draw->memory.deleter(draw->memory.context, 0);
    }
  }
  draws_.clear();
  state_ = State::Empty;
  release_pool(std::exchange(pool_, 0));
}

PoolId Graph::pool() const {
  TAEDA_CHECK(pool_ != 0,
              "CUDAGraph.pool: called without a preceding capture_begin");
  return pool_;
}

void Graph::add_generator(const Generator& generator) {
  TAEDA_CHECK(state_ == State::Empty,
              "CUDAGraph.register_generator_state: generators are named before "
              "the capture");
  TAEDA_CHECK(generator && generator->device().is_cuda(),
              "CUDAGraph.register_generator_state: expected a generator of a "
              "GPU");
  generators_.push_back(generator);
}

GraphHandle Graph::graph() {
  TAEDA_CHECK(keep_graph_ && graph_ != nullptr,
              "CUDAGraph.raw_cuda_graph: needs keep_graph=True and a capture");
  return graph_;
}

GraphExecHandle Graph::executable() {
  TAEDA_CHECK(executable_ != nullptr,
              "CUDAGraph.raw_cuda_graph_exec: the graph is not instantiated");
  return executable_;
}

void Graph::dump(const std::string& path) {
  TAEDA_CHECK(graph_ != nullptr, "CUDAGraph.debug_dump: nothing was captured");
  need("CUDAGraph.debug_dump", driver().graph_print);
  constexpr unsigned kVerbose = 1;
  check(driver().graph_print(graph_, path.c_str(), kVerbose),
        "cuGraphDebugDotPrint");
}

}  // namespace taeda::cuda
