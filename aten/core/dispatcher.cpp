#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/c10/core/allocator.h>

namespace taeda {

void register_level_kernels(Dispatcher& dispatcher);    // level.h
void register_autocast_kernel(Dispatcher& dispatcher);  // autocast.h
void register_symbolic_kernel(Dispatcher& dispatcher);  // symbolic.h
void register_symbolic_grad_kernel(Dispatcher& dispatcher);
// Keys whose bit in `present` comes with the entry (Note [Autocast]): setting
// their fallback leaves it as it is.
constexpr uint64_t kOwnKeys =
    (kLevelKeys | DispatchKeySet(DispatchKey::Autocast)).bits();

// Generated: hands over the entries of all records.
void register_generated(Dispatcher& dispatcher);

TAEDA_API std::string OperatorEntry::qualified_name() const {
  std::string_view n = name;
  std::string out = n.find("::") == n.npos ? str_cat("aten::", n) : str_cat(n);
  if (*overload != '\0') out += str_cat(".", overload);
  return out;
}

void no_kernel(const OperatorEntry& op, DispatchKeySet keys) {
  // Where the device itself is not there, that is the error.
  if (keys.has(DispatchKey::PrivateUse1)) {
    allocator_for(DeviceType::PrivateUse1);
  }
  std::string_view backend = dispatch_key_name((keys & kBackendKeys).highest());
  throw_error(
      ErrorKind::NotImplemented,
      str_cat("Could not run '",
              op.qualified_name(),
              "' with arguments from the '",
              backend,
              "' backend: the operator has no kernel for it in this build"));
}

BoxedKernel& boxed_kernel(const OperatorEntry& op, DispatchKeySet keys) {
  DispatchKey key = op.select(keys);
  BoxedKernel* kernel = op.boxed[static_cast<int>(key)];
  if (kernel == nullptr) kernel = Dispatcher::get().fallback(key);
  if (kernel == nullptr && key == DispatchKey::CUDA) {
    allocator_for(DeviceType::CUDA);  // loads the backend, or says why not
    kernel = Dispatcher::get().fallback(key);
  }
  if (kernel == nullptr) no_kernel(op, keys);
  return *kernel;
}

DispatchKeySet keys_without_tensors(const OperatorEntry& op) {
  bool lists_alone = false;
  for (const ArgInfo& a : arguments_of(*op.info)) {
    if (!a.is_tensor()) continue;
    lists_alone = a.has(ArgInfo::kList);
    if (!lists_alone) break;
  }
  TAEDA_CHECK(lists_alone,
              op.qualified_name(),
              ": expected at least one defined tensor argument");
  return DispatchKeySet(DispatchKey::CPU);
}

Dispatcher& Dispatcher::get() {
  static Dispatcher* dispatcher = [] {
    auto* d = new Dispatcher;
    register_generated(*d);
    register_level_kernels(*d);
    register_autocast_kernel(*d);
    register_symbolic_kernel(*d);
    register_symbolic_grad_kernel(*d);
    return d;
  }();
  return *dispatcher;
}

void Dispatcher::add(OperatorEntry* const* entries, size_t count) {
  entries_.insert(entries_.end(), entries, entries + count);
  uint64_t everywhere = 0;
  for (int k = 0; k < kNumDispatchKeys; ++k) {
    if (fallbacks_[k] != nullptr) everywhere |= uint64_t{1} << k;
  }
  everywhere &= ~kOwnKeys;
  if (everywhere == 0) return;
  for (size_t i = 0; i < count; ++i) entries[i]->present |= everywhere;
}

OperatorEntry* Dispatcher::find(std::string_view name,
                                std::string_view overload) {
  for (OperatorEntry* entry : entries_) {
    if (name == entry->name && overload == entry->overload) return entry;
  }
  return nullptr;
}

void Dispatcher::set_fallback(DispatchKey k, BoxedKernel* kernel) {
  fallbacks_[static_cast<int>(k)] = kernel;
  if ((kOwnKeys & DispatchKeySet(k).bits()) != 0) return;
  for (OperatorEntry* entry : entries_) {
    entry->present |= DispatchKeySet(k).bits();
  }
}

}  // namespace taeda
