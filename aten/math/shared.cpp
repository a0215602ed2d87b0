// The functions of Note [Shared functions], once for the library.
#define TAEDA_MATH_SHARED
#undef TAEDA_MATH_LINKED
#include <taeda/aten/math/shared.h>
