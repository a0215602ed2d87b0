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

#include <taeda/csrc/compiler/capture/dynamic.h>
#include <taeda/csrc/compiler/capture/graph.h>
#include <taeda/csrc/compiler/capture/guards.h>
#include <taeda/csrc/compiler/capture/kinds.h>
#include <taeda/csrc/compiler/capture/modes.h>
#include <taeda/csrc/compiler/capture/rebuild.h>

#include <map>
#include <optional>
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
  bool of_functional = false;  // may be seen through
  bool imports = false;        // the import system, which runs whole modules
  int supported = -1;          // not yet known
  std::unordered_map<int, Ref> passing;  // by line: Note [Frames of calls]

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
  int64_t began = 0;  // the instruction that called, of all that were counted
  int* stack_top = nullptr;  // of the interpreter's frame whose slots these are

  Frame(CodeInfo* info, Ref function, PyObject* globals, PyObject* builtins);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();
  void own_slots();
  PyObject** stack() { return slots + info->object()->co_nlocalsplus; }
  void push(PyObject* owned) { stack()[depth++] = owned; }
  Ref pop() { return Ref(stack()[--depth]); }
  // Who ends by an error leaves an empty stack; the error stays as it is.
  void drop_stack();
  // Borrowed; 1 is the top.
  PyObject*& peek(int n) { return stack()[depth - n]; }
  int line() const;
  // Of a local variable, borrowed; null for what is on the stack.
  PyObject* name_of_slot(int i) const;
};
using Frames = std::vector<std::unique_ptr<Frame>>;

// Where a captured part ends without the function having returned.
struct FrameShape {
  CodeInfo* info;
  Ref function;
  int next, current, depth;  // `current` is what a caller is waiting at
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
  bool fresh = false;  // no backend has seen the graph
  bool plain = false;  // nothing was captured: the function runs as it is
  Modes modes;         // under which it is entered
  // Note [Modes of functions]: how many there are, and recipes of those that it
  // ends under where these are others.
  size_t function_modes = 0;
  std::optional<std::vector<int>> modes_at_end;
  bool mutates = false;   // tensors that it did not make
  bool has_pass = false;  // Note [Passes in graphs]
  std::string reason;
  bool repeatable = false;  // the backend's function has no effects of its own
  Ref run_graph;  // what the backend returned; null to run the graph as it is
  std::vector<int> outputs;  // nodes that the recipes read
  // Of sizes that differ: Note [Sizes that differ].
  std::vector<SizeProgram> programs;
  std::vector<int> size_outputs;   // programs that the recipes read
  std::vector<GraphInput> inputs;  // as a custom backend gets them
  std::vector<int> used;  // nodes of inputs, in the order of their first use
  std::unique_ptr<Dynamic> dynamic;  // until a backend has seen the graph

  SizeValues sizes() const { return {&programs, guards.symbols()}; }
};

// What stands for an outside object.
struct Shadow {
  Ref inner, outer, before;
  Ref attributes;  // as they began, of a container that has some
  int place;
  std::set<PyObject*> looked;  // attributes that were read or are absent
  bool filled = false;         // all attributes were looked at
};
struct Cell {
  Ref inner, outer, before;
};

// Numbers of operators that are no BINARY_OP's.
enum Operators {
  kInPlace = 13,
  kLess = 26,
  kNegative = 32,
  kPositive,
  kInvert,
  kAbsolute
};

// A call of one of the library's functions as it stands in the program.
struct Written {
  PyObject* function = nullptr;
  PyObject* const* args = nullptr;
  size_t count = 0;
  PyObject* names = nullptr;
};

