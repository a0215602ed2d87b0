#include <taeda/aten/core/level.h>
#include <taeda/aten/core/library.h>
#include <taeda/aten/core/observe.h>
#include <taeda/aten/core/op_info.h>

#include <deque>
#include <mutex>

namespace taeda {

void call_with_symbols(const OperatorEntry& op, Stack& stack);  // symbolic.h

namespace {

// Entries and their texts live as long as the process: callers keep pointers.
struct UserOperator {
  std::string name, overload, schema;
  std::string last_name{};  // of an operator that is withdrawn
  std::vector<ArgInfo> values;
  OpInfo info{};
  OperatorEntry entry{};
};
std::deque<UserOperator>& user_operators() {
  static auto* list = new std::deque<UserOperator>;
  return *list;
}
std::mutex& library_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::pair<std::string_view, std::string_view> split_name(
    std::string_view text) {
  size_t dot = text.find('.');
  if (dot == text.npos) return {text, {}};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Kernels of users at one key of an operator, the last on top.
struct Place {
  struct Layer {
    Registration registration;
    BoxedKernel* kernel;
  };
  OperatorEntry* op;
  DispatchKey key;
  void* kernel_below;
  BoxedKernel* boxed_below;
  bool was_present;
  std::vector<Layer> layers{};

  void install() const {
    bool is_ours = !layers.empty();
    int slot = static_cast<int>(key);
    uint64_t bit = DispatchKeySet(key).bits();
    op->boxed[slot] = is_ours ? layers.back().kernel : boxed_below;
    observe::set_kernel(*op, key, is_ours ? nullptr : kernel_below);
    bool is_present = is_ours || was_present;
    op->present = is_present ? op->present | bit : op->present & ~bit;
  }
};
// Guarded by library_mutex.
std::deque<Place>& places() {
  static auto* list = new std::deque<Place>;
  return *list;
}

Place& place_of(OperatorEntry& op, DispatchKey key) {
  for (Place& p : places()) {
    if (p.op == &op && p.key == key) return p;
  }
  return places().emplace_back(
      Place{.op = &op,
            .key = key,
            .kernel_below = observe::kernel_at(op, key),
            .boxed_below = op.boxed[static_cast<int>(key)],
            .was_present = (op.present & DispatchKeySet(key).bits()) != 0});
}

void place(OperatorEntry& op,
           DispatchKey key,
           Registration registration,
           BoxedKernel* kernel) {
  Place& p = place_of(op, key);
  p.layers.push_back({registration, kernel});
  p.install();
}

}  // namespace

DispatchKeySet keys_in(const IValue& v) {
  if (v.is<TensorBase>()) return keys_of(v.get<TensorBase>());
  if (v.is<std::vector<TensorBase>>()) {
    return keys_of(TensorBaseList(v.get<std::vector<TensorBase>>()));
  }
  if (v.is<std::vector<OptionalTensor>>()) {
    return keys_of(
        ArrayRef<OptionalTensor>(v.get<std::vector<OptionalTensor>>()));
  }
  return {};
}

KernelPlace parse_place(std::string_view name, DispatchKey* key) {
  if (name == "CompositeImplicitAutograd" || name.empty()) {
    return KernelPlace::CompositeImplicit;
  }
  if (name.starts_with("CompositeExplicitAutograd")) {
    return KernelPlace::CompositeExplicit;
  }
  TAEDA_CHECK_AS(Value,
                 parse_dispatch_key(name, key),
                 "could not parse dispatch key: ",
                 name);
  return KernelPlace::Key;
}

OperatorEntry& Library::def(std::string_view schema) {
  schema = trim(schema);
  std::string_view head = trim(schema.substr(0, schema.find('(')));
  TAEDA_CHECK(!head.empty() && schema.find("->") != schema.npos,
              "def: expected `name(arguments) -> returns`, got '",
              schema,
              "'");
  auto [base, overload] = split_name(head);
  if (size_t scope = base.find("::"); scope != base.npos) {
    base = base.substr(scope + 2);
  }
  ParsedSchema parsed = parse_schema(schema);
  std::string qualified = namespace_ + "::" + std::string(base);
  TAEDA_CHECK(Dispatcher::get().find(qualified, overload) == nullptr,
              "Tried to register an operator (",
              qualified,
              ") with the same name and overload name multiple times");
  std::lock_guard guard(library_mutex());
  UserOperator& op = user_operators().emplace_back();
  op.name = std::move(qualified);
  op.overload = overload;
  op.schema = schema;
  op.values = std::move(parsed.values);
  static const RecordInfo user_record{};
  op.info = {&user_record,
             op.values.data(),
             static_cast<uint8_t>(parsed.arguments),
             static_cast<uint8_t>(op.values.size() - parsed.arguments)};
  op.entry.info = &op.info;
  op.entry.name = op.name.c_str();
  op.entry.overload = op.overload.c_str();
  op.entry.schema = op.schema.c_str();
  OperatorEntry* pointer = &op.entry;
  Dispatcher::get().add(&pointer, 1);
  return op.entry;
}

// Declared with its first kernel: programs' devices alone have some, and copies
// to and from these are all that calls it (aten/iter/program_launch.cpp).
OperatorEntry& copy_from_operator() {
  static OperatorEntry& op = Library("aten").def(
      "_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor");
  return op;
}

OperatorEntry& Library::find(std::string_view text) {
  auto [base, overload] = split_name(text);
  bool qualified = base.find("::") != base.npos;
  std::string name(base);
  if (!qualified && namespace_ != "aten") name = namespace_ + "::" + name;
  if (name.starts_with("aten::")) name = name.substr(6);
  OperatorEntry* op = Dispatcher::get().find(name, overload);
  if (op == nullptr && namespace_ == "aten" && name == kCopyFrom) {
    op = &copy_from_operator();
  }
  TAEDA_CHECK(op != nullptr,
              "impl: no operator ",
              namespace_,
              "::",
              text,
              " is declared; def() it first");
  return *op;
}

namespace {
bool is_of_records(const OperatorEntry& op) {
  return op.info->record->family != Family::User;
}
}  // namespace

Registration Library::implement(OperatorEntry& op,
                                std::string_view key_name,
                                std::unique_ptr<BoxedKernel> kernel) {
  DispatchKey key = DispatchKey::CPU;
  KernelPlace where = parse_place(key_name, &key);
  TAEDA_CHECK_AS(NotImplemented,
                 key_name != "AutogradPrivateUse1" || !is_of_records(op),
                 op.qualified_name(),
                 ": a derivative for the device of a program alone "
                 "(AutogradPrivateUse1) is not there; the operator's own "
                 "holds for all devices");
  std::lock_guard guard(library_mutex());
  static Registration last = 0;
  Registration registration = ++last;
  BoxedKernel* shared = kernel.release();
  if (where == KernelPlace::Key) {
    place(op, key, registration, shared);
    return registration;
  }
  for (int k = 0; k < kNumBackendKeys; ++k) {
    auto backend = static_cast<DispatchKey>(k);
    if (op.boxed[k] == nullptr && observe::kernel_at(op, backend) == nullptr) {
      place(op, backend, registration, shared);
    }
  }
  return registration;
}

void Library::take_back(Registration kernel) {
  std::lock_guard guard(library_mutex());
  for (Place& p : places()) {
    auto is_it = [&](const Place::Layer& l) {
      return l.registration == kernel;
    };
    if (std::erase_if(p.layers, is_it) != 0) p.install();
  }
}

void Library::withdraw(OperatorEntry& op) {
  std::lock_guard guard(library_mutex());
  for (Place& p : places()) {
    if (p.op != &op) continue;
    p.layers.clear();
    p.install();
  }
  for (UserOperator& user : user_operators()) {
    if (&user.entry != &op) continue;
    user.last_name = user.name;
    user.last_name += kWithdrawn;
    op.name = user.last_name.c_str();
  }
}

void Library::fallback(std::unique_ptr<BoxedKernel> kernel) {
  DispatchKey key = DispatchKey::CPU;
  bool one = parse_place(key_, &key) == KernelPlace::Key;
  // Those of the CPU and of CUDA are the library's own.
  TAEDA_CHECK_AS(NotImplemented,
                 one && key == DispatchKey::PrivateUse1,
                 "fallback: not there for the key ",
                 key_,
                 "; the device of a program (PrivateUse1) can have one");
  Dispatcher::get().set_fallback(key, kernel.release());
}

size_t argument_count(const OperatorEntry& op) { return op.info->arguments; }

void call_boxed(const OperatorEntry& op, Stack& stack, size_t count) {
  if (TAEDA_UNLIKELY(has_symbols(arguments_on(op, stack)))) {
    call_with_symbols(op, stack);
    return;
  }
  if (op.from_stack != nullptr) {
    op.from_stack(op, op.public_function, stack);
    return;
  }
  DispatchKeySet keys;
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    keys = keys | keys_in(stack[i]);
  }
  if (keys.empty()) keys = DispatchKeySet(DispatchKey::CPU);
  observe::call_boxed_kernel(op, keys, stack);
}

}  // namespace taeda
