// Which sizes and numbers become symbols, and what stands for them inside.
#pragma once

#include <taeda/csrc/compiler/capture/graph.h>
#include <taeda/csrc/compiler/capture/guards.h>
#include <taeda/csrc/compiler/capture/sizes.h>

#include <map>
#include <set>

namespace taeda::capture {

// What earlier captures of a part have seen of one tensor or number, by the
// name of its place. What differed once is a symbol from then on.
struct SeenValue {
  bool several_ranks = false;
  DimVector sizes, strides;
  SmallVector<bool, 5> size_differs, stride_differs;
  double number = 0;
  bool number_differs = false;
};
using History = std::map<std::string, SeenValue>;

// As `_dynamo.config` and the argument `dynamic` of compile say.
struct DynamicSettings {
  bool automatic = true;  // what differs between captures is a symbol
  bool all = false;       // sizes are symbols at once
  bool integers = true;   // numbers may be symbols
  bool floats = true;
  bool static_parameters = true;
  bool static_members = true;  // of modules
  bool scalar_outputs = false;
  bool counted_outputs = false;  // sizes that elements decide
  Ref sources;  // says of a name whether it is asked for, or null: see
                // SourceKind
};
// What the settings dynamic_sources and unbacked_sources say of a name.
enum class SourceKind { Plain, Dynamic, Unbacked };

// An input of the graph as a custom backend gets it: a node, or a symbol.
struct GraphInput {
  int node = -1;
  int symbol = -1;
};

// The symbols of one capture.
class Dynamic {
 public:
  Dynamic(Guards& guards, std::vector<SizeProgram>& programs)
      : guards_(guards), programs_(programs) {}
  // `dynamic` is the argument of compile.
  void begin(History& seen, PyObject* dynamic);
  DynamicSettings settings;
  History* history = nullptr;
  std::vector<GraphInput> inputs;

  struct Geometry {
    bool symbolic = false;
    std::vector<SymInt> sizes, strides;
  };
  // `is_fixed`: no size of it is a symbol but where it is marked so.
  Geometry geometry_of(PyObject* tensor, int place, bool is_fixed);
  SourceKind kind_of_source(int place) const;
  // (sizes, strides) of a tensor at a place; None where no symbol is in them.
  Ref geometry_at(int place) const;
  // What stands for an int; null where it is itself.
  Ref integer(PyObject* number, int place);
  // Whether a float differed from the one before.
  bool float_differs(PyObject* number, int place);
  void begin_symbols() { env(); }
  // A symbol without a value until the graph runs; its position among them.
  SymInt unbacked(int& position, int64_t low = symbolic::Range::kLow);

  // While it lives, sizes without a value count as neither 0 nor 1.
  class LayingOut {
   public:
    explicit LayingOut(Dynamic& dynamic) : env_(dynamic.env_.get()) {
      if (env_ != nullptr) before_ = std::exchange(env_->lays_out, true);
    }
    LayingOut(const LayingOut&) = delete;
    LayingOut& operator=(const LayingOut&) = delete;
    ~LayingOut() {
      if (env_ != nullptr) env_->lays_out = before_;
    }

   private:
    ShapeEnv* env_;
    bool before_ = false;
  };

  // The program of a taeda.SymInt or SymBool.
  int program_of(PyObject* symbol);
  // The conditions that were asserted since the last call, as programs.
  std::vector<int> new_assertions();
  const symbolic::Expressions& expressions() const;
  std::string text_of_program(int program) const;
  std::string name_of_symbol(int position) const;
  Ref symbol_at(int position) const;
  size_t symbol_count() const { return numbers_.size(); }
  // Whether a program reads it, or a tensor at one of these places has it.
  bool is_needed(int position, const std::set<int>& places) const;
  // The place of an integer that a symbol is, or -1 for those of sizes.
  int place_of_integer(int position) const;

  // Writes the guards on symbols; throws PythonError with
  // ConstraintViolationError where a marked size was fixed.
  void finish();

 private:
  SymInt add(SizeSource::Kind kind, int64_t hint, int place, int dim, int how);
  void check_marks();
  SeenValue* note(const std::string& name, const TensorImpl& t);
  int program_of_id(symbolic::Id id);
  ShapeEnv& env();

  struct Mark {
    symbolic::Id symbol;
    std::string name;
    std::optional<int64_t> low, high;
  };
  Guards& guards_;
  std::vector<SizeProgram>& programs_;
  IntrusivePtr<ShapeEnv> env_;
  SymbolNumbers numbers_;                             // positions of symbols
  std::vector<symbolic::Id> ids_;                     // the other way
  std::unordered_map<int64_t, symbolic::Id> shared_;  // by equal sizes
  std::vector<SizeSource> sources_;
  std::unordered_map<symbolic::Id, int> programs_by_id_;
  std::vector<symbolic::Id> ids_of_programs_;
  std::vector<Mark> marks_;
  size_t asserted_ = 0;
  struct StrideOf {
    int place, dim;
    SymInt value;
  };
  std::vector<StrideOf> strides_;
  std::map<int, Geometry> geometries_;  // with symbols, by place
};

// A taeda.SymInt, and whether an object is one, or a SymBool, or a SymFloat.
Ref wrap_symbol(const SymInt& v);
// A tuple of such.
Ref wrap_symbols(const std::vector<SymInt>& list);
bool is_symbol(PyObject* o);
bool is_sym_float(PyObject* o);
// The C++ value of a SymInt or SymBool; valid as long as the object.
SymNode* node_of(PyObject* symbol);

}  // namespace taeda::capture
