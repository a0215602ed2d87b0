// What programs call the members of nodes: `grad_fn._saved_NAME`.
#pragma once

#include <taeda/csrc/autograd/node.h>

namespace taeda::autograd {

// The names of what a generated node lists first (Note [Fields of nodes]), each
// with a NUL behind it and one more behind the last; null for other nodes.
TAEDA_API const char* names_of_fields(const Node& node);

}  // namespace taeda::autograd
