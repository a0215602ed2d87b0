// What was worked out from a storage's bytes, kept until they are written.
#pragma once

#include <taeda/c10/core/storage.h>

#include <memory>

namespace taeda {

// Note [Kept forms]
// Convolutions want weights in an order of their own. What they make of a
// weight may be used again as long as its bytes are the same, which no count of
// versions tells: `x.data`, a detached tensor with a count of its own and a
// view of the storage all write the same bytes. But whoever writes asks the
// storage for its memory first (mutable_data), by a branch that is there for
// lazy clones. So a form is kept in the storage, takes that branch and is given
// up there. Whoever keeps the address and may write later (NumPy, DLPack,
// data_ptr) says so by `show_memory`: nothing is kept of that storage from then
// on. Nor is anything of memory that other libraries or processes own.
// A form is kept when it is asked for a second time without a write in
// between. A training step, which writes weights, so keeps none; a kernel of
// another thread that got the address before the first time has long been done
// at the second.
struct FormKey {
  uint64_t maker = 0;  // never of two kinds of forms in this process
  int64_t offset = 0;  // in bytes, of what the form was made of
  bool operator==(const FormKey&) const = default;
};
using KeptForm = std::shared_ptr<const void>;

struct FormAnswer {
  KeptForm form;
  bool wanted = false;  // where there is none: keep_form is to be called
};
TAEDA_API FormAnswer find_form(StorageImpl& storage, const FormKey& key);
// Given that the bytes are those of the time when it was wanted.
TAEDA_API void keep_form(StorageImpl& storage,
                         const FormKey& key,
                         KeptForm form);
TAEDA_API void show_memory(StorageImpl& storage);

}  // namespace taeda
