#include <taeda/c10/cuda/segment.h>

namespace taeda::cuda {

namespace {

AllocationProperties properties(int device) {
  AllocationProperties p;
  p.location.id = device;
  return p;
}

bool can_map() {
  const Driver& d = driver();
  return d.reserve && d.unreserve && d.create && d.release && d.map &&
         d.unmap && d.set_access && d.granularity;
}

size_t rounded_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
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
  Result status = driver().allocate(&made->base_, size);
  if (status == kOutOfMemory) return nullptr;
  check(status, "cuMemAlloc");
  made->size_ = made->capacity_ = size;
  return made;
}

Segment::~Segment() {
  if (base_ == 0) return;
  if (!grows()) {
    driver().free(base_);
    return;
  }
  shrink(0);
  driver().unreserve(base_, capacity_);
}

bool Segment::map_page() {
  if (size_ + page_ > capacity_) return false;
  AllocationProperties wanted = properties(device_);
  AllocationHandle handle = 0;
  Result status = driver().create(&handle, page_, &wanted, 0);
  if (status == kOutOfMemory) return false;
  check(status, "cuMemCreate");
  Address at = base_ + size_;
  check(driver().map(at, page_, 0, handle, 0), "cuMemMap");
  AccessRights rights;
  rights.location.id = device_;
  check(driver().set_access(at, page_, &rights, 1), "cuMemSetAccess");
  pages_.push_back(handle);
  size_ += page_;
  return true;
}

size_t Segment::grow(size_t bytes) {
  if (!grows()) return 0;
  size_t before = size_;
  while (size_ - before < bytes) {
    if (!map_page()) {
      shrink(before);
      return 0;
    }
  }
  return size_ - before;
}

size_t Segment::shrink(size_t kept) {
  size_t before = size_;
  while (grows() && size_ >= kept + page_) {
    size_ -= page_;
    driver().unmap(base_ + size_, page_);
    driver().release(pages_.back());
    pages_.pop_back();
  }
  return before - size_;
}

}  // namespace taeda::cuda
