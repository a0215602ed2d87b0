#include <taeda/aten/core/tensor_base.h>
#include <taeda/csrc/distributed/bindings/bindings.h>
#include <taeda/csrc/distributed/group.h>
#include <taeda/csrc/distributed/mpi/library.h>

namespace taeda::distributed {

namespace {

using Tensors = std::vector<TensorBase>;

Tensors tensors_of(const py::sequence& list) {
  Tensors found;
  found.reserve(list.size());
  for (py::handle o : list) {
    const TensorBase& t = bridge().unwrap(o.ptr());
    TAEDA_CHECK(t.is_cpu(),
                "collective: expected tensors of the CPU, got one on ",
                t.device().str());
    TAEDA_CHECK(t.numel() == 0 || t.is_non_overlapping_and_dense(),
                "collective: expected contiguous tensors");
    found.push_back(t);
  }
  return found;
}

Span span_of(const TensorBase& t) {
  return {static_cast<char*>(t.mutable_raw_data()), t.nbytes()};
}
std::vector<char*> pointers_of(const Tensors& list) {
  std::vector<char*> found;
  for (const auto& t : list) found.push_back(span_of(t).data);
  return found;
}
std::vector<Span> spans_of(const Tensors& list) {
  std::vector<Span> found;
  for (const auto& t : list) found.push_back(span_of(t));
  return found;
}

struct Asked {
  bool async;
  std::optional<Millis> limit;
};

using WorkPtr = std::shared_ptr<Work>;

// What others compare, and what is only told.
struct Told {
  Head head;
  Shape shape;
};

Group::Options options_of(const Asked& asked,
                          const Shape& shape,
                          std::shared_ptr<void> keep) {
  const Millis limit = asked.limit.value_or(Millis(0));
  return {asked.async, limit, calling_line(), shape, std::move(keep)};
}

WorkPtr run(Group& g,
            const Told& told,
            const Asked& asked,
            std::shared_ptr<void> keep,
            Group::Body body) {
  auto options = options_of(asked, told.shape, std::move(keep));
  py::gil_scoped_release release;
  return g.run(told.head, std::move(body), std::move(options));
}

std::shared_ptr<Tensors> kept(Tensors list) {
  return std::make_shared<Tensors>(std::move(list));
}

Reduction reduction(const Group& g,
                    const char* name,
                    int op,
                    ScalarType dtype) {
  Reduction r{static_cast<ReduceOp>(op), dtype};
  check_reduction(name, r);
  if (r.op == ReduceOp::Avg) r.factor = 1.0 / g.place().size;
  return r;
}

Told told_of(Kind kind, const TensorBase& t, int root = -1) {
  const Head head{
      .bytes = t.nbytes(), .root = root, .kind = kind, .dtype = t.dtype()};
  return {head, Shape(t.sizes())};
}

WorkPtr all_reduce(Group& g, const py::object& tensor, int op, Asked asked) {
  auto keep = kept(tensors_of(py::make_tuple(tensor)));
  const TensorBase& t = keep->front();
  const auto r = reduction(g, "all_reduce", op, t.dtype());
  Told told = told_of(Kind::AllReduce, t);
  told.head.op = r.op;
  return run(g, told, asked, keep, [r, t](Channel& c, const Call& call) {
    c.all_reduce(call, r, t.mutable_raw_data(), t.numel());
  });
}

WorkPtr reduce_to(
    Group& g, const py::object& tensor, int root, int op, Asked asked) {
  auto keep = kept(tensors_of(py::make_tuple(tensor)));
  const TensorBase& t = keep->front();
  const auto r = reduction(g, "reduce", op, t.dtype());
  Told told = told_of(Kind::Reduce, t, root);
  told.head.op = r.op;
  return run(g, told, asked, keep, [r, t](Channel& c, const Call& call) {
    c.reduce(call, r, t.mutable_raw_data(), t.numel());
  });
}

WorkPtr broadcast(Group& g, const py::object& tensor, int root, Asked asked) {
  auto keep = kept(tensors_of(py::make_tuple(tensor)));
  const TensorBase& t = keep->front();
  const Told told = told_of(Kind::Broadcast, t, root);
  return run(g, told, asked, keep, [t](Channel& c, const Call& call) {
    c.broadcast(call, span_of(t));
  });
}

// Tensors of the list and one more, which is the last.
std::shared_ptr<Tensors> kept_with(const py::sequence& list,
                                   const py::object& one) {
  auto all = tensors_of(list);
  all.push_back(tensors_of(py::make_tuple(one)).front());
  return kept(std::move(all));
}
std::vector<char*> all_but_last(const Tensors& list) {
  auto found = pointers_of(list);
  found.pop_back();
  return found;
}

WorkPtr all_gather(Group& g,
                   const py::sequence& outs,
                   const py::object& tensor,
                   Asked asked) {
  auto keep = kept_with(outs, tensor);
  const Told told = told_of(Kind::AllGather, keep->back());
  return run(
      g, told, asked, keep, [k = keep.get()](Channel& c, const Call& call) {
        c.all_gather(call, span_of(k->back()), all_but_last(*k));
      });
}

WorkPtr gather(Group& g,
               const py::sequence& outs,
               const py::object& tensor,
               int root,
               Asked asked) {
  auto keep = kept_with(outs, tensor);
  const Told told = told_of(Kind::Gather, keep->back(), root);
  return run(
      g, told, asked, keep, [k = keep.get()](Channel& c, const Call& call) {
        c.gather(call, span_of(k->back()), all_but_last(*k));
      });
}

WorkPtr scatter(Group& g,
                const py::object& out,
                const py::sequence& ins,
                int root,
                Asked asked) {
  auto keep = kept_with(ins, out);
  const Told told = told_of(Kind::Scatter, keep->back(), root);
  return run(
      g, told, asked, keep, [k = keep.get()](Channel& c, const Call& call) {
        c.scatter(call, all_but_last(*k), span_of(k->back()));
      });
}

WorkPtr reduce_scatter(Group& g,
                       const py::object& out,
                       const py::sequence& ins,
                       int op,
                       Asked asked) {
  auto keep = kept_with(ins, out);
  const TensorBase& t = keep->back();
  const auto r = reduction(g, "reduce_scatter", op, t.dtype());
  Told told = told_of(Kind::ReduceScatter, t);
  told.head.op = r.op;
  return run(
      g, told, asked, keep, [r, k = keep.get()](Channel& c, const Call& call) {
        const TensorBase& to = k->back();
        c.reduce_scatter(
            call, r, all_but_last(*k), to.mutable_raw_data(), to.numel());
      });
}

WorkPtr all_to_all(Group& g,
                   const py::sequence& outs,
                   const py::sequence& ins,
                   Asked asked) {
  using Both = std::pair<Tensors, Tensors>;
  auto keep = std::make_shared<Both>(tensors_of(outs), tensors_of(ins));
  const ScalarType dtype = keep->first.front().dtype();
  const Told told{{.kind = Kind::AllToAll, .dtype = dtype}, {}};
  return run(
      g, told, asked, keep, [k = keep.get()](Channel& c, const Call& call) {
        c.all_to_all(call, spans_of(k->second), spans_of(k->first));
      });
}

WorkPtr barrier(Group& g, Asked asked) {
  return run(g,
             {{.kind = Kind::Barrier}, {}},
             asked,
             nullptr,
             [](Channel& c, const Call& call) { c.barrier(call); });
}

WorkPtr send(Group& g,
             const py::object& tensor,
             int to,
             uint64_t tag,
             std::optional<Millis> limit) {
  auto keep = kept(tensors_of(py::make_tuple(tensor)));
  const Span data = span_of(keep->front());
  const Shape shape(keep->front().sizes());
  auto options = options_of({true, limit}, shape, keep);
  py::gil_scoped_release release;
  return g.send(data, to, tag, std::move(options));
}

WorkPtr receive(Group& g,
                const py::object& tensor,
                int from,
                uint64_t tag,
                std::optional<Millis> limit) {
  auto keep = kept(tensors_of(py::make_tuple(tensor)));
  const Span data = span_of(keep->front());
  const Shape shape(keep->front().sizes());
  auto options = options_of({true, limit}, shape, keep);
  py::gil_scoped_release release;
  return g.receive(data, from, tag, std::move(options));
}

// Called by whichever thread ends the work.
void then(Work& work, py::function callback) {
  auto shared = std::shared_ptr<py::function>(
      new py::function(std::move(callback)), [](py::function* f) {
        py::gil_scoped_acquire gil;
        delete f;
      });
  py::gil_scoped_release release;
  work.then([shared] {
    py::gil_scoped_acquire gil;
    try {
      (*shared)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a callback of Work");
    }
  });
}

void bind_work(py::module_& m) {
  py::class_<Work, std::shared_ptr<Work>>(m, "Work", "The end of an operation.")
      .def("wait",
           &Work::wait,
           py::arg("timeout") = Millis(-1),
           Released(),
           "Raises the operation's error, or DistBackendError if it takes "
           "longer than the timeout.")
      .def("is_completed", &Work::is_completed)
      .def("exception",
           [](const Work& w) { return exception_object(w.error()); })
      .def("source", &Work::source)
      .def("then", &then, py::arg("callback"));
}

// (async, timeout) as one argument would cost a tuple for each call.
template <auto F, class... Args>
auto with_asked() {
  return [](Group& g, Args... args, bool async, std::optional<Millis> limit) {
    return F(g, args..., Asked{async, limit});
  };
}

}  // namespace

void bind_groups(py::module_& m) {
  using Object = const py::object&;
  using List = const py::sequence&;
  bind_work(m);
  m.def("has_gloo", &has_gloo, "Whether the build has Gloo.");
  py::class_<Group, std::shared_ptr<Group>>(
      m, "Group", "This rank's part in a group; ProcessGroup stands on it.")
      .def(py::init([](int rank,
                       int size,
                       std::string name,
                       std::shared_ptr<Store> store,
                       Millis timeout,
                       const std::string& route,
                       std::vector<int> members) {
             const Route way = route == "gloo"     ? Route::Gloo
                               : route == "mpi"    ? Route::Mpi
                               : route == "shared" ? Route::SharedMemory
                                                   : Route::Any;
             py::gil_scoped_release release;
             return std::make_shared<Group>(
                 Place{rank, size, std::move(name), std::move(members)},
                 std::move(store),
                 timeout,
                 way);
           }),
           py::arg("rank"),
           py::arg("size"),
           py::arg("name"),
           py::arg("store"),
           py::arg("timeout"),
           py::arg("route") = "",
           py::arg("members") = std::vector<int>())
      .def("all_reduce", with_asked<&all_reduce, Object, int>())
      .def("reduce", with_asked<&reduce_to, Object, int, int>())
      .def("broadcast", with_asked<&broadcast, Object, int>())
      .def("all_gather", with_asked<&all_gather, List, Object>())
      .def("gather", with_asked<&gather, List, Object, int>())
      .def("scatter", with_asked<&scatter, Object, List, int>())
      .def("reduce_scatter", with_asked<&reduce_scatter, Object, List, int>())
      .def("all_to_all", with_asked<&all_to_all, List, List>())
      .def("barrier", with_asked<&barrier>())
      .def("send", &send)
      .def("receive", &receive)
      .def("wait", &Group::await, Released())
      .def("abort", &Group::abort, Released())
      .def("shut_down", &Group::shut_down, Released())
      .def_property("timeout", &Group::limit, &Group::set_limit)
      .def_property_readonly("sequence", &Group::sequence)
      .def_property_readonly("has_failed", &Group::has_failed)
      .def_property_readonly("channel", &Group::channel_name);
}

void bind_mpi(py::module_& m) {
  m.def(
      "open_mpi",
      [](const std::vector<std::string>& paths) {
        auto& mpi = mpi::Library::open(paths);
        mpi.begin();
        int rank = 0, size = 0;
        mpi.check("MPI_Comm_rank", mpi.rank(mpi.world, &rank));
        mpi.check("MPI_Comm_size", mpi.size(mpi.world, &size));
        return std::make_tuple(rank, size, mpi.describe());
      },
      py::arg("paths"),
      Released(),
      "Opens the first library that can be and begins MPI; this process's "
      "rank, how many there are, and the library's name.");
  m.def(
      "end_mpi",
      [] { mpi::Library::get().end(); },
      Released(),
      "Ends MPI where it was begun here and no group has failed.");
}

}  // namespace taeda::distributed
