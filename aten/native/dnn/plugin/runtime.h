// What every file of the plugin needs from oneDNN.
#pragma once

#include <dnnl.hpp>

namespace taeda::dnn {

// Gives this thread's OpenMP regions the thread count of parallel_for (one
// inside of a part). Call before anything that runs a primitive.
void follow_thread_count();

// The process's CPU engine, and this thread's stream on it.
dnnl::engine& engine();
dnnl::stream& stream();

}  // namespace taeda::dnn
