#include <taeda/csrc/compiler/capture/pieces.h>

#include <taeda/csrc/compiler/capture/driver.h>

#include <algorithm>

namespace taeda::capture {
namespace {

bool has_attributes(PyObject* inner) {
  return !PyList_CheckExact(inner) && !PyDict_Check(inner) &&
         !PySet_Check(inner) && !is_iterator(inner) && !is_mode(inner) &&
         is_plain_instance(inner);
}

// What a stand-in holds now, to be compared with what it holds later.
Ref content_of(PyObject* inner) {
  if (PyDict_Check(inner)) return checked(PyDict_Copy(inner));
  if (has_attributes(inner)) return attributes_of(inner);
  if (is_iterator(inner)) return position_of(inner);
  if (is_mode(inner)) return state_of_mode(inner);
  return checked(PySequence_List(inner));
}

// Reading an attribute copies it to the stand-in, which is no change.
bool has_same_items(PyObject* now, PyObject* then, PyObject* read) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(now, &at, &key, &value)) {
    PyObject* before = then ? PyDict_GetItem(then, key) : nullptr;
    if (before == nullptr && read != nullptr)
      before = PyDict_GetItem(read, key);
    if (before != value) return false;
  }
  at = 0;
  while (then != nullptr && PyDict_Next(then, &at, &key, &value)) {
    if (PyDict_Contains(now, key) == 0) return false;
  }
  return true;
}

bool is_unchanged(const Shadow& s, PyObject* then) {
  Ref now = content_of(s.inner.get());
  if (has_attributes(s.inner.get())) {
    return has_same_items(now.get(), then, s.before.get());
  }
  if (then == nullptr) then = s.before.get();
  if (then == nullptr) return true;
  if (PyDict_Check(now.get())) {
    return has_same_items(now.get(), then, nullptr);
  }
  if (PyList_Check(now.get()) && PyList_Check(then)) {
    auto a = python::items_of(now.get());
    auto b = python::items_of(then);
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }
  return PyObject_RichCompareBool(now.get(), then, Py_EQ) == 1;
}

