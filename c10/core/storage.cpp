#include <taeda/c10/core/kept_forms.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace taeda {

// What a storage knows beside its bytes: storages that share them until one is
// written, forms (Note [Kept forms]), whether others know the address.
class CowBlock {
 public:
  CowBlock(DataPtr memory, size_t nbytes) : memory_(memory), nbytes_(nbytes) {}
  void retain() { users_.fetch_add(1, std::memory_order_relaxed); }
  // True for the last user, who then owns the memory.
  bool release() { return users_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool is_shared() const { return users_.load(std::memory_order_acquire) > 1; }

  struct Entry {
    FormKey key;
    KeptForm form;
  };
  Entry* find(const FormKey& key) {
    auto at = std::find_if(forms_.begin(), forms_.end(), [&](const Entry& e) {
      return e.key == key;
    });
    return at == forms_.end() ? nullptr : &*at;
  }

  // The block of a storage whose forms may be kept; null for others. Under the
  // lock.
  static CowBlock* of(StorageImpl& s) {
    if (s.allocator_ == nullptr || s.memory_.data == nullptr) return nullptr;
    if (s.cow_ == nullptr) s.cow_ = new CowBlock(s.memory_, s.nbytes_);
    return s.cow_;
  }
  // Before a write. True where the bytes are the storage's alone.
  static bool gives_up_forms(StorageImpl& s) {
    const std::lock_guard<std::mutex> lock(mutex());
    CowBlock* block = s.cow_;
    if (block == nullptr) return true;
    if (block->is_shared()) return false;
    block->forms_.clear();
    if (!block->shown_) {
      s.cow_ = nullptr;
      delete block;
    }
    return true;
  }
  // Never destroyed: threads may still compute at exit.
  static std::mutex& mutex() {
    static auto& instance = *new std::mutex;
    return instance;
  }

  DataPtr memory_;
  size_t nbytes_;
  std::vector<Entry> forms_;
  bool shown_ = false;

 private:
  std::atomic<int64_t> users_{1};
};

namespace {

// Whether the memory lies there: the storages of stand-ins have a device and
// memory of the CPU.
bool is_elsewhere(Device device, const Allocator& allocator) {
  return TAEDA_UNLIKELY(device.is_cuda() ||
                        device.type == DeviceType::PrivateUse1) &&
         &allocator != &cpu_allocator();
}

// On the storage's device, which need not be the thread's current one.
DataPtr allocate_on(Device device, Allocator& allocator, size_t nbytes) {
  if (!is_elsewhere(device, allocator)) return allocator.allocate(nbytes);
  CurrentDevice guard(device);
  return allocator.allocate(nbytes);
}

void copy_bytes(Device device,
                const Allocator& allocator,
                void* to,
                const void* from,
                size_t nbytes) {
  if (!is_elsewhere(device, allocator)) {
    std::memcpy(to, from, nbytes);
    return;
  }
  CurrentDevice guard(device);
  if (device.is_cuda()) {
    gpu().copy_bytes(to, from, nbytes);
  } else {
    program_device().copy_bytes(to, from, nbytes);
  }
}

}  // namespace

FormAnswer find_form(StorageImpl& storage, const FormKey& key) {
  constexpr size_t kMostForms = 8;
  const std::lock_guard<std::mutex> lock(CowBlock::mutex());
  CowBlock* block = CowBlock::of(storage);
  if (block == nullptr || block->shown_) return {};
  if (const CowBlock::Entry* known = block->find(key)) {
    return {known->form, known->form == nullptr};
  }
  if (block->forms_.size() < kMostForms) block->forms_.push_back({key, {}});
  return {};
}

void keep_form(StorageImpl& storage, const FormKey& key, KeptForm form) {
  const std::lock_guard<std::mutex> lock(CowBlock::mutex());
  CowBlock* block = CowBlock::of(storage);
  if (block == nullptr) return;
  CowBlock::Entry* wanted = block->find(key);
  if (wanted != nullptr) wanted->form = std::move(form);
}

void show_memory(StorageImpl& storage) {
  const std::lock_guard<std::mutex> lock(CowBlock::mutex());
  CowBlock* block = CowBlock::of(storage);
  if (block == nullptr) return;
  block->shown_ = true;
  block->forms_.clear();
}

StorageImpl::StorageImpl(size_t nbytes, Allocator& allocator, Device device)
    : memory_(allocate_on(device, allocator, nbytes)),
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
  const std::lock_guard<std::mutex> lock(CowBlock::mutex());
  CowBlock* block = CowBlock::of(*this);
  // Who knows the address would see one of both written.
  if (block == nullptr || block->shown_) {
    auto copy = make_intrusive<StorageImpl>(nbytes_, *allocator_, device_);
    if (nbytes_ > 0) {
      copy_bytes(
          device_, *allocator_, copy->mutable_data(), memory_.data, nbytes_);
    }
    return copy;
  }
  block->retain();
  return Storage::adopt(new StorageImpl(cow_, *this));
}

void StorageImpl::materialize() {
  if (CowBlock::gives_up_forms(*this)) return;
  DataPtr fresh = allocate_on(device_, *allocator_, nbytes_);
  copy_bytes(device_, *allocator_, fresh.data, memory_.data, nbytes_);
  free_memory();
  memory_ = fresh;
}

void StorageImpl::resize(size_t nbytes) {
  TAEDA_CHECK(resizable(), "Trying to resize storage that is not resizable");
  DataPtr fresh = allocate_on(device_, *allocator_, nbytes);
  if (fresh.data != nullptr && memory_.data != nullptr) {
    copy_bytes(device_,
               *allocator_,
               fresh.data,
               memory_.data,
               std::min(nbytes, nbytes_));
  }
  has_shrunk_ |= nbytes < nbytes_;
  free_memory();
  memory_ = fresh;
  nbytes_ = nbytes;
}

// Memory of somebody else, who may write to it.
void StorageImpl::replace(DataPtr memory, size_t nbytes) {
  free_memory();
  memory_ = memory;
  nbytes_ = nbytes;
  show_memory(*this);
}

void StorageImpl::swap(StorageImpl& other) {
  std::swap(memory_, other.memory_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(device_, other.device_);
  std::swap(allocator_, other.allocator_);
  std::swap(cow_, other.cow_);
  std::swap(has_shrunk_, other.has_shrunk_);
  std::swap(lent_, other.lent_);
}

}  // namespace taeda
