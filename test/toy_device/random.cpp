// Generators, and what draws from them: the words of a device are those that
// the CPU draws from the same seed, in an order of its own.
#include "toy.h"

#include <c10/core/GeneratorImpl.h>

namespace toy {

namespace {

class ToyGenerator final : public c10::GeneratorImpl {
 public:
  ToyGenerator(int device, uint64_t seed)
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1,
                                  static_cast<c10::DeviceIndex>(device))),
        words_(taeda::make_cpu_generator(seed)) {}

  void manual_seed(uint64_t seed) override { words_->manual_seed(seed); }
  uint64_t initial_seed() const override { return words_->initial_seed(); }
  size_t state_size() const override { return words_->state_size(); }
  void get_state(uint8_t* bytes) const override { words_->get_state(bytes); }
  void set_state(const uint8_t* bytes, size_t size) override {
    words_->set_state(bytes, size);
  }
  at::Generator clone() const override {
    auto* made = new ToyGenerator(device().index, initial_seed());
    made->words_ = words_->clone();
    return at::Generator::adopt(made);
  }
  at::Generator words() const { return words_; }

 private:
  at::Generator words_;
};

// Of the call, or the device's own.
at::Generator words_of(const at::Tensor& self,
                       const std::optional<at::Generator>& given) {
  at::Generator found =
      given && *given ? *given : default_generator(self.device().index());
  TORCH_CHECK(found->device() == self.device(),
              "expected a generator of ",
              self.device(),
              ", got one of ",
              found->device());
  return static_cast<ToyGenerator&>(*found).words();
}

at::Tensor& uniform(at::Tensor& self,
                    double from,
                    double to,
                    std::optional<at::Generator> generator) {
  at::Tensor here = at::empty(self.sizes(), at::TensorOptions(self.dtype()));
  here.uniform_(from, to, words_of(self, generator));
  self.copy_(here);
  return self;
}

at::Tensor& normal(at::Tensor& self,
                   double mean,
                   double std,
                   std::optional<at::Generator> generator) {
  at::Tensor here = at::empty(self.sizes(), at::TensorOptions(self.dtype()));
  here.normal_(mean, std, words_of(self, generator));
  self.copy_(here);
  return self;
}

}  // namespace

at::Generator new_generator(int device) {
  return at::Generator::adopt(
      new ToyGenerator(device, c10::GeneratorImpl::kDefaultSeed));
}
at::Generator default_generator(int device) {
  static at::Generator all[kDevices] = {new_generator(0), new_generator(1)};
  return all[device];
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &normal);
}

}  // namespace toy
