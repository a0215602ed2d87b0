// What kernels make of a batch: one call for many, by the axes of their record.
#include <taeda/csrc/functorch/axes.h>
#include <taeda/csrc/functorch/batch_level.h>

#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unflatten.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

namespace taeda::functorch {

namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMean = 1;  // of an argument `reduction`; 0 is none, 2 a sum

// A tensor of the call, and how many of its axes belong to each term of its
// pattern. A batch, if it has one, is dim 0 and not counted.
struct Bound {
  TensorBase tensor;
  const Pattern* pattern;
  size_t argument;
  bool is_list;
  bool batched;
  std::vector<int64_t> counts;
  std::vector<size_t> lacking;  // terms that it could have and has not
  std::set<std::string> inserted;

  int64_t before(size_t term) const {
    int64_t sum = 0;
    for (size_t i = 0; i < term; ++i) sum += counts[i];
    return sum;
  }
  int64_t position(std::string_view key) const {
    return before(static_cast<size_t>(pattern->find(key)));
  }
  int64_t count(std::string_view key) const {
    return counts[static_cast<size_t>(pattern->find(key))];
  }
  std::set<std::string> present() const {
    std::set<std::string> marks;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) marks.insert(pattern->axes[i].mark());
    }
    for (const std::string& mark : inserted) marks.erase(mark);
    return marks;
  }
  void insert_lacking() {
    for (size_t i : lacking) {
      tensor = ops::unsqueeze(tensor, before(i) + batched);
      counts[i] = 1;
      inserted.insert(pattern->axes[i].mark());
    }
    lacking.clear();
  }
  void give_batch(int64_t size) {
    if (batched) return;
    Ints sizes(tensor.sizes().begin(), tensor.sizes().end());
    sizes.insert(sizes.begin(), size);
    tensor = ops::expand(tensor, sizes);
    batched = true;
  }
};

// Dims counted from the left are one further, those from the right stay.
IValue shifted(const IValue& v) {
  if (v.is<int64_t>()) return v.to_int() + (v.to_int() >= 0 ? 1 : 0);
  if (!v.is<Ints>()) return v;
  Ints dims = v.get<Ints>();
  for (int64_t& d : dims) d += d >= 0 ? 1 : 0;
  return dims;
}

bool names_dims(const Pattern& p) {
  return std::ranges::any_of(p.axes,
                             [](const Axis& a) { return a.kind == Axis::At; });
}

// The steps are those of test/python/records/axes_law.py, which is the law's
// own text; a call that it has no place for is none.
class AxesBatch {
 public:
  AxesBatch(BatchCall& call, const Axes& axes)
      : call_(call),
        axes_(axes),
        size_(call.level.size()),
        values_(call.args.begin(), call.args.end()) {}

