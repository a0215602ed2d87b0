#include <taeda/c10/cuda/device_memory.h>

namespace taeda::cuda {

namespace {

AllocationProperties properties(int device) {
  constexpr int kDescriptor = 1;  // other processes get it as a file's
  AllocationProperties p;
  p.handle_types = kDescriptor;
  p.location.id = device;
  return p;
}

bool can_map() {
  const Driver& d = driver();
  return d.reserve && d.unreserve && d.create && d.release && d.map &&
         d.unmap && d.set_access && d.granularity;
}

}  // namespace

std::unique_ptr<Segment> Segment::growing(Pool& pool,
                                          int device,
                                          size_t capacity,
                                          size_t page) {
  if (!can_map() || attribute_of(device, Attribute::VirtualMemory) == 0) {
    return nullptr;
  }
  AllocationProperties wanted = properties(device);
  size_t granularity = 0;
  constexpr int kMinimum = 0;
  check(driver().granularity(&granularity, &wanted, kMinimum),
        "cuMemGetAllocationGranularity");
  std::unique_ptr<Segment> made(new Segment(pool, device));
  page = rounded_up(page, granularity);
  made->capacity_ = rounded_up(capacity, page);
  if (driver().reserve(&made->base_, made->capacity_, 0, 0, 0) != kSuccess) {
    return nullptr;
  }
  made->page_ = page;
  return made;
}

std::unique_ptr<Segment> Segment::fixed(Pool& pool, int device, size_t size) {
  std::unique_ptr<Segment> made(new Segment(pool, device));
  if (const PlugIn* plug_in = pool.traits.plug_in) {
    void* data = plug_in->allocate(
        static_cast<intptr_t>(size), device, handle_of(pool.stream));
    if (data == nullptr) return nullptr;
    made->base_ = reinterpret_cast<Address>(data);
  } else {
    Result status = driver().allocate(&made->base_, size);
    if (status == kOutOfMemory) return nullptr;
    check(status, "cuMemAlloc");
  }
  made->size_ = made->capacity_ = size;
  return made;
}

Segment::~Segment() {
  if (base_ == 0) return;
  if (grows()) {
    unmap(base_, size_);
    driver().unreserve(base_, capacity_);
  } else if (const PlugIn* plug_in = pool_.traits.plug_in) {
    plug_in->free(reinterpret_cast<void*>(base_),
                  static_cast<intptr_t>(size_),
                  device_,
                  handle_of(pool_.stream));
  } else {
    driver().free(base_);
  }
}

bool Segment::map_page(size_t number) {
  AllocationProperties wanted = properties(device_);
  AllocationHandle handle = 0;
  Result status = driver().create(&handle, page_, &wanted, 0);
  if (status == kOutOfMemory) return false;
  check(status, "cuMemCreate");
  Address at = base_ + number * page_;
  check(driver().map(at, page_, 0, handle, 0), "cuMemMap");
  AccessRights rights;
  rights.location.id = device_;
  check(driver().set_access(at, page_, &rights, 1), "cuMemSetAccess");
  if (number >= pages_.size()) pages_.resize(number + 1);
  pages_[number] = handle;
  return true;
}

bool Segment::map(Address from, size_t bytes) {
  size_t first = (from - base_) / page_;
  for (size_t i = 0; i < bytes / page_; ++i) {
    if (map_page(first + i)) continue;
    unmap(from, i * page_);
    return false;
  }
  return true;
}

size_t Segment::grow(size_t bytes) {
  bytes = grows() ? rounded_up(bytes, page_) : 0;
  if (bytes == 0 || size_ + bytes > capacity_) return 0;
  if (!map(base_ + size_, bytes)) return 0;
  size_ += bytes;
  return bytes;
}

void Segment::unmap(Address from, size_t bytes) {
  size_t first = (from - base_) / page_;
  for (size_t i = first; i < first + bytes / page_; ++i) {
    if (pages_[i] == 0) continue;
    driver().unmap(base_ + i * page_, page_);
    driver().release(std::exchange(pages_[i], 0));
  }
}

std::vector<AllocationHandle> Segment::pages_of(const Block& block) const {
  if (!grows()) return {};
  size_t begin = block.address - base_, end = begin + block.size;
  auto at = pages_.begin();
  return {at + static_cast<ptrdiff_t>(begin / page_),
          at + static_cast<ptrdiff_t>((end + page_ - 1) / page_)};
}

}  // namespace taeda::cuda
