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

void place(OperatorEntry& op, DispatchKey key, BoxedKernel* kernel) {
  int slot = static_cast<int>(key);
  op.slots[slot] = nullptr;
  observe::forget_kernel(op, key);
  op.boxed[slot] = kernel;
  op.present |= DispatchKeySet(key).bits();
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

OperatorEntry& Library::find(std::string_view text) {
  auto [base, overload] = split_name(text);
  bool qualified = base.find("::") != base.npos;
  std::string name(base);
  if (!qualified && namespace_ != "aten") name = namespace_ + "::" + name;
  if (name.starts_with("aten::")) name = name.substr(6);
  OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_CHECK(op != nullptr,
              "impl: no operator ",
              namespace_,
              "::",
              text,
              " is declared; def() it first");
  return *op;
}

void Library::implement(OperatorEntry& op,
                        std::string_view key_name,
                        std::unique_ptr<BoxedKernel> kernel) {
  DispatchKey key = DispatchKey::CPU;
  KernelPlace where = parse_place(key_name, &key);
  BoxedKernel* shared = kernel.release();  // kernels live for ever
  if (where == KernelPlace::Key) {
    place(op, key, shared);
    return;
  }
  for (int k = 0; k < kNumBackendKeys; ++k) {
    auto backend = static_cast<DispatchKey>(k);
    if (op.boxed[k] == nullptr && observe::kernel_at(op, backend) == nullptr) {
      place(op, backend, shared);
    }
  }
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
