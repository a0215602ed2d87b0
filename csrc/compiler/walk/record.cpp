#include <taeda/csrc/compiler/walk/record.h>

#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/autograd/variable.h>

#include <bit>
#include <numeric>
#include <typeinfo>
#include <unordered_map>

namespace taeda::compiler {

namespace {

using autograd::Field;
using autograd::Node;
using autograd::OutputInfo;
using autograd::SavedVariable;

// Dims from the outermost to the innermost one, if strides are those of sizes
// in that order and nothing else.
bool find_order(const TensorBase& t, SmallVector<uint8_t, 6>& order) {
  auto rank = static_cast<size_t>(t.dim());
  order.resize(rank);
  std::iota(order.begin(), order.end(), uint8_t{0});
  IntArrayRef strides = t.strides(), sizes = t.sizes();
  auto is_dense = [&] {
    int64_t run = 1;
    for (size_t k = rank; k-- > 0;) {
      if (strides[order[k]] != run) return false;
      run *= sizes[order[k]];
    }
    return true;
  };
  if (is_dense()) return true;
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) {
    return strides[a] > strides[b];
  });
  return is_dense();
}

class Recorder {
 public:
  explicit Recorder(autograd::PassView& pass) : pass_(pass) {}
  PassRecord run() {
    add_modes();
    for (autograd::PassCall& call : pass_.calls) add_call(call);
    add_roots();
    // Behind the calls' numbers, so that those of one call are together.
    for (RecordedLook& look : out_.looks) look.sizes_at += out_.numbers.size();
    out_.numbers.insert(out_.numbers.end(), lying_.begin(), lying_.end());
    return std::move(out_);
  }

 private:
  void put(uint64_t v) { out_.key.push_back(v); }
  void put_text(const std::string& s) {
    put(s.size());
    for (char c : s) put(static_cast<uint8_t>(c));
  }
  void number(const SymInt& v) { out_.numbers.push_back(v.guard()); }

  void add_modes();
  void add_call(autograd::PassCall& at);
  void add_targets(RecordedCall& call);
  void add_outputs(const Node& node);
  void add_fields(RecordedCall& call);
  void add_saved(RecordedCall& call, const SavedVariable& saved);
  void add_hooks(RecordedCall& call);
  void add_roots();
  Slot slot_of(const TensorBase& t);
  void add_look(const TensorBase& t);

  // Plain values and numbers among the fields.
  void add(SymInt* v) { number(*v); }
  void add(Dims<SymInt>* list) {
    put(list->size());
    for (const SymInt& v : *list) number(v);
  }
  void add(std::vector<Dims<SymInt>>* lists) {
    put(lists->size());
    for (Dims<SymInt>& list : *lists) add(&list);
  }
  void add(DimVector* list) {
    put(list->size());
    for (int64_t v : *list) put(static_cast<uint64_t>(v));
  }
  void add(double* v) { put(std::bit_cast<uint64_t>(*v)); }
  void add(std::string* text) { put_text(*text); }
  void add(Scalar* v) {
    put(static_cast<uint64_t>(v->kind()));
    if (v->kind() == Scalar::Kind::Int || v->kind() == Scalar::Kind::Bool) {
      put(static_cast<uint64_t>(v->to_int()));
      return;
    }
    complex<double> whole = v->to_complex();
    put(std::bit_cast<uint64_t>(whole.real()));
    put(std::bit_cast<uint64_t>(whole.imag()));
  }
  void add(std::vector<ScalarType>* list) {
    put(list->size());
    for (ScalarType t : *list) put(static_cast<uint64_t>(t));
  }
  void add(Device* d) {
    put(static_cast<uint64_t>(d->type));
    put(static_cast<uint64_t>(d->index));
  }
  void add(autograd::TensorGeometry* g) {
    add(&g->sizes);
    add(&g->strides);
    put(static_cast<uint64_t>(g->storage_offset));
  }
  template <class T>
  void add(std::optional<T>* v) {
    put(v->has_value() ? 1 : 0);
    if (*v) add(&**v);
  }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T* v) {
    put(static_cast<uint64_t>(*v));
  }

  autograd::PassView& pass_;
  PassRecord out_;
  std::vector<int64_t> lying_;  // of the looks
  std::unordered_map<const TensorImpl*, Slot> known_;
};

void Recorder::add_modes() {
  autocast::Settings casts = autocast::settings();
  put(casts.enabled);
  if (casts.enabled != 0) {
    for (ScalarType t : casts.dtypes) put(static_cast<uint64_t>(t));
  }
  put(inference_mode() ? 1 : 0);
  put(pass_.calls.size());
}

void Recorder::add_look(const TensorBase& t) {
  RecordedLook look;
  look.sizes_at = lying_.size();
  put(static_cast<uint64_t>(t.dtype()));
  put(static_cast<uint64_t>(t.device().type));
  put(static_cast<uint64_t>(t.device().index));
  put((t.keys() - DispatchKeySet(DispatchKey::Autograd)).bits());
  bool plain = is_plain(t);
  put(plain ? static_cast<uint64_t>(t.dim()) : ~uint64_t{0});
  if (plain) {
    put(t.impl()->is_wrapped_number ? 1 : 0);
    look.is_dense = find_order(t, look.order);
    put(look.is_dense ? 1 : 0);
    lying_.insert(lying_.end(), t.sizes().begin(), t.sizes().end());
    if (look.is_dense) {
      for (uint8_t d : look.order) put(d);
    } else {
      lying_.insert(lying_.end(), t.strides().begin(), t.strides().end());
    }
  }
  out_.looks.push_back(std::move(look));
}