struct Capture {
  Entry& entry;
  std::unordered_map<PyObject*, std::pair<Ref, int>> known;  // by the outer one
  std::unordered_map<PyObject*, Shadow*> shadows;            // by the inner one
  std::vector<std::unique_ptr<Shadow>> order;
  std::unordered_map<PyObject*, Cell> cells;  // outer ones
  std::set<PyObject*> own_cells, own_functions, noted_code;
  std::set<PyTypeObject*> noted_classes;
  // Empty tensors on the devices of results that are not on the CPU.
  std::unordered_map<PyObject*, Ref> devices;
  std::map<std::pair<PyObject*, PyObject*>, Ref> globals;
  std::set<std::pair<PyObject*, PyObject*>> stored_globals;
  // (class, name) that captured code has written; their values are in
  // `globals`.
  std::set<std::pair<PyObject*, PyObject*>> stored_on_classes;
  std::unordered_map<PyObject*, int> places_of_constants;
  // Of outside functions, those among them that are made anew, and the defaults
  // of these. Note [Functions made anew]
  std::unordered_map<PyObject*, int> places_of_functions, made_anew;
  std::unordered_map<PyObject*, int> places_of_defaults;
  // Nodes of tensors and, of results that are several, of their containers.
  std::unordered_map<PyObject*, int> nodes;
  std::unordered_map<PyObject*, std::pair<Ref, int>> places_of_tensors;
  std::map<std::pair<PyObject*, PyObject*>, int> member_tables, member_places;
  std::unordered_map<int, Ref> member_values;
  std::vector<std::pair<PyObject*, uint32_t>> versions;  // of inputs
  std::set<PyObject*> building;  // arguments of a call that are looked at
  std::set<PyObject*> changed;  // stand-ins of what a call of the graph changes
  std::set<PyObject*> written_grads;  // stand-ins with a gradient of their own
  // The call that is being made, until it is recorded.
  Written written;
  // Inputs in the order in which they are first used; by node.
  std::vector<int>& used = entry.used;
  std::vector<bool> is_used;
  void use(PyObject* tensor);
  // What an operator changed in place, and its node.
  std::pair<PyObject*, int> changed_last{nullptr, -1};
  std::vector<Ref> kept;
  Frames frames;
  int64_t count = 0;     // instructions of `frames`
  int64_t stop_at = -1;  // where an earlier try found that it must end
  int native_depth = 0;  // frames that C code called
  // How often each generator has gone on, by its frame.
  std::unordered_map<const void*, int> resumed;
  int suspended = 0;  // Python code runs as it is
  bool broken = false;
  bool again = false;        // broken, since what it began with is no longer so
  bool interrupted = false;  // by a signal
  std::string reason;
  Modes modes;                    // of the last call of the graph
  size_t levels_before = 0;       // of function transforms
  std::vector<Ref> modes_before;  // stand-ins: Note [Modes of functions]
  int64_t level_began = -1;       // Note [Breaks in transforms]
  Ref handled;  // the exception that was being handled at the beginning
  bool refused = false;  // the error is the caller's: a mark that cannot be
  bool takes_passes = false;  // the backend does
  int open_pieces = 0;        // Note [Pieces]
  Dynamic& dynamic;

  explicit Capture(Entry& e)
      : entry(e), modes(e.modes), dynamic(begin_dynamic(e)) {}

