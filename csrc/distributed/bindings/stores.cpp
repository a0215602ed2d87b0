#include <taeda/csrc/distributed/bindings/bindings.h>
#include <taeda/csrc/distributed/file_store.h>
#include <taeda/csrc/distributed/hash_store.h>
#include <taeda/csrc/distributed/prefix_store.h>
#include <taeda/csrc/distributed/tcp_store.h>

#include <pybind11/trampoline_self_life_support.h>

namespace taeda::distributed {

namespace {

py::list as_bytes(const Keys& values) {
  py::list list;
  for (const auto& value : values) list.append(py::bytes(value));
  return list;
}

// A store whose methods are Python's, so that ours can stand on it.
class PythonStore : public Store, public py::trampoline_self_life_support {
 public:
  using Store::Store;

  void set(const std::string& key, const std::string& value) override {
    call("set", key, py::bytes(value));
  }
  std::string get(const std::string& key) override {
    return text(call("get", key));
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return number(call("add", key, amount));
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired) override {
    return text(
        call("compare_set", key, py::bytes(expected), py::bytes(desired)));
  }
  bool check(const Keys& keys) override {
    return number(call("check", keys)) != 0;
  }
  void wait(const Keys& keys, Millis limit) override {
    call("wait", keys, limit);
  }
  bool delete_key(const std::string& key) override {
    return number(call("delete_key", key)) != 0;
  }
  int64_t num_keys() override { return number(call("num_keys")); }
  void append(const std::string& key, const std::string& value) override {
    call("append", key, py::bytes(value));
  }
  Keys multi_get(const Keys& keys) override {
    Keys values;
    for (const auto& key : keys) values.push_back(get(key));
    return values;
  }
  void multi_set(const Keys& keys, const Keys& values) override {
    check_pairs(keys, values);
    for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
  }
  bool has_extended_api() const override { return false; }
  std::shared_ptr<Store> clone() override {
    py::gil_scoped_acquire gil;
    return call("clone")->cast<std::shared_ptr<Store>>();
  }

 private:
  // Deleted with the GIL held.
  using Result = std::shared_ptr<py::object>;