Slot Recorder::slot_of(const TensorBase& t) {
  auto next = static_cast<Slot>(out_.slots.size());
  auto [at, is_new] = known_.emplace(t.impl(), next);
  put(static_cast<uint64_t>(at->second));
  if (is_new) {
    out_.slots.push_back(t);
    add_look(t);
  }
  return at->second;
}

void Recorder::add_saved(RecordedCall& call, const SavedVariable& saved) {
  Slot slot = kNoSlot;
  if (saved.is_packed()) {
    slot = kPacked;
    call.packed = true;
  } else if (!saved.is_empty()) {
    try {
      TensorBase t = saved.unpack(*call.at.node);
      if (!is_plain(t)) call.kind = RecordedCall::Opaque;
      call.saved.push_back(slot_of(t));
      return;
    } catch (const Error&) {
      // Changed or gone: the node says so, should it get a gradient.
      call.kind = RecordedCall::Opaque;
    }
  }
  put(static_cast<uint64_t>(int64_t{slot}));
  call.saved.push_back(slot);
}

void Recorder::add_fields(RecordedCall& call) {
  call.kind = RecordedCall::Traced;
  for (const std::type_info* kind : call.fields.kinds()) {
    put(reinterpret_cast<uintptr_t>(kind));
  }
  for (const auto& shared : call.fields.shared()) {
    put(reinterpret_cast<uintptr_t>(shared.get()));
  }
  for (const Field& field : call.fields.list()) {
    std::visit(
        [&](auto* member) {
          using M = std::remove_pointer_t<decltype(member)>;
          if constexpr (std::is_same_v<M, SavedVariable>) {
            add_saved(call, *member);
          } else if constexpr (std::is_same_v<M, autograd::SavedList>) {
            put(member->size());
            for (const SavedVariable& v : *member) add_saved(call, v);
          } else {
            add(member);
          }
        },
        field);
  }
}

void Recorder::add_outputs(const Node& node) {
  put(node.num_outputs());
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const OutputInfo& info = node.output(i);
    put(info.known ? static_cast<uint64_t>(info.dtype) : ~uint64_t{0});
    if (!info.known) continue;
    put(static_cast<uint64_t>(info.device.type));
    put(static_cast<uint64_t>(info.device.index));
    put(info.sizes.size());
    for (const SymInt& v : info.symbolic_sizes()) number(v);
  }
}

void Recorder::add_targets(RecordedCall& call) {
  for (const autograd::Edge& edge : call.at.node->next_edges()) {
    RecordedCall::Target target;
    if (edge.valid()) {
      target = {pass_.place_of(edge.node.get()), edge.input_nr};
    }
    put((static_cast<uint64_t>(target.call + 1) << 32) | target.input_nr);
    call.targets.push_back(target);
  }
}

// Hooks that may see or change gradients on their way.
void Recorder::add_hooks(RecordedCall& call) {
  const Node& node = *call.at.node;
  call.hooked = autograd::has_tensor_hooks(node);
  bool own = false, after = false;
  size_t retained = 0;
  if (const autograd::NodeExtra* extra = node.extra_or_null()) {
    own = !extra->pre_hooks.empty() || !extra->post_hooks.empty();
    retained = extra->retain_hooks.size();
    for (const auto& hook : extra->retain_hooks) put(hook.output_nr);
  }
  if (TensorImpl* variable = node.accumulated_variable()) {
    auto* meta =
        static_cast<autograd::AutogradMeta*>(variable->autograd_meta());
    after = meta != nullptr && meta->leaf_hooks && meta->leaf_hooks->after;
  }
  put((call.hooked ? 1 : 0) | (own ? 2 : 0) | (after ? 4 : 0) | retained << 3);
  if (own || after) call.kind = RecordedCall::Opaque;
}

void Recorder::add_call(autograd::PassCall& at) {
  RecordedCall call;
  Node& node = *at.node;
  put(reinterpret_cast<uintptr_t>(&typeid(node)));
  put(at.captured.size() << 1 | (at.needed ? 1 : 0));
  for (const auto& c : at.captured) {
    put(static_cast<uint64_t>(c.input_nr) << 32 | c.result);
  }
  call.at = std::move(at);
  call.numbers = out_.numbers.size();
  add_outputs(node);
  if (!call.at.needed) {
    add_hooks(call);
    call.kind = RecordedCall::Captured;
  } else {
    add_targets(call);
    if (node.accumulated_variable() != nullptr) {
      call.kind = RecordedCall::Accumulate;
    } else if (node.list_fields(call.fields)) {
      add_fields(call);
    }
    add_hooks(call);
  }
  put(call.kind);
  out_.calls.push_back(std::move(call));
}

void Recorder::add_roots() {
  for (size_t i = 0; i < pass_.roots.size(); ++i) {
    const autograd::Edge& edge = pass_.roots[i];
    PassRecord::Root root;
    root.call = pass_.place_of(edge.node.get());
    root.input_nr = edge.input_nr;
    put((static_cast<uint64_t>(root.call + 1) << 32) | root.input_nr);
    if (pass_.grads[i].defined()) root.slot = slot_of(pass_.grads[i]);
    out_.roots.push_back(root);
  }
}

}  // namespace

size_t numbers_of_output(const RecordedCall& call, size_t output) {
  size_t at = call.numbers;
  for (size_t i = 0; i < output; ++i) {
    const OutputInfo& before = call.at.node->output(i);
    if (before.known) at += before.sizes.size();
  }
  return at;
}

bool is_plain(const TensorBase& t) {
  return t.layout() == Layout::Strided && !t.impl()->is_symbolic() &&
         !t.keys().has(DispatchKey::Wrapped) &&
         !t.keys().has(DispatchKey::Python);
}

PassRecord record_pass(autograd::PassView& pass) {
  return Recorder(pass).run();
}

}  // namespace taeda::compiler
