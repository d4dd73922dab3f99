// Devices, streams and events of the simulated accelerator as LibTorch's guards see them.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "accelerator/device_allocator.h"
#include "accelerator/device_streams.h"
#include "accelerator/registration.h"

namespace reprise::testing::accelerator {
namespace {

// What LibTorch's void* of an event points to.
using Event = std::shared_ptr<Mark>;
Event& event_of(void* event) {
  return *static_cast<Event*>(event);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return accelerator::type; }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }

  c10::Device getDevice() const override { return device(current_device()); }
  c10::Device exchangeDevice(c10::Device to) const override { return device(exchange_device(to.index())); }
  void setDevice(c10::Device to) const override { exchange_device(to.index()); }
  void uncheckedSetDevice(c10::Device to) const noexcept override { exchange_device(to.index()); }

  c10::Stream getStream(c10::Device of) const override { return current_stream(of.index()); }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return c10::Stream(c10::Stream::DEFAULT, device(of.index() < 0 ? current_device() : of.index()));
  }
  c10::Stream getNewStream(c10::Device of, int) const override { return new_stream(of.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override { return pooled_stream(of.index()); }
  c10::Stream exchangeStream(c10::Stream to) const override { return exchange_stream(to); }
  bool queryStream(const c10::Stream& stream) const override {
    return stream_of(stream).done(stream_of(stream).last());
  }
  void synchronizeStream(const c10::Stream& stream) const override { stream_of(stream).wait("synchronizeStream"); }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    for (DeviceStream* stream : all_streams())
      if (stream->id.device_index() == index) stream->wait("synchronizeDevice");
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    event_of(*event) = record_mark(stream_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) wait_for_mark(stream_of(stream), event_of(event));
  }
  bool queryEvent(void* event) const override { return event == nullptr || event_of(event)->reached(); }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) wait_for_mark(*event_of(event), "synchronizeEvent");
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    const std::chrono::duration<double, std::milli> elapsed = event_of(to)->wait() - event_of(from)->wait();
    return elapsed.count();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    record_stream(data, stream);
  }

 private:
  static c10::Device device(c10::DeviceIndex index) { return {accelerator::type, index}; }
};

}  // namespace

void register_guard() {
  static const c10::impl::DeviceGuardImplRegistrar registrar(type, new Guard);
}

}  // namespace reprise::testing::accelerator
