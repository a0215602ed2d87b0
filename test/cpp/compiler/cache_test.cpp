// The folder of kernels: whole files or none, bounded.
#include <taeda/csrc/compiler/loops/toolchain.h>
#include <taeda/csrc/compiler/loops/unit.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace taeda::compiler::loops {
namespace {

namespace fs = std::filesystem;

class KernelCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "taeda-XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = made;
    const char* before = std::getenv("TAEDA_CACHE_DIR");
    before_ = before == nullptr ? "" : before;
    setenv("TAEDA_CACHE_DIR", made.c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("TAEDA_CACHE_DIR");
    } else {
      setenv("TAEDA_CACHE_DIR", before_.c_str(), 1);
    }
    fs::remove_all(folder_);
  }
  // Writes a file as the compiler would, and puts it in.
  std::string put(const std::string& name, const std::string& content) {
    std::string made = (folder_ / "made").string();
    std::string path = (folder_ / name).string();
    std::ofstream(made) << content;
    EXPECT_TRUE(put_in_cache(made, path));
    EXPECT_FALSE(fs::exists(made));
    return path;
  }
  int run_seven() {
    auto unit = make_intrusive<Unit>(
        "extern \"C\" void seven(void* const* p, const long*, long, long) {"
        " *static_cast<int*>(p[0]) = 7; }",
        std::vector<std::string>{"seven"});
    if (!unit->wait()) return -1;
    int value = 0;
    void* given[] = {&value};
    unit->kernel(0)(given, nullptr, 0, 1);
    return value;
  }
  std::string only_file() {
    std::string found;
    for (const auto& e : fs::directory_iterator(folder_ / "kernels")) {
      EXPECT_EQ(e.path().extension(), ".so");
      EXPECT_EQ(found, "");
      found = e.path().string();
    }
    return found;
  }

  fs::path folder_;
  std::string before_;
};

TEST_F(KernelCache, ADamagedFileIsSeen) {
  std::string path = put("a.so", "some code");
  EXPECT_TRUE(check_cached(path));
  for (auto at : {0, 4, 9, 20}) {
    std::string again = put("a.so", "some code");
    std::fstream file(again, std::ios::in | std::ios::out);
    file.seekp(at);
    file.put('\x7f');
    file.close();
    EXPECT_FALSE(check_cached(again)) << at;
  }
  put("a.so", "some code");
  fs::resize_file(path, 12);
  EXPECT_FALSE(check_cached(path));
  fs::resize_file(path, 0);
  EXPECT_FALSE(check_cached(path));
  EXPECT_FALSE(check_cached(path + "x"));
}

TEST_F(KernelCache, WhatAnyoneMayWriteIsNotLoaded) {
  std::string path = put("a.so", "some code");
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(check_cached(path));
}

TEST_F(KernelCache, TheOldestGoesFirst) {
  std::string old = put("old.so", std::string(1000, 'x'));
  std::string fresh = put("new.so", std::string(1000, 'y'));
  fs::last_write_time(old,
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  bound_cache(folder_.string(), 4000);
  EXPECT_TRUE(fs::exists(old));
  bound_cache(folder_.string(), 1500);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(KernelCache, ADamagedKernelIsMadeAgain) {
  EXPECT_EQ(run_seven(), 7);
  std::string file = only_file();
  EXPECT_TRUE(check_cached(file));
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_FALSE(check_cached(file));
  EXPECT_EQ(run_seven(), 7);
  EXPECT_TRUE(check_cached(file));
}

TEST_F(KernelCache, TextThatDoesNotCompileFailsAndNothingElse) {
  auto unit =
      make_intrusive<Unit>("this is no C++", std::vector<std::string>{"f"});
  testing::internal::CaptureStderr();
  EXPECT_FALSE(unit->wait());
  EXPECT_TRUE(unit->has_failed());
  EXPECT_FALSE(unit->ready());
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(run_seven(), 7);
}

}  // namespace
}  // namespace taeda::compiler::loops
