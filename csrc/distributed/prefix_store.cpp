#include <taeda/csrc/distributed/prefix_store.h>

namespace taeda::distributed {

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> inner)
    : prefix_(std::move(prefix)), inner_(std::move(inner)) {
  TAEDA_CHECK_AS(Value, inner_, "PrefixStore: expected a store, got None");
}

Keys PrefixStore::full(const Keys& keys) const {
  Keys result;
  result.reserve(keys.size());
  for (const auto& key : keys) result.push_back(full(key));
  return result;
}

}  // namespace taeda::distributed
