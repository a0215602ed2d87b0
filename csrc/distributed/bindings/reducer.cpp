#include <taeda/csrc/distributed/bindings/bindings.h>
#include <taeda/csrc/distributed/group_sender.h>

namespace taeda::distributed {

namespace {

py::object wrapped(const Tensor& t) {
  return py::reinterpret_steal<py::object>(bridge().wrap(t));
}

std::vector<Tensor> unwrapped(const py::sequence& list) {
  std::vector<Tensor> found;
  for (py::handle o : list) found.push_back(bridge().unwrap(o.ptr()));
  return found;
}

// Errors of this module are classes that _C, whose backward pass these go
// through, does not know.
template <class F>
auto as_python(F&& f) {
  try {
    return f();
  } catch (const DistError&) {
    py::gil_scoped_acquire gil;
    py::object error = exception_object(std::current_exception());
    PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
    throw py::error_already_set();
  }
}

// Buckets go over the group, as long as there is one and Python does not want
// to send them itself.
class PythonSender final : public BucketSender {
 public:
  // `target` has send(index, buffer, views, numbers, is_last) and sum(tensor),
  // which return functions that wait. It is held weakly: what it refers to may
  // refer to whoever owns this, and Python cannot see through here.
  PythonSender(std::shared_ptr<Group> group, const py::object& target)
      : target_(target) {
    if (group) over_group_ = std::make_unique<GroupSender>(group);
  }
  ~PythonSender() override {
    py::gil_scoped_acquire gil;
    target_.release().dec_ref();
  }
  PythonSender(const PythonSender&) = delete;
  PythonSender& operator=(const PythonSender&) = delete;

  Wait send(const Bucket& bucket) override {
    if (over_group_ && !is_hooked && !bucket.is_sparse) {
      if (bucket.index == 0) over_group_->set_line(line());
      over_group_->set_divisor(divisor);
      return translated([&] { return over_group_->send(bucket); });
    }
    py::gil_scoped_acquire gil;
    py::list views;
    for (const Tensor& view : bucket.views) views.append(wrapped(view));
    return waiting(target().attr("send")(bucket.index,
                                         wrapped(bucket.buffer),
                                         views,
                                         bucket.numbers,
                                         bucket.is_last));
  }
  Wait sum(const Tensor& numbers) override {
    if (over_group_) {
      return translated([&] { return over_group_->sum(numbers); });
    }
    py::gil_scoped_acquire gil;
    return waiting(target().attr("sum")(wrapped(numbers)));
  }

  bool is_hooked = false;
  int divisor = 0;

 private:
  static std::string line() {
    py::gil_scoped_acquire gil;
    return calling_line();
  }
  template <class F>
  static Wait translated(F&& begin) {
    Wait wait = as_python(begin);
    return [wait = std::move(wait)] { as_python(wait); };
  }
  static Wait waiting(py::object wait) {
    auto held = std::shared_ptr<py::object>(new py::object(std::move(wait)),
                                            [](py::object* o) {
                                              py::gil_scoped_acquire gil;
                                              delete o;
                                            });
    return [held] {
      py::gil_scoped_acquire gil;
      (*held)();
    };
  }
  py::object target() const {
    py::object found = target_();
    if (found.is_none()) {
      fail(Fault::Any, "DistributedDataParallel: the model has been deleted");
    }
    return found;
  }

  std::unique_ptr<GroupSender> over_group_;
  py::weakref target_;
};

// What Python holds: a reducer and its sender.
struct Both {
  std::shared_ptr<Reducer> reducer;
  std::shared_ptr<PythonSender> sender;
};

ReducerOptions options_of(const py::dict& given) {
  ReducerOptions o;
  o.limits = given["limits"].cast<std::vector<int64_t>>();
  o.find_unused = given["find_unused"].cast<bool>();
  o.static_graph = given["static_graph"].cast<bool>();
  o.views = given["views"].cast<bool>();
  o.sparse = given["sparse"].cast<std::vector<bool>>();
  o.names = given["names"].cast<std::vector<std::string>>();
  o.tells_names = given["tells_names"].cast<bool>();
  o.rank = given["rank"].cast<int>();
  o.own_device = bridge().to_device(py::object(given["own_device"]).ptr());
  py::object dtype = given["dtype"];
  if (!dtype.is_none()) o.dtype = bridge().to_dtype(dtype.ptr());
  return o;
}

Both make(const py::sequence& parameters,
          const py::dict& options,
          std::shared_ptr<Group> group,
          const py::object& target) {
  auto sender = std::make_shared<PythonSender>(std::move(group), target);
  auto reducer =
      Reducer::make(unwrapped(parameters), options_of(options), sender);
  return {std::move(reducer), std::move(sender)};
}

}  // namespace

// A pass that runs holds the reducer's lock and may wait for Python's, so who
// asks for the former gives the latter away.
void bind_reducer(py::module_& m) {
  py::class_<Both>(m,
                   "Reducer",
                   "Averages gradients while a backward pass goes on; see "
                   "taeda.distributed._reducer.")
      .def(py::init(&make),
           py::arg("parameters"),
           py::arg("options"),
           py::arg("group"),
           py::arg("sender"))
      .def(
          "prepare",
          [](const Both& b, const py::sequence& outputs) {
            const auto found = unwrapped(outputs);
            py::gil_scoped_release release;
            b.reducer->prepare(found);
          },
          py::arg("outputs"))
      .def(
          "skip", [](const Both& b) { b.reducer->skip(); }, Released())
      .def(
          "check_finished",
          [](const Both& b) { b.reducer->check_finished(); },
          Released())
      .def(
          "take_order",
          [](const Both& b) { return b.reducer->take_order(); },
          Released())
      .def(
          "set_order",
          [](const Both& b, const std::vector<size_t>& order) {
            b.reducer->set_order(order);
          },
          py::arg("order"),
          Released())
      .def(
          "shadow", [](const Both& b) { b.reducer->shadow(); }, Released())
      .def("remove_hooks", [](const Both& b) { b.reducer->remove_hooks(); })
      .def(
          "bucket_bytes",
          [](const Both& b) { return b.reducer->bucket_bytes(); },
          Released())
      .def("send_by_python", [](const Both& b) { b.sender->is_hooked = true; })
      .def(
          "divide_by",
          [](const Both& b, int ranks) { b.sender->divisor = ranks; },
          py::arg("ranks"));
}

}  // namespace taeda::distributed
