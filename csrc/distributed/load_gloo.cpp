// Opens the library of gloo/ when a group needs it.
#include <taeda/csrc/distributed/channel.h>

#include <dlfcn.h>

namespace taeda::distributed {

namespace {

using Open = Channel* (*)(const Place&, Store&, Millis);

// It lies beside libtaeda.so.
std::string path_of_library() {
  Dl_info info;
  using Cat = void (*)(std::string&, std::string_view);
  auto inside = reinterpret_cast<void*>(static_cast<Cat>(&append_to));
  if (::dladdr(inside, &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + "libtaeda_gloo.so";
}

struct Library {
  Open open = nullptr;
  std::string problem;

  Library() {
    void* handle = ::dlopen(path_of_library().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      problem = ::dlerror();
      return;
    }
    open = reinterpret_cast<Open>(::dlsym(handle, "taeda_open_gloo_channel"));
    if (open == nullptr) problem = ::dlerror();
  }
  static const Library& instance() {
    static const Library library;
    return library;
  }
};

}  // namespace

bool has_gloo() { return Library::instance().open != nullptr; }

std::unique_ptr<Channel> open_gloo_channel(const Place& place,
                                           Store& store,
                                           Millis limit) {
  const Library& library = Library::instance();
  if (library.open == nullptr) {
    fail(Fault::Backend,
         "init_process_group: the ranks of group '",
         place.group,
         "' are not on one host, and there is no Gloo for the way between "
         "hosts (build with Debian's libgloo-dev installed): ",
         library.problem);
  }
  return std::unique_ptr<Channel>(library.open(place, store, limit));
}

}  // namespace taeda::distributed
