// Capture of a Python function as a graph of tensor calls.
//
// Note [Capture]
// The function's bytecode is interpreted over real Python objects. What lies
// outside of it (arguments, globals, closures, and what hangs on them) is met
// as a Place, how a later call finds it again; looking at it adds a guard.
// Mutable outside objects are stood in for by shadows, real objects of the same
// type, so that any code may change them by any means; the difference between a
// shadow and what it began as is what is replayed. Tensors are stood in for by
// meta tensors. docs/design/compiler.md has the reasons.
#pragma once

#include <taeda/csrc/compiler/capture/graph.h>
#include <taeda/csrc/compiler/capture/guards.h>
#include <taeda/csrc/compiler/capture/modes.h>
#include <taeda/csrc/compiler/capture/rebuild.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace taeda::capture {

// A code object with its instructions as the compiler wrote them, not as the
// interpreter has specialised them.
struct CodeInfo {
  struct Handler {
    int begin, end, target, depth;
    bool push_lasti;
  };
  Ref code;
  Ref text;
  std::vector<Handler> handlers;
  bool is_generator = false;
  // The library's own functions that the recorder sees as one call.
  bool runs_natively = false;
  bool imports = false;  // the import system, which runs whole modules
  int supported = -1;    // not yet known

  PyCodeObject* object() const {
    return reinterpret_cast<PyCodeObject*>(code.get());
  }
  const uint8_t* bytes() const {
    return reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(text.get()));
  }
};
// Kept for the process's life: code objects are few. The GIL guards the table.
CodeInfo* code_info(PyCodeObject* code);

// One function under evaluation. `slots` holds locals, cells and free variables
// and then the stack, as CPython's own frames do.
struct Frame {
  CodeInfo* info = nullptr;
  Ref function;
  PyObject* globals = nullptr;
  PyObject* builtins = nullptr;
  PyObject** slots = nullptr;
  int depth = 0;  // of the stack
  int next = 0;   // the next instruction, in code units
  int current = 0;
  PyObject* keyword_names = nullptr;  // a constant of the code
  // Slots of the state capture began in that have not been looked at.
  std::vector<bool> untouched;
  std::vector<PyObject*> storage;
  int number = 0;
  int* stack_top = nullptr;  // of the interpreter's frame whose slots these are

  Frame(CodeInfo* info, Ref function, PyObject* globals, PyObject* builtins);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();
  void own_slots();
  PyObject** stack() { return slots + info->object()->co_nlocalsplus; }
  void push(PyObject* owned) { stack()[depth++] = owned; }
  Ref pop() { return Ref(stack()[--depth]); }
  // Borrowed; 1 is the top.
  PyObject*& peek(int n) { return stack()[depth - n]; }
  int line() const;
};
using Frames = std::vector<std::unique_ptr<Frame>>;

// Where a captured part ends without the function having returned.
struct FrameShape {
  CodeInfo* info;
  Ref function;
  int next, depth, place_of_slots;
  PyObject* keyword_names;
  std::vector<int> slots;  // recipes; -1 for an empty slot
};

// One captured part of a function: from a state of its frames to the next
// instruction that has to run as it is, or to the end.
struct Entry {
  Guards guards;
  Graph graph;
  Rebuild rebuild;
  int result = -1;  // recipe
  std::vector<FrameShape> frames;
  bool fresh = false;    // no backend has seen the graph
  bool plain = false;    // nothing was captured: the function runs as it is
  Modes modes;           // under which it is entered
  bool mutates = false;  // tensors that it did not make
  std::string reason;
  Ref run_graph;  // what the backend returned; null to run the graph as it is
  std::vector<int> outputs;  // nodes that the recipes read
};

// What stands for an outside object.
struct Shadow {
  Ref inner, outer, before;
  int place;
  std::set<PyObject*> looked;  // attributes that were read or are absent
};
struct Cell {
  Ref inner, outer, before;
};

struct Capture {
  Entry& entry;
  std::unordered_map<PyObject*, std::pair<Ref, int>> known;  // by the outer one
  std::unordered_map<PyObject*, Shadow*> shadows;            // by the inner one
  std::vector<std::unique_ptr<Shadow>> order;
  std::unordered_map<PyObject*, Cell> cells;  // outer ones
  std::set<PyObject*> own_cells, own_functions;
  std::map<std::pair<PyObject*, PyObject*>, Ref> globals;
  std::set<std::pair<PyObject*, PyObject*>> stored_globals;
  std::unordered_map<PyObject*, int> places_of_constants;
  // Nodes of tensors and, of results that are several, of their containers.
  std::unordered_map<PyObject*, int> nodes;
  std::unordered_map<PyObject*, std::pair<Ref, int>> places_of_tensors;
  std::map<std::pair<PyObject*, PyObject*>, int> member_tables, member_places;
  std::unordered_map<int, Ref> member_values;
  std::vector<std::pair<PyObject*, uint32_t>> versions;  // of inputs
  std::vector<Ref> kept;
  Frames frames;
  int64_t count = 0;     // instructions of `frames`
  int64_t stop_at = -1;  // where an earlier try found that it must end
  int native_depth = 0;  // frames that C code called
  int suspended = 0;     // Python code runs as it is
  bool broken = false;
  std::string reason;
  Modes modes;  // of the last call of the graph
  Ref handled;  // the exception that was being handled at the beginning

