// How objects that a captured part made are made again, and its side effects.
#pragma once

#include <taeda/csrc/compiler/capture/graph.h>

#include <map>

namespace taeda::capture {

struct Recipe {
  enum Kind {
    Place,     // an outside object
    Value,     // of a node of the graph
    Size,      // what a program computes of the symbols
    Truth,     // the same as a bool
    Constant,  // the object itself
    Tuple,     // `object` is the type
    List,
    Set,
    FrozenSet,
    Dict,      // keys and values in turn; `object` is the type
    Instance,  // `object` is the type
    Cell,
    Function,  // `object` is its globals; the rest in make_function
    Method,
    Slice,
    Mode,     // `object` is its type and state
    Reduced,  // the five parts of what __reduce__ returns
  } kind;
  int index = -1;
  Ref object;
  std::vector<int> parts;
  // Of instances and containers: names, values.
  std::vector<int> attributes = {};
};

struct Effect {
  enum Kind {
    SetAttribute,
    DeleteAttribute,
    SetItem,
    DeleteItem,
    AssignList,
    AssignSet,
    AssignDeque,
    SetCell,
    SetGlobal,
    SetOnClass,
    SetPosition,  // of an iterator, to `key`
    Skip,         // `key` items of an iterator
    Advance,      // an enumerate, to the count `key`
    SetMode,      // what it switches back to is `key`
  } kind;
  int target;
  Ref key;
  int value = -1;
  int key_recipe = -1;
};

struct Rebuild {
  std::vector<Recipe> recipes;
  std::vector<Effect> effects;
};

// One run of a Rebuild.
class Builder {
 public:
  Builder(const Rebuild& rebuild,
          std::span<const Ref> places,
          std::span<const Ref> values,
          const SizeValues& sizes)
      : rebuild_(rebuild),
        places_(places),
        values_(values),
        sizes_(sizes),
        made_(rebuild.recipes.size()) {}
  Ref make(int recipe);
  void apply(const Effect& e);

 private:
  Ref begin(const Recipe& r);
  void fill(const Recipe& r, PyObject* made);
  void set_attributes(const std::vector<int>& parts, PyObject* made);
  Ref make_tuple(const Recipe& r);
  Ref make_function(const Recipe& r);
  Ref make_reduced(const Recipe& r);

  const Rebuild& rebuild_;
  std::span<const Ref> places_;
  std::span<const Ref> values_;
  const SizeValues& sizes_;
  std::vector<Ref> made_;
};

}  // namespace taeda::capture
