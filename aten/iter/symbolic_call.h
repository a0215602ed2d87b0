// What the functions of namespace sym are made of: calls of operators whose
// integers may be symbols.
#pragma once

#include <taeda/aten/core/boxing_impl.h>
#include <taeda/aten/core/level.h>
#include <taeda/c10/symbolic/sym_int.h>

namespace taeda::sym {

inline bool plain(const SymInt& v) { return !v.is_symbolic(); }
inline bool plain(ArrayRef<SymInt> list) { return all_plain(list); }
template <class T>
bool plain(const std::optional<T>& v) {
  return !v || plain(*v);
}

// Of what is plain.
inline int64_t integers(const SymInt& v) { return v.plain(); }
inline IntArrayRef integers(ArrayRef<SymInt> list) { return as_plain(list); }
template <class T>
auto integers(const std::optional<T>& v) {
  return v ? std::optional(integers(*v)) : std::nullopt;
}

inline void push(Stack& s, const SymInt& v) { s.emplace_back(v); }
inline void push(Stack& s, ArrayRef<SymInt> list) {
  s.emplace_back(list.vec());
}
template <class T>
void push(Stack& s, const T& v) {
  boxing::push(s, v);
}
template <class T>
void push(Stack& s, const std::optional<T>& v) {
  v ? push(s, *v) : boxing::push_none(s);
}
// An undefined tensor is one that is not given.
inline void push(Stack& s, const OptionalTensor& v) { boxing::push(s, v); }

// Seldom run: small before quick.
template <class R, class... A>
[[gnu::cold, gnu::noinline]] R boxed_call(const OperatorEntry& op,
                                          const A&... arguments) {
  Stack in;
  in.reserve(sizeof...(A));
  (push(in, arguments), ...);
  Stack out = call_with(op, in);
  return boxing::Result<R>::pop(out, 0);
}

}  // namespace taeda::sym
