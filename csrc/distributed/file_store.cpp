#include <taeda/csrc/distributed/file_store.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace taeda::distributed {

namespace {
constexpr char kMagic[] = {'T', 'A', 'E', 'D', 'A', 'f', 's', '1'};
constexpr int64_t kMagicSize = sizeof(kMagic);

struct RecordHead {
  uint32_t kind;
  uint32_t key_size;
  uint32_t value_size;
};

[[noreturn]] void file_failed(const std::string& path, const char* action) {
  const int code = errno;
  fail(Fault::Store,
       "FileStore: cannot ",
       action,
       " '",
       path,
       "': ",
       std::strerror(code));
}
}  // namespace

// Open and locked for as long as it lives.
class FileStore::OpenFile {
 public:
  OpenFile(const std::string& path, bool exclusive) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) file_failed(path, "open");
    while (::flock(fd_, exclusive ? LOCK_EX : LOCK_SH) != 0) {
      if (errno == EINTR) continue;
      ::close(fd_);
      file_failed(path, "lock");
    }
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int64_t size() const {
    struct stat facts;
    if (::fstat(fd_, &facts) != 0) file_failed(path_, "examine");
    return facts.st_size;
  }
  void read(void* out, int64_t size, int64_t at) const {
    auto* to = static_cast<char*>(out);
    while (size > 0) {
      const ssize_t got = ::pread(fd_, to, static_cast<size_t>(size), at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) file_failed(path_, "read");
      to += got, size -= got, at += got;
    }
  }
  // A write that fails half way (a full disk) is taken back.
  void write(const std::string& bytes, int64_t at) const {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t put = ::pwrite(fd_,
                                   bytes.data() + done,
                                   bytes.size() - done,
                                   at + static_cast<int64_t>(done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) {
        const int code = errno;
        cut(at);
        errno = code;
        file_failed(path_, "write");
      }
      done += static_cast<size_t>(put);
    }
  }
  void cut(int64_t size) const {
    if (::ftruncate(fd_, size) != 0) file_failed(path_, "shorten");
  }

 private:
  const std::string& path_;
  int fd_;
};

FileStore::FileStore(std::string path, int64_t users)
    : path_(std::move(path)), users_(users) {
  user(1, 0);
}

FileStore::~FileStore() {
  try {
    user(0, 1);
    if (users_ > 0 && left_ >= users_ && left_ >= came_) {
      ::unlink(path_.c_str());
    }
  } catch (const std::exception&) {
    // A folder that has gone takes the file with it; nothing is left to do.
  }
}

void FileStore::catch_up(const OpenFile& file) {
  const int64_t size = file.size();
  if (position_ == 0) {
    if (size < kMagicSize) return;
    char magic[kMagicSize];
    file.read(magic, kMagicSize, 0);
    if (std::memcmp(magic, kMagic, kMagicSize) != 0) {
      fail(Fault::Store, "FileStore: '", path_, "' is not the file of a store");
    }
    position_ = kMagicSize;
  }
  constexpr auto kHead = static_cast<int64_t>(sizeof(RecordHead));
  while (size - position_ >= kHead) {
    RecordHead head;
    file.read(&head, kHead, position_);
    const int64_t body = int64_t{head.key_size} + head.value_size;
    if (size - position_ - kHead < body) break;
    std::string key(head.key_size, '\0');
    std::string value(head.value_size, '\0');
    file.read(key.data(), head.key_size, position_ + kHead);
    file.read(value.data(), head.value_size, position_ + kHead + head.key_size);
    position_ += kHead + body;
    if (head.kind == static_cast<uint32_t>(Kind::Set)) {
      table_.set(key, std::move(value));
    } else if (head.kind == static_cast<uint32_t>(Kind::Delete)) {
      table_.erase(key);
    } else if (head.kind == static_cast<uint32_t>(Kind::User)) {
      (key == "came" ? came_ : left_) += 1;
    } else {
      fail(Fault::Store, "FileStore: '", path_, "' is damaged");
    }
  }
}

template <class F>
auto FileStore::reading(F&& f) {
  std::lock_guard lock(mutex_);
  catch_up(OpenFile(path_, /*exclusive=*/false));
  return f();
}

template <class F>
auto FileStore::writing(F&& f) {
  std::lock_guard lock(mutex_);
  OpenFile file(path_, /*exclusive=*/true);
  catch_up(file);
  if (position_ == 0) {
    file.cut(0);
    file.write(std::string(kMagic, kMagicSize), 0);
    position_ = kMagicSize;
  }
  if (file.size() > position_) file.cut(position_);
  return f(file);
}

void FileStore::write(const OpenFile& file,
                      Kind kind,
                      const std::string& key,
                      const std::string& value) {
  const RecordHead head{static_cast<uint32_t>(kind),
                        static_cast<uint32_t>(key.size()),
                        static_cast<uint32_t>(value.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  file.write(bytes + key + value, position_);
  catch_up(file);
}

void FileStore::user(int64_t came, int64_t left) {
  writing([&](const OpenFile& file) {
    if (came != 0) write(file, Kind::User, "came", "");
    if (left != 0) write(file, Kind::User, "left", "");
  });
}

void FileStore::set(const std::string& key, const std::string& value) {
  writing([&](const OpenFile& file) { write(file, Kind::Set, key, value); });
}

void FileStore::wait(const Keys& keys, Millis limit) {
  const TimePoint end = after(limit);
  auto pause = std::chrono::microseconds(200);
  while (!check(keys)) {
    if (Clock::now() >= end) wait_timed_out(keys, limit);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
}

std::string FileStore::get(const std::string& key) {
  wait({key}, timeout());
  return reading([&] {
    const std::string* found = table_.find(key);
    if (!found) fail(Fault::Store, "get: key '", key, "' was just deleted");
    return *found;
  });
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  return writing([&](const OpenFile& file) {
    const std::string* found = table_.find(key);
    const int64_t before = found ? stored_number(key, *found) : 0;
    const int64_t sum = stored_sum(key, before, amount);
    write(file, Kind::Set, key, std::to_string(sum));
    return sum;
  });
}

std::string FileStore::compare_set(const std::string& key,
                                   const std::string& expected,
                                   const std::string& desired) {
  return writing([&](const OpenFile& file) {
    const std::string* found = table_.find(key);
    if (!found && !expected.empty()) return expected;
    if (found && *found != expected) return *found;
    write(file, Kind::Set, key, desired);
    return desired;
  });
}

bool FileStore::check(const Keys& keys) {
  return reading([&] { return table_.has_all(keys); });
}

bool FileStore::delete_key(const std::string& key) {
  writing([&](const OpenFile& file) { write(file, Kind::Delete, key, ""); });
  return true;
}

int64_t FileStore::num_keys() {
  return reading([&] { return table_.size(); });
}

void FileStore::append(const std::string& key, const std::string& value) {
  writing([&](const OpenFile& file) {
    const std::string* found = table_.find(key);
    write(file, Kind::Set, key, found ? *found + value : value);
  });
}

Keys FileStore::multi_get(const Keys& keys) {
  Keys values;
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

void FileStore::multi_set(const Keys& keys, const Keys& values) {
  check_pairs(keys, values);
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

std::shared_ptr<Store> FileStore::clone() {
  auto other = std::make_shared<FileStore>(path_, users_);
  other->set_timeout(timeout());
  return other;
}

}  // namespace taeda::distributed
