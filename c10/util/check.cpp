#include <taeda/c10/util/check.h>

#include <charconv>
#include <cmath>

namespace taeda {

Error::Error(ErrorKind kind, std::string message)
    : kind_(kind), message_(std::move(message)) {}
Error::~Error() = default;

void append_to(std::string& out, std::string_view v) { out.append(v); }
void append_to(std::string& out, const char* v) { out.append(v); }
void append_to(std::string& out, const std::string& v) { out.append(v); }
void append_to(std::string& out, char v) { out.push_back(v); }
void append_to(std::string& out, bool v) { out.append(v ? "true" : "false"); }

namespace {
template <class T>
void append_number(std::string& out, T v) {
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), v).ptr;
  out.append(buffer, end);
}
}  // namespace

void append_to(std::string& out, long long v) { append_number(out, v); }
void append_to(std::string& out, unsigned long long v) {
  append_number(out, v);
}
void append_to(std::string& out, double v) {
  if (std::isfinite(v) && v == std::floor(v) && std::fabs(v) < 1e15) {
    append_number(out, static_cast<long long>(v));
    return;
  }
  append_number(out, v);
}

void append_to(std::string& out, ArrayRef<int64_t> v) {
  out.push_back('[');
  for (size_t i = 0; i < v.size(); ++i) {
    if (i > 0) out.append(", ");
    append_number(out, v[i]);
  }
  out.push_back(']');
}

void throw_error(ErrorKind kind, std::string message) {
  throw Error(kind, std::move(message));
}

void internal_assert_failed(const char* condition,
                            const char* file,
                            int line,
                            std::string message) {
  throw Error(ErrorKind::Internal,
              str_cat("internal assertion failed: ",
                      condition,
                      " at ",
                      file,
                      ":",
                      line,
                      " ",
                      message,
                      " (this is a bug in Taeda; please report it)"));
}

}  // namespace taeda
