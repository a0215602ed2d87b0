#include <taeda/aten/core/tensor_base.h>
#include <taeda/c10/core/kept_forms.h>
#include <taeda/c10/core/storage.h>

#include "../errors.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace taeda {
namespace {

Storage storage(size_t nbytes) {
  return make_intrusive<StorageImpl>(
      nbytes, cpu_allocator(), Device(DeviceType::CPU));
}

TEST(CpuAllocator, LargeBlocksAreKeptAndGivenAgain) {
  Allocator& allocator = cpu_allocator();
  allocator.empty_cache();
  constexpr size_t kBytes = 100'000;
  DataPtr block = allocator.allocate(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u);
  std::memset(block.data, 1, kBytes);
  block.deleter(block.context, kBytes);
  EXPECT_GE(allocator.stats().cached, static_cast<int64_t>(kBytes));
  DataPtr again = allocator.allocate(kBytes - 1);
  EXPECT_EQ(again.data, block.data);
  again.deleter(again.context, kBytes - 1);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().cached, 0);
}

// madvise refuses what is no whole page, and huge pages are aligned ones.
TEST(CpuAllocator, BlocksOfSeveralHugePagesBeginOnOne) {
  constexpr uintptr_t kHugePage = uintptr_t{1} << 21;
  for (size_t nbytes : {size_t{1} << 22, (size_t{5} << 22) + 3}) {
    DataPtr block = cpu_allocator().allocate(nbytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % kHugePage, 0u);
    block.deleter(block.context, nbytes);
  }
}

TEST(CpuAllocator, CountsWhatIsInUse) {
  Allocator& allocator = cpu_allocator();
  int64_t before = allocator.stats().allocated;
  allocator.reset_peak();
  for (size_t nbytes : {1, 100, 5000, 70000, 5'000'000}) {
    Storage s = storage(nbytes);
    std::memset(s->mutable_data(), 0, nbytes);
    EXPECT_EQ(allocator.stats().allocated - before,
              static_cast<int64_t>(nbytes));
  }
  EXPECT_EQ(allocator.stats().allocated, before);
  EXPECT_GE(allocator.stats().peak_allocated, before + 5'000'000);
}

TEST(CpuAllocator, AbsurdSizesAreErrors) {
  expect_throws(ErrorKind::OutOfMemory, "you tried to allocate", [] {
    storage(size_t{1} << 62);
  });
  expect_throws(ErrorKind::OutOfMemory, "you tried to allocate", [] {
    storage(~size_t{0});
  });
}

