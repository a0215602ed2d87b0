// What nodes keep, as a list: for whoever runs a node on other values.
#pragma once

#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/saved_variable.h>

#include <taeda/aten/core/op_types.h>

#include <optional>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

namespace taeda::autograd {

// One member of a node, of the types that nodes have.
using Field = std::variant<SavedVariable*,
                           SavedList*,
                           SymInt*,
                           std::optional<SymInt>*,
                           Dims<SymInt>*,
                           std::vector<Dims<SymInt>>*,
                           bool*,
                           std::optional<bool>*,
                           int64_t*,
                           std::optional<int64_t>*,
                           size_t*,
                           double*,
                           std::optional<double>*,
                           DimVector*,
                           std::optional<DimVector>*,
                           Scalar*,
                           std::optional<Scalar>*,
                           ScalarType*,
                           std::vector<ScalarType>*,
                           Device*,
                           std::string*,
                           std::optional<std::string>*,
                           TensorGeometry*>;

// Note [Fields of nodes]
// Generated nodes list their members, so that others can tell two calls apart
// (by the plain values among them) and run a node's formula on other tensors:
// a blank node gets members of its own. `list_fields` of both gives them in the
// same order.
class NodeFields {
 public:
  template <class... T>
  void add(T&... members) {
    (fields_.emplace_back(&members), ...);
  }
  // The class of a node that this one has inside; it tells calls apart.
  void add_kind(const std::type_info& kind) { kinds_.push_back(&kind); }
  // Something shared that a blank node has, too; it tells calls apart.
  void add_shared(IntrusivePtr<IntrusiveTarget> shared) {
    shared_.push_back(std::move(shared));
  }
  const std::vector<Field>& list() const { return fields_; }
  const std::vector<const std::type_info*>& kinds() const { return kinds_; }
  const std::vector<IntrusivePtr<IntrusiveTarget>>& shared() const {
    return shared_;
  }

 private:
  std::vector<Field> fields_;
  std::vector<const std::type_info*> kinds_;
  std::vector<IntrusivePtr<IntrusiveTarget>> shared_;
};

}  // namespace taeda::autograd