  // False where no axis takes the batch of these tensors.
  bool prepare() {
    size_t tensor = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!call_.info(i).is_tensor()) continue;
      if (!take(i, axes_.inputs[tensor++])) return false;
    }
    if (!find_place()) return false;
    flatten_everything();
    turn_off_reduction();
    return true;
  }

  Stack run() {
    if (in_front()) {
      put_in_front();
    } else {
      fold();
    }
    give_back();
    Stack results(values_.begin(), values_.end());
    call_operator(call_.op, results);
    for (size_t i = 0; i < results.size(); ++i) {
      if (i < call_.op.written_count) {
        results[i] = call_.args[call_.op.written_first + i];
        take_inside(call_.level, results[i]);
      } else {
        const Pattern& p = axes_.outputs[i];
        each_tensor(results[i], [&](TensorBase& t) { t = result(p, t); });
      }
    }
    return results;
  }

 private:
  bool take(size_t argument, const Pattern& pattern) {
    IValue& v = values_[argument];
    bool fits = true;
    each_tensor(v, [&](TensorBase& t) {
      bool batched = call_.level.has_batch(t);
      TensorBase value = call_.level.inside(t);
      if (pattern.unread) {
        // What is not read is the same for all.
        t = batched ? ops::select(value, 0, 0) : value;
        return;
      }
      bool is_list = call_.info(argument).has(ArgInfo::kList);
      Bound b{value, &pattern, argument, is_list, batched, {}, {}, {}};
      fits = bind(b, value.dim() - (batched ? 1 : 0)) && fits;
      bound_.push_back(std::move(b));
    });
    return fits;
  }

  int64_t wanted(const Axis& axis) const {
    if (axis.is_group()) return 0;
    if (axis.kind == Axis::Name) return 1;
    const IValue& v = values_[static_cast<size_t>(axis.argument)];
    if (axis.kind == Axis::Count) {
      return static_cast<int64_t>(v.get<Ints>().size()) / axis.per;
    }
    if (v.is<int64_t>()) return 1;
    return v.is_none() ? 0 : static_cast<int64_t>(v.get<Ints>().size());
  }

  // Optional axes are absent from the left, and so are those of `@`. Of two
  // groups the last one has the axes.
  bool bind(Bound& b, int64_t rank) const {
    const std::vector<Axis>& terms = b.pattern->axes;
    int64_t sum = 0;
    for (const Axis& axis : terms) {
      b.counts.push_back(wanted(axis));
      sum += b.counts.back();
    }
    int group = -1;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (terms[i].is_group()) group = static_cast<int>(i);
      bool optional = terms[i].absent || terms[i].kind == Axis::At;
      if (sum <= rank || !optional) continue;
      sum -= b.counts[i];
      b.counts[i] = 0;
      b.lacking.push_back(i);
    }
    int64_t rest = rank - sum;
    if (rest < 0 || (rest > 0 && group < 0)) return false;
    if (group >= 0) b.counts[static_cast<size_t>(group)] = rest;
    return true;
  }

  bool find_place() {
    std::vector<const Pattern*> needed;
    int mask = call_.argument("output_mask");
    for (size_t i = 0; i < axes_.outputs.size(); ++i) {
      bool asked =
          mask < 0 ||
          values_[static_cast<size_t>(mask)].get<std::vector<bool>>()[i];
      if (asked) needed.push_back(&axes_.outputs[i]);
    }
    bool writes = false;
    for (const Bound& b : bound_) {
      if (b.batched) needed.push_back(b.pattern);
      if (!call_.info(b.argument).has(ArgInfo::kWritten)) continue;
      if (!b.batched) return false;
      writes = true;
    }
    for (const std::string& key : axes_.places) {
      bool fits = std::ranges::all_of(
          needed, [&](const Pattern* p) { return p->find(key) >= 0; });
      // A folded tensor may be a copy, which it would not do to write.
      bool group = key == "..." || key == "*";
      if (!fits || (writes && !group)) continue;
      key_ = key;
      return true;
    }
    return false;
  }

  bool in_front() const { return key_ == "..." || key_ == "*"; }

  // All axes as one where `@dim*` names none.
  void flatten_everything() {
    for (Bound& b : bound_) {
      auto every = std::ranges::find_if(b.pattern->axes, &Axis::every);
      if (every == b.pattern->axes.end()) continue;
      auto at = static_cast<size_t>(every->argument);
      const IValue& v = values_[at];
      bool named = v.is<int64_t>() || (v.is<Ints>() && !v.get<Ints>().empty());
      if (named) return;
      flat_ =
          Ints(b.tensor.sizes().begin() + b.batched, b.tensor.sizes().end());
      b.give_batch(size_);
      b.tensor = ops::reshape(b.tensor, {size_, -1});
      for (size_t i = 0; i < b.counts.size(); ++i) {
        b.counts[i] = b.pattern->axes[i].kind == Axis::At ? 1 : 0;
      }
      b.lacking.clear();
      bool list = call_.info(at).has(ArgInfo::kList);
      values_[at] = list ? IValue(Ints{0}) : IValue(int64_t{0});
      return;
    }
  }

  // The results are reduced here, each call's by itself.
  void turn_off_reduction() {
    for (const Pattern& p : axes_.outputs) {
      if (p.reduction < 0) continue;
      IValue& v = values_[static_cast<size_t>(p.reduction)];
      if (v.to_int() == 0) continue;
      reduction_ = v.to_int();
      v = int64_t{0};
    }
  }

  std::vector<Bound*> carriers() {
    std::vector<Bound*> found;
    for (Bound& b : bound_) {
      if (b.pattern->find(key_) >= 0) found.push_back(&b);
    }
    return found;
  }

  void put_in_front() {
    const Bound* model = nullptr;
    std::set<int> dims;
    auto collect = [&](const Pattern& p) {
      for (const Axis& a : p.axes) {
        if (a.kind == Axis::At) dims.insert(a.argument);
      }
    };
    for (Bound* b : carriers()) {
      bool longer = model == nullptr || b->count(key_) > model->count(key_);
      if (!b->is_list && longer) model = b;
    }
    for (Bound* b : carriers()) {
      // Broadcasting gives a tensor without the batch what it lacks.
      if (!b->batched && key_ != "*") continue;
      b->give_batch(size_);
      b->insert_lacking();
      if (model != nullptr && !b->is_list) align(*b, *model);
      collect(*b->pattern);
    }
    for (const Pattern& p : axes_.outputs) collect(p);
    for (int argument : dims) {
      IValue& v = values_[static_cast<size_t>(argument)];
      v = shifted(v);
    }
    each_sizes([&](const Pattern& p, Ints& sizes) {
      number_ = sizes.empty() && names_dims(p);
      sizes.insert(sizes.begin(), size_);
      if (number_) sizes.push_back(1);
    });
  }

  // As many axes in the group as the longest has, of its sizes for `*`.
  void align(Bound& b, const Bound& model) const {
    auto lacking = static_cast<size_t>(model.count(key_) - b.count(key_));
    if (lacking == 0) return;
    Ints shape(b.tensor.sizes().begin(), b.tensor.sizes().end());
    auto start = static_cast<std::ptrdiff_t>(1 + b.position(key_));
    shape.insert(shape.begin() + start, lacking, 1);
    b.tensor = ops::reshape(b.tensor, shape);
    if (key_ != "*") return;
    auto first =
        static_cast<size_t>(model.position("*") + (model.batched ? 1 : 0));
    for (size_t i = 0; i < lacking; ++i) {
      shape[static_cast<size_t>(start) + i] = model.tensor.sizes()[first + i];
    }
    b.tensor = ops::expand(b.tensor, shape);
  }

  void fold() {
    int64_t longest = 0;
    for (Bound* b : carriers()) {
      b->give_batch(size_);
      b->insert_lacking();
      longest = std::max(longest, b->tensor.size(1 + b->position(key_)));
    }
    for (Bound* b : carriers()) {
      int64_t at = b->position(key_);
      Ints shape(b->tensor.sizes().begin(), b->tensor.sizes().end());
      int64_t& length = shape[static_cast<size_t>(1 + at)];
      if (length == 1) length = longest;
      TensorBase moved = ops::movedim(ops::expand(b->tensor, shape), 0, at);
      b->tensor = ops::flatten(moved, at, at + 1);
      b->batched = false;
      multiply(*b->pattern);
    }
    for (const Pattern& p : axes_.outputs) multiply(p);
    each_sizes([&](const Pattern& p, Ints& sizes) {
      int term = p.find(key_);
      if (term < 0) return;
      Bound shape{{}, &p, 0, false, false, {}, {}, {}};
      bind(shape, static_cast<int64_t>(sizes.size()));
      sizes[static_cast<size_t>(shape.before(static_cast<size_t>(term)))] *=
          size_;
    });
  }

  // The argument that repeats the folded axis's size, once.
  void multiply(const Pattern& p) {
    int term = p.find(key_);
    if (term < 0) return;
    int argument = p.axes[static_cast<size_t>(term)].size;
    if (argument < 0 || !multiplied_.insert(argument).second) return;
    IValue& v = values_[static_cast<size_t>(argument)];
    v = v.to_int() * size_;
  }

  template <class F>
  void each_sizes(F&& f) {
    for (const auto* side : {&axes_.inputs, &axes_.outputs}) {
      for (const Pattern& p : *side) {
        if (p.sizes < 0) continue;
        f(p, values_[static_cast<size_t>(p.sizes)].get<Ints>());
      }
    }
  }

  void give_back() {
    size_t next = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (next == bound_.size() || bound_[next].argument != i) continue;
      each_tensor(values_[i],
                  [&](TensorBase& t) { t = bound_[next++].tensor; });
    }
  }

  // Results -------------------------------------------------------------------

  TensorBase result(const Pattern& p, TensorBase r) const {
    if (!in_front()) {
      auto term = static_cast<size_t>(p.find(key_));
      int64_t at = position_in_result(p, term, r.dim());
      r = ops::unflatten(r, at, {size_, r.size(at) / size_});
      r = ops::movedim(r, at, 0);
    }
    r = without_inserted(p, r);
    if (flat_) {
      Ints shape{size_};
      if (names_dims(p)) {
        shape.insert(shape.end(), flat_->begin(), flat_->end());
      } else if (keeps_dims()) {
        shape.insert(shape.end(), flat_->size(), 1);
      }
      r = ops::reshape(r, shape);
    }
    if (number_) r = ops::reshape(r, {size_});
    if (p.reduction >= 0 && reduction_ != 0 && r.dim() > 1) {
      r = ops::flatten(r, 1, -1);
      Ints dim{1};
      r = reduction_ == kMean ? ops::mean(r, dim) : ops::sum(r, dim);
    }
    return r;
  }

  bool keeps_dims() const {
    int keep = call_.argument("keepdim");
    return keep >= 0 && values_[static_cast<size_t>(keep)].to_bool();
  }

  TensorBase without_inserted(const Pattern& p, TensorBase r) const {
    std::set<std::string> gone, there;
    for (const Bound& b : bound_) {
      gone.insert(b.inserted.begin(), b.inserted.end());
      there.merge(b.present());
    }
    for (const std::string& mark : there) gone.erase(mark);
    if (gone.empty()) return r;
    Ints removed;
    for (size_t i = 0; i < p.axes.size(); ++i) {
      if (gone.count(p.axes[i].mark()) > 0) {
        removed.push_back(1 + position_in_result(p, i, r.dim() - 1));
      }
    }
    std::ranges::sort(removed, std::greater<>());
    for (int64_t at : removed) r = ops::squeeze(r, at);
    bool reduced = !names_dims(p) && std::ranges::any_of(gone, [](auto& mark) {
      return mark[0] == '@';
    });
    return reduced && keeps_dims() ? ops::squeeze(r, 1) : r;
  }

  // Where a term lies in a result: from the left, or from a group's right.
  int64_t position_in_result(const Pattern& p,
                             size_t term,
                             int64_t rank) const {
    auto group =
        std::find_if(p.axes.begin(),
                     p.axes.begin() + static_cast<std::ptrdiff_t>(term),
                     [](const Axis& a) { return a.is_group(); });
    bool behind = group != p.axes.begin() + static_cast<std::ptrdiff_t>(term);
    int64_t width = 0;
    size_t from = behind ? term + 1 : 0;
    size_t to = behind ? p.axes.size() : term;
    for (size_t i = from; i < to; ++i) width += width_of(p.axes[i]);
    return behind ? rank - 1 - width : width;
  }

  // One axis, if a tensor has it or none can.
  int64_t width_of(const Axis& axis) const {
    bool known = false;
    for (const Bound& b : bound_) {
      int term = b.pattern->find(axis.key());
      if (term < 0) continue;
      if (b.counts[static_cast<size_t>(term)] > 0) return 1;
      known = true;
    }
    return known ? 0 : 1;
  }

  BatchCall& call_;
  const Axes& axes_;
  int64_t size_;
  std::vector<IValue> values_;
  std::vector<Bound> bound_;
  std::string key_;
  std::optional<Ints> flat_;
  std::set<int> multiplied_;
  int64_t reduction_ = 0;
  bool number_ = false;  // a result without axes has one for the call
};