TEST(CpuAllocator, SeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 200; ++k) {
        size_t nbytes = size_t{1000} << ((k + i) % 9);
        Storage s = storage(nbytes);
        std::memset(s->mutable_data(), i, nbytes);
        cpu_allocator().stats();
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(Allocators, DevicesWithoutBackendAreErrors) {
  expect_throws(
      ErrorKind::Assertion, "CUDA", [] { allocator_for(DeviceType::CUDA); });
  expect_throws(
      ErrorKind::Runtime, "xpu", [] { allocator_for(DeviceType::XPU); });
}

TEST(Storage, LazyClonesPartWhenWritten) {
  Storage a = storage(64);
  std::memset(a->mutable_data(), 7, 64);
  Storage b = a->lazy_clone(), c = b->lazy_clone();
  EXPECT_EQ(a->data(), c->data());
  EXPECT_TRUE(a->is_cow() && b->is_cow() && c->is_cow());
  std::memset(b->mutable_data(), 1, 64);
  EXPECT_FALSE(b->is_cow());
  EXPECT_EQ(static_cast<const char*>(a->data())[63], 7);
  EXPECT_EQ(static_cast<const char*>(b->data())[63], 1);
  a.reset();
  EXPECT_EQ(static_cast<const char*>(c->data())[63], 7);
  c->resize(128);
  EXPECT_EQ(static_cast<const char*>(c->data())[63], 7);
}

KeptForm form_of(int value) { return std::make_shared<const int>(value); }

// Asks twice and keeps what is wanted then.
void keep(const Storage& s, const FormKey& key, int value) {
  EXPECT_FALSE(find_form(*s, key).wanted);
  EXPECT_TRUE(find_form(*s, key).wanted);
  keep_form(*s, key, form_of(value));
}

TEST(KeptForms, AreThereUntilTheBytesAreWritten) {
  Storage s = storage(64);
  const FormKey key{1, 0}, beside{1, 16}, other{2, 0};
  keep(s, key, 7);
  keep(s, beside, 8);
  EXPECT_EQ(*static_cast<const int*>(find_form(*s, key).form.get()), 7);
  EXPECT_EQ(*static_cast<const int*>(find_form(*s, beside).form.get()), 8);
  EXPECT_EQ(find_form(*s, other).form, nullptr);
  const void* memory = s->data();
  EXPECT_EQ(s->mutable_data(), memory);
  EXPECT_EQ(find_form(*s, key).form, nullptr);
}

TEST(KeptForms, AWriteBetweenBothQuestionsCounts) {
  Storage s = storage(64);
  const FormKey key{1, 0};
  EXPECT_FALSE(find_form(*s, key).wanted);
  s->mutable_data();
  EXPECT_FALSE(find_form(*s, key).wanted);
  EXPECT_TRUE(find_form(*s, key).wanted);
  s->mutable_data();
  keep_form(*s, key, form_of(1));
  EXPECT_EQ(find_form(*s, key).form, nullptr);
}

TEST(KeptForms, NothingIsKeptOfMemoryThatOthersKnow) {
  const FormKey key{1, 0};
  Storage s = storage(64);
  keep(s, key, 7);
  const void* memory = s->data();
  show_memory(*s);
  for (int i = 0; i < 3; ++i) {
    FormAnswer answer = find_form(*s, key);
    EXPECT_TRUE(answer.form == nullptr && !answer.wanted);
    EXPECT_EQ(s->mutable_data(), memory);
  }
  Storage copy = s->lazy_clone();
  EXPECT_NE(copy->data(), memory);
  s->resize(128);  // memory of its own again
  keep(s, key, 8);
  static char foreign[16];
  s->replace({foreign, nullptr, nullptr}, sizeof(foreign));
  EXPECT_FALSE(find_form(*s, key).wanted);
  EXPECT_FALSE(find_form(*s, key).wanted);
  Storage borrowed = make_intrusive<StorageImpl>(
      DataPtr{foreign, nullptr, nullptr}, sizeof(foreign), Device());
  EXPECT_FALSE(find_form(*borrowed, key).wanted);
  EXPECT_FALSE(find_form(*borrowed, key).wanted);
}

TEST(KeptForms, LiveWithTheMemoryOfLazyClones) {
  const FormKey key{1, 0};
  Storage a = storage(64);
  keep(a, key, 7);
  Storage b = a->lazy_clone();
  EXPECT_NE(find_form(*b, key).form, nullptr);
  std::memset(b->mutable_data(), 1, 64);
  EXPECT_EQ(find_form(*b, key).form, nullptr);
  EXPECT_NE(find_form(*a, key).form, nullptr);
  std::weak_ptr<const void> watched = find_form(*a, key).form;
  a.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(Storage, ResizingKeepsTheCommonBytes) {
  Storage s = storage(8);
  std::memcpy(s->mutable_data(), "abcdefg", 8);
  s->resize(3);
  EXPECT_EQ(std::memcmp(s->data(), "abc", 3), 0);
  s->resize(100);
  EXPECT_EQ(std::memcmp(s->data(), "abc", 3), 0);
  s->resize(0);
  EXPECT_EQ(s->nbytes(), 0u);
}

int deleted = 0;

TEST(Storage, ForeignMemoryIsGivenBackOnceAndNotResized) {
  static char memory[16];
  deleted = 0;
  DataPtr pointer{memory, &deleted, [](void* context, size_t nbytes) {
                    EXPECT_EQ(nbytes, sizeof(memory));
                    ++*static_cast<int*>(context);
                  }};
  {
    Storage s = make_intrusive<StorageImpl>(
        pointer, sizeof(memory), Device(DeviceType::CPU));
    EXPECT_EQ(s->data(), memory);
    expect_throws(ErrorKind::Runtime, "not resizable", [&] { s->resize(32); });
    expect_throws(ErrorKind::Runtime, "_lazy_clone", [&] { s->lazy_clone(); });
    Storage other = storage(4);
    s->swap(*other);
    s.reset();
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(TensorImpl, GeometryOfMoreDimsThanFitInside) {
  TensorBase t = make_tensor("test", {1, 2, 3, 1, 2, 2, 1}, kFloat);
  EXPECT_EQ(t.dim(), 7);
  EXPECT_EQ(t.numel(), 24);
  EXPECT_EQ(t.strides(), IntArrayRef({24, 12, 4, 4, 2, 1, 1}));
  t.impl()->set_sizes_contiguous({4, 6});
  t.impl()->set_sizes_contiguous({2, 2, 2, 3, 1, 1});
  EXPECT_EQ(t.sizes(), IntArrayRef({2, 2, 2, 3, 1, 1}));
  t.impl()->set_sizes_and_strides(t.sizes(), t.strides());
  EXPECT_TRUE(t.is_contiguous());
}

TEST(TensorImpl, FactsFollowTheStrides) {
  TensorBase t = make_tensor("test", {2, 3, 4, 5}, kFloat);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.is_contiguous(MemoryFormat::ChannelsLast));
  TensorBase last = make_tensor_strided(
      "test",
      {2, 3, 4, 5},
      format_strides({2, 3, 4, 5}, MemoryFormat::ChannelsLast),
      kFloat);
  EXPECT_TRUE(last.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(last.is_contiguous());
  EXPECT_TRUE(last.is_non_overlapping_and_dense());
  TensorBase gaps = make_view(t, {2, 3, 4, 2}, {60, 20, 5, 2}, 1);
  EXPECT_FALSE(gaps.is_non_overlapping_and_dense());
  EXPECT_EQ(gaps.storage_offset(), 1);
}

TEST(TensorImpl, ViewsShareTheVersion) {
  TensorBase t = make_tensor("test", {4}, kFloat);
  t.impl()->bump_version();
  TensorBase view = make_view(t, {2}, {1}, 2);
  TensorBase of_view = make_view(view, {1}, {1}, 3);
  of_view.impl()->bump_version();
  EXPECT_EQ(t.version(), 2u);
  EXPECT_EQ(view.version(), 2u);
  EXPECT_EQ(of_view.impl()->base().get(), t.impl());
}

TEST(Sizes, AbsurdOnesAreRefusedBeforeMemoryIsTouched) {
  int64_t big = int64_t{1} << 62;
  for (auto sizes : {std::vector<int64_t>{big, big},
                     {big, 8},
                     {0, big, big},
                     {int64_t{1} << 60}}) {
    expect_throws(ErrorKind::Runtime, "overflowed", [&] {
      make_tensor("test", sizes, kFloat);
    });
  }
  expect_throws(ErrorKind::Runtime, "negative dimension -1", [] {
    make_tensor("test", {2, -1}, kFloat);
  });
  expect_throws(ErrorKind::Runtime, "overflowed", [&] {
    required_bytes({3, 3}, {big, 1}, 0, 4);
  });
  EXPECT_EQ(required_bytes({3, 0}, {big, big}, 0, 4), 0u);
  EXPECT_EQ(required_bytes({2, 3}, {0, 2}, 5, 4), 40u);
}

TEST(Sizes, DimsWrapWithinTheRank) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  expect_throws(ErrorKind::Index,
                "expected to be in range of [-2, 1], but got 2",
                [] { wrap_dim(2, 2); });
}

}  // namespace
}  // namespace taeda
