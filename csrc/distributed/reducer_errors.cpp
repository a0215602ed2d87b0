// What a reducer says of gradients that did not come, or came twice.
#include <taeda/csrc/distributed/reducer.h>

namespace taeda::distributed {

namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between) + word;
  }
  return text;
}

// Keeps the phrases that programs look for.
std::string advice(const ReducerOptions& options) {
  const char* outputs =
      "making sure all `forward` function outputs participate in calculating "
      "loss";
  if (options.static_graph) {
    return "This error indicates that your training graph has changed in this "
           "iteration, e.g., one parameter is used in first iteration, but "
           "then got unused in the second iteration. this is not compatible "
           "with static_graph set to True.";
  }
  if (options.find_unused) {
    return str_cat(
        "This error indicates that your module has parameters that were not "
        "used in producing loss. Since `find_unused_parameters=True` is "
        "enabled, some output of `forward` did not reach the loss: ",
        outputs,
        " helps.");
  }
  return str_cat(
      "This error indicates that your module has parameters that were not used "
      "in producing loss. You can enable unused parameter detection by passing "
      "the keyword argument `find_unused_parameters=True` to "
      "`taeda.nn.parallel.DistributedDataParallel`, and by ",
      outputs,
      '.');
}

}  // namespace

void Reducer::check_finished() const {
  const std::lock_guard lock(mutex_);
  // A forward pass without a backward one leaves nothing unfinished.
  if (!active_ || !has_begun_) return;
  std::vector<std::string> numbers, names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (learns_graph() ? visits_[i] != 0 : seen_[i] || missing_[i]) continue;
    numbers.push_back(std::to_string(i));
    if (!options_.names.empty()) names.push_back(options_.names[i]);
  }
  const std::string who =
      str_cat(" which did not receive grad for rank ", options_.rank, ": ");
  std::string text = str_cat(
      "Expected to have finished reduction in the prior iteration before "
      "starting a new one. ",
      advice(options_));
  if (options_.tells_names) {
    text += str_cat("\nParameters", who, joined(names, ", "));
  }
  text += str_cat("\nParameter indices", who, joined(numbers, " "));
  if (!options_.tells_names) {
    text +=
        "\nTo learn their names, set the environment variable "
        "TORCH_DISTRIBUTED_DEBUG to INFO or DETAIL.";
  }
  throw_error(ErrorKind::Runtime, std::move(text));
}

std::string Reducer::named(size_t number) const {
  std::string text = str_cat("Parameter at index ", number);
  if (options_.names.empty()) return text;
  return text + " with name " + options_.names[number];
}

void Reducer::fail_twice(size_t number) const {
  const std::string who = named(number);
  if (options_.static_graph && visits_[number] == 0) {
    throw_error(
        ErrorKind::Runtime,
        str_cat("Your training graph has changed in this iteration, e.g., one "
                "parameter is unused in first iteration, but then got used in "
                "the second iteration. this is not compatible with "
                "static_graph set to True. ",
                who,
                " is the one."));
  }
  const char* why =
      missing_[number]
          ? " was taken to be unused, since no output of `forward` led to it, "
            "and has got a gradient"
          : " has been marked as ready twice: it got two gradients in one "
            "backward pass, as where parts of the model are computed again by "
            "reentrant checkpoints, or where it is used outside of `forward`";
  throw_error(ErrorKind::Runtime,
              str_cat("Expected to mark a variable ready only once. ",
                      who,
                      why,
                      ". If the graph is the same in each iteration, "
                      "static_graph=True allows for that."));
}

}  // namespace taeda::distributed
