#include <taeda/c10/core/storage.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace taeda {

class CowBlock {
 public:
  CowBlock(DataPtr memory, size_t nbytes) : memory_(memory), nbytes_(nbytes) {}
  void retain() { users_.fetch_add(1, std::memory_order_relaxed); }
  // True for the last user, who then owns the memory.
  bool release() { return users_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  DataPtr memory_;
  size_t nbytes_;

 private:
  std::atomic<int64_t> users_{1};
};

StorageImpl::StorageImpl(size_t nbytes, Allocator& allocator, Device device)
    : memory_(allocator.allocate(nbytes)),
      nbytes_(nbytes),
      device_(device),
      allocator_(&allocator),
      has_shrunk_(memory_.data == nullptr) {}

StorageImpl::StorageImpl(DataPtr memory, size_t nbytes, Device device)
    : memory_(memory),
      nbytes_(nbytes),
      device_(device),
      has_shrunk_(memory.data == nullptr) {}

StorageImpl::StorageImpl(CowBlock* cow, const StorageImpl& like)
    : memory_(like.memory_),
      nbytes_(like.nbytes_),
      device_(like.device_),
      allocator_(like.allocator_),
      cow_(cow) {}

StorageImpl::~StorageImpl() { free_memory(); }

void StorageImpl::free_memory() {
  if (cow_ != nullptr) {
    if (!cow_->release()) {
      cow_ = nullptr;
      memory_ = {};
      return;
    }
    memory_ = cow_->memory_;
    delete cow_;
    cow_ = nullptr;
  }
  if (memory_.deleter != nullptr) memory_.deleter(memory_.context, nbytes_);
  memory_ = {};
}

Storage StorageImpl::lazy_clone() {
  TAEDA_CHECK(allocator_ != nullptr,
              "_lazy_clone: the storage's memory belongs to another library");
  if (cow_ == nullptr) cow_ = new CowBlock(memory_, nbytes_);
  cow_->retain();
  return Storage::adopt(new StorageImpl(cow_, *this));
}

void StorageImpl::materialize() {
  DataPtr fresh = allocator_->allocate(nbytes_);
  std::memcpy(fresh.data, memory_.data, nbytes_);
  free_memory();
  memory_ = fresh;
}

void StorageImpl::resize(size_t nbytes) {
  TAEDA_CHECK(resizable(), "Trying to resize storage that is not resizable");
  DataPtr fresh = allocator_->allocate(nbytes);
  if (fresh.data != nullptr && memory_.data != nullptr) {
    std::memcpy(fresh.data, memory_.data, std::min(nbytes, nbytes_));
  }
  has_shrunk_ |= nbytes < nbytes_;
  replace(fresh, nbytes);
}

void StorageImpl::replace(DataPtr memory, size_t nbytes) {
  free_memory();
  memory_ = memory;
  nbytes_ = nbytes;
}

void StorageImpl::swap(StorageImpl& other) {
  std::swap(memory_, other.memory_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(device_, other.device_);
  std::swap(allocator_, other.allocator_);
  std::swap(cow_, other.cow_);
  std::swap(has_shrunk_, other.has_shrunk_);
}

}  // namespace taeda
