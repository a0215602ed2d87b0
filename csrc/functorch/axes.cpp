#include <taeda/csrc/functorch/axes.h>

#include <taeda/aten/core/dispatcher.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

bool drop(std::string_view& word, std::string_view end) {
  if (!word.ends_with(end)) return false;
  word.remove_suffix(end.size());
  return true;
}

// Codegen has checked the text: whatever it holds is well-formed here.
class Reader {
 public:
  explicit Reader(const OperatorEntry& op) : op_(op) {}

  std::vector<Pattern> side(std::string_view text) const {
    std::vector<Pattern> patterns;
    text = trimmed(text);
    if (text.empty()) return patterns;
    for (std::string_view part : split(text, ',')) {
      patterns.push_back(pattern(trimmed(part)));
    }
    return patterns;
  }

 private:
  int argument(std::string_view name) const {
    int at = 0;
    for (const ArgInfo& a : arguments_of(*op_.info)) {
      if (name_of(a, op_.schema) == name) return at;
      ++at;
    }
    return -1;
  }

  Pattern pattern(std::string_view text) const {
    Pattern out;
    if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
    if (text == "_") out.unread = true;
    if (text == "_" || text == "()") return out;
    for (std::string_view word : split(text, ' ')) {
      if (word.starts_with('=')) {
        out.sizes = argument(word.substr(1));
      } else if (word.starts_with('/')) {
        out.reduction = argument(word.substr(1));
      } else {
        out.axes.push_back(axis(word));
      }
    }
    return out;
  }

  Axis axis(std::string_view word) const {
    Axis out;
    if (size_t at = word.find('='); at != word.npos) {
      out.size = argument(word.substr(at + 1));
      word = word.substr(0, at);
    }
    out.whole = drop(word, "!");
    if (word == "..." || word == "*") {
      out.kind = word == "*" ? Axis::Star : Axis::Dots;
    } else if (word[0] == '@') {
      out.kind = Axis::At;
      out.every = drop(word, "*");
      out.name = word.substr(1);
      out.argument = argument(out.name);
    } else if (word[0] == '#') {
      out.kind = Axis::Count;
      if (drop(word, "/2")) out.per = 2;
      out.name = word.substr(1);
      out.argument = argument(out.name);
    } else {
      out.fold = drop(word, "^");
      out.absent = drop(word, "?");
      out.name = word;
    }
    return out;
  }

  const OperatorEntry& op_;
};

// A term that every written tensor and every result has; where an output_mask
// says which results are wanted, one of them is enough.
bool serves(const OperatorEntry& op, const Axes& axes, std::string_view key) {
  bool masked = false;
  size_t tensor = 0;
  for (const ArgInfo& a : arguments_of(*op.info)) {
    masked = masked || name_of(a, op.schema) == "output_mask";
    if (!a.is_tensor()) continue;
    bool has = axes.inputs[tensor++].find(key) >= 0;
    if (a.has(ArgInfo::kWritten) && !has) return false;
  }
  auto has = [&](const Pattern& p) { return p.find(key) >= 0; };
  if (masked && !axes.outputs.empty()) {
    return std::ranges::any_of(axes.outputs, has);
  }
  return std::ranges::all_of(axes.outputs, has);
}

void find_places(const OperatorEntry& op, Axes& axes) {
  // Groups come before axes into which a batch is folded.
  for (bool fold : {false, true}) {
    for (const auto* side : {&axes.inputs, &axes.outputs}) {
      for (const Pattern& p : *side) {
        for (const Axis& a : p.axes) {
          if (!a.takes_batch() || a.fold != fold) continue;
          std::string key = a.key();
          bool known = std::ranges::count(axes.places, key) > 0;
          if (!known && serves(op, axes, key)) axes.places.push_back(key);
        }
      }
    }
  }
}

}  // namespace

std::string Axis::key() const {
  switch (kind) {
    case Name:
      return name;
    case Dots:
      return "...";
    case Star:
      return whole ? "*!" : "*";
    case At:
      return "@" + name;
    case Count:
      return "#" + name;
  }
  return name;
}

int Pattern::find(std::string_view key) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].key() == key) return static_cast<int>(i);
  }
  return -1;
}

std::optional<Axes> axes_of(const OperatorEntry& op) {
  const char* text = op.info->record->axes;
  if (text == nullptr) return std::nullopt;
  std::string_view all = text;
  if (all.starts_with("opaque")) return std::nullopt;
  size_t arrow = all.find("->");
  Reader reader(op);
  Axes axes{reader.side(all.substr(0, arrow)),
            reader.side(all.substr(arrow + 2)),
            {}};
  find_places(op, axes);
  return axes;
}

}  // namespace taeda::functorch
