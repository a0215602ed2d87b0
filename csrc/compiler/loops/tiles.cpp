#include <taeda/csrc/compiler/loops/tiles.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace taeda::compiler::loops {

namespace {

// What records with one number (`alpha` of `add`) get for it, by type.
struct Ones {
  alignas(16) std::byte of[kNumCompute][kScalarSlot] = {};
  Ones() {
    double one = 1;
    for (int t = 0; t <= static_cast<int>(Compute::F64); ++t) {
      auto to = type_of(static_cast<Compute>(t));
      convert_function(kDouble, to)(&one, 0, of[t], 0, 1);
    }
  }
};

const void* one_of(Compute type) {
  static const Ones ones;
  return ones.of[static_cast<int>(type)];
}

int64_t size_of(ScalarType t) { return static_cast<int64_t>(element_size(t)); }
int64_t size_of(Compute t) { return size_of(type_of(t)); }

template <class T>
void gather(T* to, const T* from, const int64_t* places, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[places[i]];
}

template <class T>
void each(const expr::Function& f,
          T (*call)(const T*),
          void* const* slots,
          int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T args[expr::kMaxArity] = {};
    for (int k = 0; k < f.arity; ++k) {
      args[k] = static_cast<const T*>(slots[k + 1])[i];
    }
    static_cast<T*>(slots[0])[i] = call(args);
  }
}

}  // namespace

// One thread's points.
class TileRun {
 public:
  TileRun(const TileProgram& p, void* const* buffers)
      : p_(p),
        s_(p.schedule_),
        buffers_(buffers),
        memory_(new std::byte[static_cast<size_t>(p.memory_)]),
        at_(p.program_.sizes().size(), 0),
        places_(static_cast<size_t>(p.program_.count()), nullptr) {
    length_ = s_.vector_size(p.program_).plain();
    for (const TileSlot& s : p.slots_) {
      addresses_.push_back(s.at < 0 ? nullptr : memory_.get() + s.at);
    }
    for (const TileProgram::Constant& c : p.constants_) {
      ScalarType t = type_of(slot(c.slot).type);
      convert_function(t, t)(c.bytes.data(),
                             0,
                             address_of(c.slot),
                             size_of(t),
                             std::min(kTile, length_));
    }
  }

  void point(int64_t o) {
    find_outer(o);
    find_places();
    for (column_ = 0; column_ < length_; column_ += kTile) {
      int64_t n = std::min(kTile, length_ - column_);
      for (size_t i = 0; i < p_.slots_.size(); ++i) {
        Var v = p_.slots_[i].memory;
        if (v >= 0) addresses_[i] = place(v).first;
      }
      for (const TileStep& step : p_.steps_) run(step, n);
    }
  }

 private:
  const TileSlot& slot(int i) const {
    return p_.slots_[static_cast<size_t>(i)];
  }
  void* address_of(int i) const { return addresses_[static_cast<size_t>(i)]; }

  void find_outer(int64_t o) {
    if (s_.block > 0) {
      int64_t size = p_.program_.sizes()[s_.vector].plain();
      int64_t blocks = (size + s_.block - 1) / s_.block;
      first_ = o % blocks * s_.block;
      o /= blocks;
      length_ = std::min(s_.block, size - first_);
    }
    for (size_t k = s_.outer.size(); k-- > 0;) {
      int64_t size = p_.program_.sizes()[s_.outer[k]].plain();
      at_[s_.outer[k]] = o % size;
      o /= size;
    }
  }

  const Buffer& buffer_of(const Instruction& i) const {
    return p_.program_.buffers()[static_cast<size_t>(i.buffer)];
  }

  // Where each access begins at the outer point.
  void find_places() {
    for (Var v = 0; v < p_.program_.count(); ++v) {
      const Instruction& i = p_.program_[v];
      if (i.buffer < 0) continue;
      int64_t element = i.place.offset.plain();
      for (size_t a : s_.outer) {
        element += at_[a] * i.place.strides[a].plain();
      }
      if (s_.block > 0) {
        element += first_ * i.place.strides[s_.vector].plain();
      }
      places_[static_cast<size_t>(v)] =
          static_cast<std::byte*>(buffers_[i.buffer]) +
          element * size_of(buffer_of(i).dtype);
    }
  }

  // The tile's first element, and the bytes from one to the next.
  std::pair<std::byte*, int64_t> place(Var v) const {
    const Instruction& i = p_.program_[v];
    int64_t stride = 0;
    if (s_.vector != Schedule::kNone) {
      int64_t elements = i.place.strides[s_.vector].plain();
      stride = elements * size_of(buffer_of(i).dtype);
    }
    return {places_[static_cast<size_t>(v)] + column_ * stride, stride};
  }

  void run(const TileStep& step, int64_t n) {
    void* slots[1 + expr::kMaxArity];
    slots[0] = step.out >= 0 ? address_of(step.out) : nullptr;
    for (int k = 0; k < step.operands; ++k) {
      slots[k + 1] = address_of(step.in[static_cast<size_t>(k)]);
    }
    auto width = [&](int i) { return size_of(slot(i).type); };
    switch (step.kind) {
      case TileStep::kLoop:
        return step.loop(slots, one_of(slot(step.in[0]).type), n);
      case TileStep::kConvert:
        return step.convert(
            slots[1], width(step.in[0]), slots[0], width(step.out), n);
      case TileStep::kLoad: {
        auto [from, stride] = place(step.var);
        return step.convert(from, stride, slots[0], width(step.out), n);
      }
      case TileStep::kStore: {
        auto [to, stride] = place(step.var);
        return step.convert(slots[1], width(step.in[0]), to, stride, n);
      }
      case TileStep::kGather:
        return take(step, slots, n);
      case TileStep::kIndex:
        return count(step, static_cast<int64_t*>(slots[0]), n);
      case TileStep::kEach:
        if (slot(step.in[0]).type == Compute::I64) {
          return each(*step.each, step.each->on_integers, slots, n);
        }
        return each(*step.each, step.each->on_reals, slots, n);
    }
  }

  void take(const TileStep& step, void* const* slots, int64_t n) const {
    const void* from = places_[static_cast<size_t>(step.var)];
    auto* where = static_cast<const int64_t*>(slots[1]);
    auto by = [&](auto word) {
      using T = decltype(word);
      gather(static_cast<T*>(slots[0]), static_cast<const T*>(from), where, n);
    };
    switch (size_of(step.dtype)) {
      case 1:
        return by(uint8_t{});
      case 2:
        return by(uint16_t{});
      case 4:
        return by(uint32_t{});
      default:
        return by(uint64_t{});
    }
  }

  void count(const TileStep& step, int64_t* to, int64_t n) const {
    size_t axis = p_.program_[step.var].axis;
    bool runs = axis == s_.vector;
    int64_t first = runs ? first_ + column_ : at_[axis];
    for (int64_t i = 0; i < n; ++i) to[i] = first + (runs ? i : 0);
  }

  const TileProgram& p_;
  const Schedule& s_;
  void* const* buffers_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<void*> addresses_;    // by slot
  std::vector<int64_t> at_;         // by axis: the index of the point
  std::vector<std::byte*> places_;  // by instruction
  int64_t length_ = 1;              // of the vector loop
  int64_t first_ = 0;               // of the block of the vector axis
  int64_t column_ = 0;              // of the tile in the vector loop
};

void TileProgram::run(void* const* buffers, int64_t begin, int64_t end) const {
  TileRun run(*this, buffers);
  for (int64_t o = begin; o < end; ++o) run.point(o);
}

}  // namespace taeda::compiler::loops
