// The bytes that tensors are views of.
#pragma once

#include <taeda/c10/core/allocator.h>
#include <taeda/c10/util/intrusive_ptr.h>

#include <cstdint>

namespace taeda {

// Several storages that share one block until one of them is written.
class CowBlock;

class TAEDA_API StorageImpl final : public IntrusiveTarget {
 public:
  StorageImpl(size_t nbytes, Allocator& allocator, Device device);
  // Memory that somebody else owns; resizable only when an allocator is given.
  StorageImpl(DataPtr memory, size_t nbytes, Device device);
  ~StorageImpl() override;

  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool resizable() const { return allocator_ != nullptr && !lent_; }
  // Others use the memory from now on: it stays where it is.
  void lend() { lent_ = true; }
  const void* data() const { return memory_.data; }
  void* mutable_data() {
    if (TAEDA_UNLIKELY(cow_ != nullptr)) materialize();
    return memory_.data;
  }
  bool is_cow() const { return cow_ != nullptr; }
  // Whether resize() ever took bytes away: then a tensor may reach too far.
  bool has_shrunk() const { return has_shrunk_; }
  // A storage with the same bytes, copied when either side is first written.
  IntrusivePtr<StorageImpl> lazy_clone();
  // Keeps the bytes that both sizes have in common.
  void resize(size_t nbytes);
  // Swaps in other memory (set_data, loading in place).
  void replace(DataPtr memory, size_t nbytes);
  void swap(StorageImpl& other);

 private:
  friend class CowBlock;
  StorageImpl(CowBlock* cow, const StorageImpl& like);
  void free_memory();
  void materialize();

  DataPtr memory_;
  size_t nbytes_ = 0;
  Device device_;
  Allocator* allocator_ = nullptr;
  CowBlock* cow_ = nullptr;
  bool has_shrunk_ = false;
  bool lent_ = false;
};

using Storage = IntrusivePtr<StorageImpl>;

}  // namespace taeda