  // The inside stand-in of an outside object; adds what guards need.
  Ref realize(PyObject* outer, int place);
  // Guards what C code finds on a class that is met.
  void note_class(PyTypeObject* type);
  Ref attribute_of_library(PyObject* module, PyObject* name);
  Ref attribute_of_function(PyObject* function, PyObject* name);
  Ref by_descriptor(PyObject* object,
                    PyTypeObject* type,
                    PyObject* found,
                    PyObject* name);
  Ref device_of(PyObject* tensor);
  Ref device_of_result(PyObject* name, PyObject* args, PyObject* kwargs);
  Ref moved(Ref out, PyObject* device);
  void refuse_reading(PyObject* name, PyObject* args) const;
  void note_device(PyObject* value, PyObject* device);
  Ref attribute(PyObject* object, PyObject* name);
  // As `object.__getattribute__` finds it, whatever the class makes of that.
  Ref plain_attribute(PyObject* object, PyObject* name);
  int constant(PyObject* object);
  Ref global(Frame& f, PyObject* name);
  PyObject* cell_content(PyObject* cell);  // borrowed; null when empty
  void store_cell(PyObject* cell, PyObject* value);
  // Before an attribute is written: ends the graph where no graph may hold it.
  // True when it was written here, to a class.
  bool write_attribute(PyObject* object, PyObject* name, PyObject* value);
  Shadow* shadow_of(PyObject* inner);
  void fill(Shadow& s);
  void look(Shadow& s, PyObject* name) { load_attribute(s, name); }
  // What id() is asked of: the outside object, by a guard. What is made inside
  // has a number of its own, as it has another in each call of the program.
  PyObject* identity(PyObject* inner);
  void adopt_default(Frame& f, int slot);
  void note_code(PyObject* function);
  // Of what tells functions apart: a later call has to have this very one.
  // Note [Functions made anew]
  void pin(PyObject* function);
  // Of a frame whose arguments C code has bound.
  void adopt_defaults(Frame& f);
  // Adds a node where the modes are not those of the last call.
  void note_modes();
  void note_value(PyObject* tensor, int node) { nodes[tensor] = node; }
  void note_result(PyObject* value, int node);
  // Where the program stands.
  void note_place(Call& call) const;
  Argument object_argument(PyObject* value);
  Ref subclasses_of(PyObject* cls);
  void enter_function_modes(const std::vector<Ref>& outer);
  std::optional<std::vector<Ref>> changed_function_modes() const;
  PyObject* record(PyObject* function, PyObject* args, PyObject* kwargs);
  // A call of operator number `which` (a BINARY_OP's argument or one of
  // Operators); null where it is for the operands alone to say what it is.
  // Note [Calls as written]
  Ref record_operator(int which, PyObject* const* args);
  // The same of a function of the module `operator`; null for others.
  Ref call_operator(PyObject* callable, PyObject* const* args, size_t count);
  // A variable of the program keeps a value: the node that made it has its
  // name.
  void name_variable(PyObject* value, PyObject* name);
  // Null where no class of the arguments has a way of its own.
  Ref call_override(PyObject* function,
                    PyObject* types,
                    PyObject* args,
                    PyObject* kwargs);
  // An attribute that a program gives to a tensor.
  void store_on_tensor(PyObject* tensor, PyObject* name, PyObject* value);
  // The number that stands for an outside int or float; null where it is
  // itself, guarded by its value.
  Ref number(PyObject* outer, int place);
  // What a program takes for a number: guards that it is the one it was.
  Ref fixed_number(PyObject* inner);
  int program_of(PyObject* symbol);
  // Of a function behind functools.lru_cache: what the cache holds.
  Ref call_cached(PyObject* function,
                  PyObject* const* args,
                  size_t count,
                  PyObject* names);

  // A call whose result is a number that is known when the graph runs.
  PyObject* record_number(Call call, bool integral);
  // The number in a tensor by one of the methods that read it; null where it is
  // none that arithmetic goes on with.
  PyObject* record_item(PyObject* reader, PyObject* tensor);
  // Note [Passes in graphs]. False where `backward` ends the graph.
  bool begin_pass(PyObject* kwargs);
  void end_pass();
  void refuse_after_pass(const char* what) const;
  // Adds calls that check what was asserted of numbers.
  void record_assertions();

  // Symbols that `new_size` made during the call, and their positions.
  std::vector<std::pair<symbolic::Id, int>> new_sizes;
  // Numbers that were read, by the tensor, its version and the reader.
  std::map<std::tuple<PyObject*, uint32_t, PyObject*>, Ref> items;
  // Whether elements decide where some view begins: no stand-in knows it.
  bool offsets_differ = false;