// Containers and objects that nobody outside has, as far as closures hold them.
bool is_unchanged(const Mark::Own& own) {
  PyObject* now = PyCell_GET(own.cell.get());
  if (now != own.content.get()) return false;
  if (!own.inside) return true;
  Ref inside = content_of(now);
  PyObject* then = own.inside.get();
  if (PyDict_Check(then)) return has_same_items(inside.get(), then, nullptr);
  auto a = python::items_of(inside.get());
  auto b = python::items_of(then);
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

Mark::Own own_cell(Capture& c, PyObject* cell) {
  PyObject* content = PyCell_GET(cell);
  Mark::Own own{Ref::borrow(cell), Ref::borrow(content), {}};
  bool changes = content != nullptr && c.shadow_of(content) == nullptr &&
                 (PyList_Check(content) || PyDict_Check(content) ||
                  is_deque(content) || has_attributes(content));
  if (changes) own.inside = content_of(content);
  return own;
}

void check_outside(Capture& c, const Mark& mark) {
  bool same = c.stored_globals.size() == mark.globals;
  for (size_t i = 0; same && i < c.order.size(); ++i) {
    PyObject* then = i < mark.shadows ? mark.contents[i].get() : nullptr;
    same = is_unchanged(*c.order[i], then);
  }
  for (const auto& [outer, cell] : c.cells) {
    auto at = std::ranges::find(
        mark.cells, outer, [](const auto& each) { return each.first; });
    PyObject* then = at == mark.cells.end() ? cell.before.get() : at->second;
    same = same && PyCell_GET(cell.inner.get()) == then;
  }
  for (const Mark::Own& own : mark.own) same = same && is_unchanged(own);
  if (!same) break_graph("a function inside of an operator has side effects");
}

// Numbers of nodes as the piece has them.
class Renumber {
 public:
  Renumber(size_t from, const std::vector<Call>& span) : from_(from) {
    for (size_t i = 0; i < span.size(); ++i) {
      if (span[i].input < 0) own_[static_cast<int>(from + i)] = own_count_++;
    }
  }
  void meet(Argument& a) {
    if (a.kind == Argument::Node) a.node = number(a.node);
    for (Argument& item : a.items) meet(item);
  }
  // Inputs come first, so that numbers of others move when all are known.
  int number(int node) {
    auto own = own_.find(node);
    if (own != own_.end()) return ~own->second;
    auto [at, added] = free_.try_emplace(node, static_cast<int>(free.size()));
    if (added) free.push_back(node);
    return at->second;
  }
  void settle(Argument& a) const {
    if (a.kind == Argument::Node) a.node = settled(a.node);
    for (Argument& item : a.items) settle(item);
  }
  int settled(int n) const {
    return n >= 0 ? n : ~n + static_cast<int>(free.size());
  }

  std::vector<int> free;

 private:
  size_t from_;
  int own_count_ = 0;
  std::unordered_map<int, int> own_, free_;
};

struct PieceObject {
  PyObject_HEAD vectorcallfunc call;
  Piece* piece;
};
PyTypeObject* piece_type = nullptr;  // made once, when the module is loaded

PyObject* call_piece(PyObject* self,
                     PyObject* const* args,
                     size_t count,
                     PyObject* names) {
  Ref kept = Ref::borrow(self);
  const Piece& piece = *reinterpret_cast<PieceObject*>(self)->piece;
  if (names != nullptr && PyTuple_GET_SIZE(names) > 0) {
    PyErr_SetString(PyExc_TypeError, "a piece of a graph takes no keywords");
    return nullptr;
  }
  std::vector<Ref> places;
  for (Py_ssize_t i = 0; i < PyVectorcall_NARGS(count); ++i) {
    places.push_back(Ref::borrow(args[i]));
  }
  try {
    // Numbers that depend on symbols are inputs of pieces.
    SizeValues sizes{nullptr, {}};
    std::vector<Ref> values = piece.graph.run(places, sizes);
    return python::new_tuple(piece.outputs.size(),
                             [&](size_t i) {
                               return Py_NewRef(values[piece.outputs[i]].get());
                             })
        .release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

void destroy_piece(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<PieceObject*>(self)->piece;
  type->tp_free(self);
  Py_DECREF(type);
}

// Added to numbers of the outer graph's new nodes, which the piece's own nodes
// had until they were cut out.
constexpr int kLifted = 1 << 28;

// A number that depends on symbols is worked out by a node of the outer graph.
void lift_sizes(Capture& c, Argument& a) {
  for (Argument& item : a.items) lift_sizes(c, item);
  if (a.kind != Argument::Size) return;
  Call call;
  call.function = library().as_number;
  call.args.push_back(std::move(a));
  int node = c.entry.graph.add_call(std::move(call));
  a = {Argument::Node, kLifted + node, {}, {}};
}

// As the nodes of a whole graph are described, without values of inputs.
PyObject* describe_piece(PyObject* self, PyObject* marker) {
  const Piece& piece = *reinterpret_cast<PieceObject*>(self)->piece;
  try {
    const std::vector<Call>& calls = piece.graph.calls();
    Ref nodes = python::new_list(calls.size(), [&](size_t i) {
      if (calls[i].function) {
        return describe(calls[i], marker, nullptr).release();
      }
      if (calls[i].input < 0) return Py_NewRef(Py_None);
      return Py_BuildValue("(sO)", "", Py_None);
    });
    Ref outputs = python::new_list(piece.outputs.size(), [&](size_t i) {
      return PyLong_FromLong(piece.outputs[i]);
    });
    Ref sizes = checked(PyTuple_New(0));
    Ref variables = variables_of(calls);
    return PyTuple_Pack(
        5, nodes.get(), outputs.get(), Py_None, sizes.get(), variables.get());
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef piece_methods[] = {
    {"describe",
     describe_piece,
     METH_O,
     "describe(marker): the arguments of `_graphs.graph_module`."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef piece_members[] = {{"__vectorcalloffset__",
                                T_PYSSIZET,
                                offsetof(PieceObject, call),
                                READONLY,
                                nullptr},
                               {nullptr, 0, 0, 0, nullptr}};

Ref make_piece(Graph graph, std::vector<int> outputs) {
  Ref out = checked(piece_type->tp_alloc(piece_type, 0));
  auto* object = reinterpret_cast<PieceObject*>(out.get());
  object->call = call_piece;
  graph.finish(outputs);
  object->piece = new Piece{std::move(graph), std::move(outputs)};
  return out;
}

}  // namespace

PyTypeObject* make_piece_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy_piece)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_methods, piece_methods},
      {Py_tp_members, piece_members},
      {0, nullptr}};
  PyType_Spec spec = {"taeda._capture.Piece",
                      sizeof(PieceObject),
                      0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                      slots};
  piece_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return piece_type;
}

Mark begin_piece(Capture& c) {
  ++c.open_pieces;
  c.record_assertions();
  c.note_modes();
  c.items.clear();
  Mark mark{c.entry.graph.calls().size(),
            c.order.size(),
            c.stored_globals.size(),
            c.modes,
            {},
            {},
            {}};
  for (const auto& s : c.order) {
    mark.contents.push_back(content_of(s->inner.get()));
  }
  for (const auto& [outer, cell] : c.cells) {
    mark.cells.emplace_back(outer, PyCell_GET(cell.inner.get()));
  }
  for (PyObject* cell : c.own_cells) mark.own.push_back(own_cell(c, cell));
  return mark;
}

CutPiece end_piece(Capture& c,
                   const Mark& mark,
                   PyObject* outputs,
                   const std::vector<int>& arguments) {
  --c.open_pieces;
  if (current_modes() != mark.modes) {
    break_graph("a function inside of an operator changes modes");
  }
  check_outside(c, mark);
  c.record_assertions();
  c.note_modes();
  c.items.clear();  // their calls are the piece's
  std::vector<Call>& calls = c.entry.graph.calls();
  std::vector<Call> span;
  auto from = calls.begin() + static_cast<std::ptrdiff_t>(mark.calls);
  std::move(from, calls.end(), std::back_inserter(span));
  calls.resize(mark.calls);
  // Inputs belong to the whole graph.
  std::unordered_map<int, int> moved;
  for (size_t i = 0; i < span.size(); ++i) {
    if (span[i].input < 0) continue;
    int old = static_cast<int>(mark.calls + i);
    moved[old] = c.entry.graph.add_input(span[i].input);
  }
  for (GraphInput& input : c.dynamic.inputs) {
    auto at = moved.find(input.node);
    if (at != moved.end()) input.node = at->second;
  }
  for (Call& call : span) {
    if (call.defines >= 0) break_graph("a number from data in an operator");
    for (Argument& a : call.args) lift_sizes(c, a);
  }
  Renumber renumber(mark.calls, span);
  for (int node : arguments) renumber.number(node);
  std::vector<Call> own;
  for (Call& call : span) {
    if (call.input >= 0) continue;
    for (Argument& a : call.args) renumber.meet(a);
    own.push_back(std::move(call));
  }
  std::vector<int> results;
  for (PyObject* each : python::items_of(outputs)) {
    auto at = c.nodes.find(each);
    if (at == c.nodes.end()) break_graph("a tensor that capture has not seen");
    results.push_back(renumber.number(at->second));
  }
  CutPiece out;
  Graph graph;
  for (int i = 0; i < static_cast<int>(renumber.free.size()); ++i) {
    graph.add_input(i);
    int node = renumber.free[i];
    if (i < static_cast<int>(arguments.size())) continue;
    auto at = moved.find(node);
    if (at != moved.end()) node = at->second;
    out.free.push_back(node >= kLifted ? node - kLifted : node);
  }
  for (Call& call : own) {
    for (Argument& a : call.args) renumber.settle(a);
    graph.add_call(std::move(call));
  }
  for (int& r : results) r = renumber.settled(r);
  // What only the piece knows is no value outside of it.
  for (auto at = c.nodes.begin(); at != c.nodes.end();) {
    auto input = moved.find(at->second);
    if (at->second < static_cast<int>(mark.calls)) {
      ++at;
    } else if (input != moved.end()) {
      (at++)->second = input->second;
    } else {
      at = c.nodes.erase(at);
    }
  }
  out.object = make_piece(std::move(graph), std::move(results));
  return out;
}

}  // namespace taeda::capture
