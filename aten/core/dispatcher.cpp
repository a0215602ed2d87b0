#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/op_info.h>

namespace taeda {

// Generated: hands over the entries of all records.
void register_generated(Dispatcher& dispatcher);

TAEDA_API std::string OperatorEntry::qualified_name() const {
  std::string_view n = name;
  std::string out = n.find("::") == n.npos ? str_cat("aten::", n) : str_cat(n);
  if (*overload != '\0') out += str_cat(".", overload);
  return out;
}

void no_kernel(const OperatorEntry& op, DispatchKeySet keys) {
  std::string_view backend = dispatch_key_name((keys & kBackendKeys).highest());
  throw_error(
      ErrorKind::NotImplemented,
      str_cat("Could not run '",
              op.qualified_name(),
              "' with arguments from the '",
              backend,
              "' backend: the operator has no kernel for it in this build"));
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
    return d;
  }();
  return *dispatcher;
}

void Dispatcher::add(OperatorEntry* const* entries, size_t count) {
  entries_.insert(entries_.end(), entries, entries + count);
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < kNumDispatchKeys; ++k) {
      if (fallbacks_[k] == nullptr || entries[i]->slots[k] != nullptr) continue;
      entries[i]->boxed[k] = fallbacks_[k];
      entries[i]->present |= uint64_t{1} << k;
    }
  }
}

OperatorEntry* Dispatcher::find(std::string_view name,
                                std::string_view overload) {
  for (OperatorEntry* entry : entries_) {
    if (name == entry->name && overload == entry->overload) return entry;
  }
  return nullptr;
}

void Dispatcher::set_fallback(DispatchKey k, BoxedKernel* kernel) {
  int slot = static_cast<int>(k);
  fallbacks_[slot] = kernel;
  for (OperatorEntry* entry : entries_) {
    if (entry->slots[slot] != nullptr) continue;
    entry->boxed[slot] = kernel;
    entry->present |= uint64_t{1} << slot;
  }
}

}  // namespace taeda