 private:
  Ref shadow(PyObject* outer, int place);
  bool is_made_anew(PyObject* function, int place) const;
  Ref function_made_anew(PyObject* function, int place);
  Ref keep(Ref inner, PyObject* outer, int place);
  Ref item(PyObject* outer, int place, Py_ssize_t i);
  Ref shadow_list(PyObject* outer, int place);
  Ref shadow_tuple(PyObject* outer, int place);
  Ref shadow_dict(PyObject* outer, int place);
  Ref shadow_subclass(PyObject* outer, int place);
  void copy_items(PyObject* outer, int place, PyObject* inner);
  Ref stand_in_of_key(PyObject* key);
  Ref shadow_array(PyObject* outer, int place);
  Ref shadow_set(PyObject* outer, int place);
  Ref shadow_deque(PyObject* outer, int place);
  Ref shadow_iterator(PyObject* outer, int place);
  Ref shadow_mode(PyObject* outer, int place);
  Ref bound_method(PyObject* outer, int place);
  Ref shadow_partial(PyObject* outer, int place);
  Ref shadow_reference(PyObject* outer, int place);
  Ref shadow_thread_local(PyObject* outer, int place);
  Ref shadow_view(PyObject* outer, int place, const char* name);
  Ref shadow_of_proxy(PyObject* outer, int place, const Ref& shown);
  Ref part_of(PyObject* outer, int place, const char* name);
  Ref tensor(PyObject* outer, int place);
  bool has_fixed_sizes(PyObject* tensor, int place) const;
  bool is_of_module(int place) const;
  bool is_in_memory_of_input(PyObject* tensor) const;
  Ref with_items(PyObject* value, bool everywhere, bool floats = false);
  Ref factors_with_items(PyObject* kwargs);
  PyObject* record_with_items(PyObject* name,
                              PyObject* function,
                              PyObject* args,
                              PyObject* kwargs);
  Ref counted_result(PyObject* name, PyObject* args, PyObject* kwargs);
  PyObject* record_counted(Call call, Ref out);
  Ref hint_of_float(PyObject* value);
  Ref with_float_hints(Ref arguments);
  Argument symbolic_argument(PyObject* value);
  static Dynamic& begin_dynamic(Entry& e) {
    e.dynamic = std::make_unique<Dynamic>(e.guards, e.programs);
    return *e.dynamic;
  }
  Ref instance_attribute(Shadow& s, PyObject* name, bool plain = false);
  void note_descriptor(PyTypeObject* type, PyObject* found, PyObject* name);
  bool load_attribute(Shadow& s, PyObject* name);
  void load_slot(Shadow& s, PyObject* name);
  Ref module_member(Shadow& s, PyObject* name);
  Ref attribute_on_tensor(PyObject* tensor, PyObject* name);
  Ref attribute_of_super(PyObject* super, PyObject* name);
  Ref guarded_attribute(PyObject* object, PyObject* name);
  bool write_to_class(PyObject* type, PyObject* name, PyObject* value);
  bool write_to_module(PyObject* module, PyObject* name, PyObject* value);
  // What captured code has written to a class or its bases; null for most.
  PyObject* written_to_class(PyTypeObject* type, PyObject* name);
  Shadow* order_of(PyObject* inner);
  Argument argument(PyObject* value);
  Argument function_argument(PyObject* function);
  Argument object_in_closure(PyObject* content);
  Argument instance_argument(PyObject* instance);
  // An instance whose attributes may be stand-ins.
  bool is_made_inside(PyObject* value) const;
  Call call_of(PyObject* function, PyObject* args, PyObject* kwargs);
  Call call_as_written(const Written& w);
  bool is_written(const Written& w);
  Ref register_hook(PyObject* function, PyObject* args, PyObject* kwargs);
  Ref attribute_of_tensor(PyObject* function, PyObject* tensor);
  Ref result_for_stand_ins(PyObject* name,
                           PyObject* function,
                           PyObject* args,
                           PyObject* kwargs);
};

// Inside, Python code runs as it is; with depth 0, as the program's own again.
class Suspended {
 public:
  explicit Suspended(Capture& c, int depth = 1) : c_(c), before_(c.suspended) {
    c.suspended = depth == 0 ? 0 : c.suspended + depth;
  }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
  ~Suspended() { c_.suspended = before_; }

 private:
  Capture& c_;
  int before_;
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
  Ref push_mode, pop_mode, last_mode, mode_count, mode_at, getitem, factories,
      readers, enum_type;
  Ref counted, numbered, holds, list_handler;
  Ref random_class, draw_handler;
  Ref cpu_tensor, unbind, mode_types, mode_setter, autocast_setter;
  Ref default_dtype, default_dtype_setter, default_device;
  Ref builtins, array_handler, numpy_handler, whole_handler, function_setter,
      assertion;
  Ref handlers, apply_handler, operator_handler, function_base, make_closure,
      make_instance, make_handle, passing_code;
  Ref level_types, operator_types, node_marker;
  // Told what happens, the lock of compiling, and functions with marks.
  Ref observer, lock, allowed, substitutes, disabled_code, strict_type;
  // Of symbolic numbers, and what stands for functions of Python's that take
  // them: `symbolic_functions`, a dict.
  Ref sym_int, sym_bool, sym_float, float_input, shared_symbol;
  Ref constraint_error, data_error, compiler_error, dynamic_settings,
      symbolic_functions;
  Ref size_marker, apply_marker, as_number;
  // Whether the program has modes that take calls over.
  bool (*has_modes)() = nullptr;
  PyObject *unsafe = nullptr, *unsafe_modules = nullptr;
};
const Library& library();
void set_library(Library lib);
Ref make_recorder();
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