  explicit Capture(Entry& e) : entry(e), modes(e.modes) {}

  // The inside stand-in of an outside object; adds what guards need.
  Ref realize(PyObject* outer, int place);
  Ref attribute(PyObject* object, PyObject* name);
  int constant(PyObject* object);
  Ref global(Frame& f, PyObject* name);
  PyObject* cell_content(PyObject* cell);  // borrowed; null when empty
  void store_cell(PyObject* cell, PyObject* value);
  Shadow* shadow_of(PyObject* inner);
  void fill(Shadow& s);
  void look(Shadow& s, PyObject* name) { load_attribute(s, name); }
  void adopt_default(Frame& f, int slot);
  // Adds a node where the modes are not those of the last call.
  void note_modes();
  void note_value(PyObject* tensor, int node) { nodes[tensor] = node; }
  PyObject* record(PyObject* function, PyObject* args, PyObject* kwargs);
  // Of a function behind functools.lru_cache: what the cache holds.
  Ref call_cached(PyObject* function,
                  PyObject* const* args,
                  size_t count,
                  PyObject* names);

 private:
  Ref shadow(PyObject* outer, int place);
  Ref keep(Ref inner, PyObject* outer, int place);
  Ref item(PyObject* outer, int place, Py_ssize_t i);
  Ref shadow_list(PyObject* outer, int place);
  Ref shadow_tuple(PyObject* outer, int place);
  Ref shadow_dict(PyObject* outer, int place);
  Ref shadow_set(PyObject* outer, int place);
  Ref shadow_deque(PyObject* outer, int place);
  Ref shadow_iterator(PyObject* outer, int place);
  Ref shadow_mode(PyObject* outer, int place);
  Ref bound_method(PyObject* outer, int place);
  Ref shadow_partial(PyObject* outer, int place);
  Ref part_of(PyObject* outer, int place, const char* name);
  Ref tensor(PyObject* outer, int place);
  Ref instance_attribute(Shadow& s, PyObject* name);
  bool load_attribute(Shadow& s, PyObject* name);
  void load_slot(Shadow& s, PyObject* name);
  Ref module_member(Shadow& s, PyObject* name);
  Ref guarded_attribute(PyObject* object, PyObject* name);
  Shadow* order_of(PyObject* inner);
  Argument argument(PyObject* value);
  void note_result(PyObject* value, int node);
};

// The thread's capture, or null.
extern thread_local Capture* active;

// Ends the part here: sets the error that unwinds to the driver, and throws.
[[noreturn]] void break_graph(const std::string& reason);
bool is_break();

// What Python knows of the library; found once.
struct Library {
  Ref tensor_base, tensor, parameter, module, module_getattr, empty_strided;
  Ref meta, grad_setter, break_error, device_type, dtype_type, recorder;
  Ref push_mode, pop_mode, getitem, factories, readers, enum_type;
  Ref cpu_tensor, unbind, mode_types, mode_setter;
  PyObject *unsafe = nullptr, *unsafe_modules = nullptr;
};
const Library& library();
void set_library(Library lib);
Ref make_recorder();
bool is_tensor(PyObject* o);
// Objects that are the same inside and outside.
bool is_shared(PyObject* o);
// Instances whose whole state is their __dict__ and their __slots__.
bool is_plain_instance(PyObject* o);
// That state as a dict.
Ref attributes_of(PyObject* o);
bool is_slot(PyObject* descriptor);
// Functions behind functools.lru_cache.
bool is_cached(PyObject* o);
// The function of what `capture` returned, borrowed; null for all else.
PyObject* compiled_function(PyObject* o);
// An object of no_grad, enable_grad or inference_mode.
bool is_mode(PyObject* o);
// C iterators that loops stand on, whose position __reduce__ tells.
bool is_iterator(PyObject* o);
bool is_dict_iterator(PyObject* o);
// How far one has come: as __setstate__ takes it, or the count of enumerate.
Ref position_of(PyObject* iterator);
// Whether the object's class is the library's own.
bool is_of_library(PyObject* o);

enum class Flow { Next, Return, Failed, Yield };
// Evaluates the frames above `base` until that many remain, or fails.
// `capture` is null where instructions run as they are.
Ref evaluate(Capture* capture, Frames& frames, size_t base);
// Whether all its instructions are known here.
bool is_supported(CodeInfo& info);
// One instruction of the last frame.
Flow step(Capture* capture, Frames& frames, Ref& result);
// Binds arguments as a call of the function does; false when they do not fit.
bool bind(Capture* capture,
          Frame& f,
          PyObject* const* args,
          size_t count,
          PyObject* names);

// Where all frames stand, as a recipe; throws where something cannot be made
// again.
void finish(Capture& c, Ref result);

}  // namespace taeda::capture
