// A level whose calls a function in Python sees, composites as a whole.
#include <taeda/aten/core/level.h>
#include <taeda/csrc/boxed/module.h>
#include <taeda/csrc/boxed/python_call.h>

namespace taeda::python {

namespace {

// Note [Recording above autograd]
// A mode of Python lies below autograd and sees what composites are made of.
// This level lies above: a call of the program comes to it once, as the program
// made it, and the handler's own call of the operator goes on with autograd and
// the modes outside of the level. Values have no wrapper.
class RecordLevel final : public Level {
 public:
  explicit RecordLevel(Ref handler) : handler_(std::move(handler)) {}

  bool keeps(const OperatorEntry&) const override { return true; }
  bool is_transform() const override { return false; }
  const char* kind() const override { return "record"; }

  void call(const OperatorEntry& op, Stack& stack) override {
    GilAcquire gil;
    try {
      hand_over(op, stack);
    } catch (const PythonError&) {
      // As in torch_dispatch.cpp: the error leaves with whoever sees it.
      throw py::error_already_set();
    }
  }

 private:
  void hand_over(const OperatorEntry& op, Stack& stack) {
    BelowLevel below(*this);
    std::span<IValue> args = arguments_on(op, stack);
    std::vector<IValue> given(args.begin(), args.end());
    PythonCall seen(op, given);
    Ref out = checked(PyObject_CallFunctionObjArgs(handler_.get(),
                                                   seen.function.get(),
                                                   seen.args.get(),
                                                   seen.kwargs.get(),
                                                   nullptr));
    stack.resize(stack.size() - given.size());
    push_results(op, out.get(), std::move(given), stack);
  }

  // A level lives on the stack of a thread and in its Python object, and both
  // are left with the GIL held.
  Ref handler_;
};

}  // namespace

void bind_record_level(py::module_ m) {
  auto* type = reinterpret_cast<PyObject*>(&PyType_Type);
  py::class_<RecordLevel, Shared<RecordLevel>, Level>(
      m,
      "RecordLevel",
      "Hands each call to handler(overload, args, kwargs).",
      py::module_local(),
      py::metaclass(type))
      .def(py::init([](py::object handler) {
        return Shared(make_intrusive<RecordLevel>(Ref::borrow(handler.ptr())));
      }));
}

}  // namespace taeda::python