  template <class... Args>
  Result call(const char* name, const Args&... args) const {
    py::gil_scoped_acquire gil;
    py::function own = py::get_override(static_cast<const Store*>(this), name);
    if (!own) {
      throw_error(ErrorKind::NotImplemented,
                  str_cat("Store: this class does not define ", name));
    }
    return Result(new py::object(own(args...)), [](py::object* o) {
      py::gil_scoped_acquire held;
      delete o;
    });
  }
  static std::string text(const Result& r) {
    py::gil_scoped_acquire gil;
    return r->cast<std::string>();
  }
  static int64_t number(const Result& r) {
    py::gil_scoped_acquire gil;
    return r->cast<int64_t>();
  }
};

using StoreClass = py::class_<Store, PythonStore, py::smart_holder>;

// What some stores make of the others.
void bind_more(StoreClass& base) {
  base.def("append",
           &Store::append,
           py::arg("key"),
           py::arg("value"),
           Released())
      .def(
          "multi_get",
          [](Store& s, const Keys& keys) {
            Keys values;
            {
              py::gil_scoped_release release;
              values = s.multi_get(keys);
            }
            return as_bytes(values);
          },
          py::arg("keys"))
      .def("multi_set",
           &Store::multi_set,
           py::arg("keys"),
           py::arg("values"),
           Released())
      .def("has_extended_api", &Store::has_extended_api)
      .def("queue_push",
           &Store::queue_push,
           py::arg("key"),
           py::arg("value"),
           Released())
      .def(
          "queue_pop",
          [](Store& s, const std::string& key, bool block) {
            std::string value;
            {
              py::gil_scoped_release release;
              value = s.queue_pop(key, block);
            }
            return py::bytes(value);
          },
          py::arg("key"),
          py::arg("block") = true)
      .def("queue_len", &Store::queue_len, py::arg("key"), Released())
      .def("clone", &Store::clone, Released())
      .def("set_timeout", &Store::set_timeout, py::arg("timeout"))
      .def_property_readonly("timeout", &Store::timeout);
}

void bind_base(py::module_& m) {
  StoreClass base(
      m, "Store", "Keys and values that ranks share while they meet.");
  base.def(py::init<>())
      .def("set", &Store::set, py::arg("key"), py::arg("value"), Released())
      .def(
          "get",
          [](Store& s, const std::string& key) {
            std::string value;
            {
              py::gil_scoped_release release;
              value = s.get(key);
            }
            return py::bytes(value);
          },
          py::arg("key"),
          "The value; waits for the key as long as `timeout`.")
      .def("add", &Store::add, py::arg("key"), py::arg("amount"), Released())
      .def(
          "compare_set",
          [](Store& s,
             const std::string& key,
             const std::string& expected,
             const std::string& desired) {
            std::string value;
            {
              py::gil_scoped_release release;
              value = s.compare_set(key, expected, desired);
            }
            return py::bytes(value);
          },
          py::arg("key"),
          py::arg("expected_value"),
          py::arg("desired_value"),
          "Sets the value where it is the expected one; returns what is there.")
      .def("check", &Store::check, py::arg("keys"), Released())
      .def(
          "wait",
          [](Store& s, const Keys& keys) { s.wait(keys, s.timeout()); },
          py::arg("keys"),
          Released())
      .def(
          "wait", &Store::wait, py::arg("keys"), py::arg("timeout"), Released())
      .def("delete_key", &Store::delete_key, py::arg("key"), Released())
      .def("num_keys", &Store::num_keys, Released());
  bind_more(base);
}

std::shared_ptr<TCPStore> make_tcp_store(std::string host,
                                         int port,
                                         std::optional<int64_t> world_size,
                                         bool is_master,
                                         Millis timeout,
                                         bool wait_for_workers,
                                         bool multi_tenant,
                                         std::optional<int> listener,
                                         bool) {
  py::gil_scoped_release release;
  return std::make_shared<TCPStore>(
      std::move(host),
      TCPStoreOptions{.port = port,
                      .is_server = is_master,
                      .workers = world_size,
                      .wait_for_workers = wait_for_workers,
                      .limit = timeout,
                      .multi_tenant = multi_tenant,
                      .listener = listener.value_or(-1)});
}

}  // namespace

void bind_stores(py::module_& m) {
  bind_base(m);
  py::class_<HashStore, Store, py::smart_holder>(
      m, "HashStore", "A store within one process.")
      .def(py::init<>());
  py::class_<FileStore, Store, py::smart_holder>(
      m, "FileStore", "A store in a file that all ranks see.")
      .def(py::init<std::string, int64_t>(),
           py::arg("file_name"),
           py::arg("world_size") = -1)
      .def_property_readonly("path", &FileStore::path);
  py::class_<PrefixStore, Store, py::smart_holder>(
      m, "PrefixStore", "Another store's keys below a prefix.")
      .def(py::init<std::string, std::shared_ptr<Store>>(),
           py::arg("prefix"),
           py::arg("store"))
      .def_property_readonly("underlying_store", &PrefixStore::inner)
      .def_property_readonly(
          "_underlying_non_prefix_store", [](const PrefixStore& s) {
            std::shared_ptr<Store> inner = s.inner();
            while (auto* deeper = dynamic_cast<PrefixStore*>(inner.get())) {
              inner = deeper->inner();
            }
            return inner;
          });
  py::class_<TCPStore, Store, py::smart_holder>(
      m, "TCPStore", "A store that a server at one of the ranks keeps.")
      .def(py::init(&make_tcp_store),
           py::arg("host_name"),
           py::arg("port"),
           py::arg("world_size") = py::none(),
           py::arg("is_master") = false,
           py::arg("timeout") = Millis(Store::kDefaultTimeout),
           py::arg("wait_for_workers") = true,
           py::arg("multi_tenant") = false,
           py::arg("master_listen_fd") = py::none(),
           py::arg("use_libuv") = true)
      .def_property_readonly("host", &TCPStore::host)
      .def_property_readonly("port", &TCPStore::port)
      .def_property_readonly("libuvBackend",
                             [](const TCPStore&) { return false; })
      .def("__repr__", [](const TCPStore& s) {
        return str_cat("TCPStore(host=", s.host(), ", port=", s.port(), ")");
      });
}

}  // namespace taeda::distributed
