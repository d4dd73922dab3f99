#include "training_device.h"

#include <time.h>

#include <utility>

#include "reprise/trace/error.h"
#include "torch/libtorch/libtorch.h"
#include "torch/memory/counted_device.h"

namespace reprise::benchmarks {
using namespace internal;
namespace {

constinit std::pair<const char*, TakeDevice> offered{nullptr, nullptr};
constinit const CountedDevice* chosen = nullptr;  // nullptr: the CPU

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

c10::Event now_there() {
  const c10::Device device = device_of_training().device();
  c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind does not know the time
  event.record(libtorch::current_stream_of_accelerator(device));
  return event;
}

}  // namespace

void train_on(const std::string& device) {
  if (device == "cpu") return;
  if (!offered.first || device != offered.first) throw BadOption("[bench] this program has no device '" + device + "'");
  chosen = &CountedDevices::of_process().at(offered.second().str());
}

void offer_device(const char* name, TakeDevice take) {
  offered = {name, take};
}

const CountedDevice& device_of_training() {
  return chosen ? *chosen : CountedDevices::of_process().cpu();
}

TrainingClock::TrainingClock() {
  if (!device_of_training().is_cpu()) begun_.emplace(now_there());
  start_ = cpu_seconds();
}

double TrainingClock::seconds() {
  if (!begun_) return cpu_seconds() - start_;
  c10::Event ended = now_there();
  ended.synchronize();
  return 1e-3 * begun_->elapsedTime(ended);
}

}  // namespace reprise::benchmarks
