// Records as text, for tools and for `taeda.ops`.
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <string>

namespace taeda {

// What the record says about an operator, as one JSON object: name, schema,
// form, family, tags, arguments, results, dtypes, axes and expressions (null or
// empty where the record has none).
TAEDA_API std::string record_json(const OperatorEntry& op);

}  // namespace taeda
