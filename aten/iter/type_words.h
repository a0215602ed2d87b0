// Names of dtypes in the errors of out= tensors.
#pragma once

#include <taeda/c10/core/scalar_type.h>

namespace taeda::derived {

// The elements' type as C++ has it ("long int", "c10::Half"): what programs
// look for in the text of these errors.
TAEDA_API std::string_view type_words(ScalarType t);

}  // namespace taeda::derived