const std::optional<Axes>& known_axes(const OperatorEntry& op) {
  static std::mutex mutex;
  static auto* known =
      new std::unordered_map<const OperatorEntry*, std::optional<Axes>>;
  std::lock_guard guard(mutex);
  auto [at, fresh] = known->try_emplace(&op);
  if (fresh) at->second = axes_of(op);
  return at->second;
}

}  // namespace

namespace {

std::optional<Stack> by_axes(BatchCall& call) {
  const std::optional<Axes>& axes = known_axes(call.op);
  if (!axes) return std::nullopt;
  AxesBatch batch(call, *axes);
  if (!batch.prepare()) return std::nullopt;
  return batch.run();
}

// The dims of each result in an order that speaks of four or five: the batch
// and the first of them lie together in front.
void put_in_format(const BatchCall& call, Stack& results, MemoryFormat format) {
  for (IValue& v : results) {
    each_tensor(v, [&](TensorBase& t) {
      int64_t n = t.dim() > 1 ? t.size(1) : 1;
      TensorBase joined = ops::contiguous(ops::flatten(t, 0, 1), format);
      t = ops::unflatten(joined, 0, {call.level.size(), n});
    });
  }
}

}  // namespace

std::optional<Stack> kernel_batch(BatchCall& call) {
  int at = call.argument("memory_format");
  IValue* asked = at < 0 ? nullptr : &call.args[static_cast<size_t>(at)];
  if (asked == nullptr || asked->is_none()) return by_axes(call);
  auto format = static_cast<MemoryFormat>(asked->to_int());
  bool named = format == MemoryFormat::ChannelsLast ||
               format == MemoryFormat::ChannelsLast3d;
  if (!named) return by_axes(call);
  IValue before = *asked;
  *asked = static_cast<int64_t>(MemoryFormat::Contiguous);
  std::optional<Stack> results = by_axes(call);
  *asked = before;
  if (results) put_in_format(call, *results, format);
  return results;
}

}  // namespace taeda::functorch
