// A store in a file that all ranks see: a log of what was set and deleted.
#pragma once

#include <taeda/csrc/distributed/table.h>

#include <mutex>

namespace taeda::distributed {

// Note [FileStore format]
// "TAEDAfs1", then records of three little-endian 32-bit numbers (kind, length
// of the key, length of the value), the key and the value. Writers hold an
// exclusive flock, readers a shared one, each on a descriptor opened for the
// call, so that forked processes exclude each other too. A record that a killed
// writer left unfinished is cut off by the next writer.
class FileStore : public Store {
 public:
  // `users` stores over the path, in all processes, remove the file when the
  // last one is gone; with fewer than one the file stays.
  FileStore(std::string path, int64_t users);
  ~FileStore() override;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired) override;
  bool check(const Keys& keys) override;
  void wait(const Keys& keys, Millis limit) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const Keys& values) override;
  bool has_extended_api() const override { return false; }
  std::shared_ptr<Store> clone() override;

  const std::string& path() const { return path_; }

 private:
  enum class Kind : uint32_t { Set, Delete, User };
  class OpenFile;
  template <class F>
  auto writing(F&& f);
  template <class F>
  auto reading(F&& f);
  void catch_up(const OpenFile& file);
  void write(const OpenFile& file,
             Kind kind,
             const std::string& key,
             const std::string& value);
  void user(int64_t came, int64_t left);

  std::string path_;
  int64_t users_;
  std::mutex mutex_;  // guards what follows
  Table table_;
  int64_t position_ = 0;
  int64_t came_ = 0;
  int64_t left_ = 0;
};

}  // namespace taeda::distributed
