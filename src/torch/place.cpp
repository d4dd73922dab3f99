#include "torch/place.h"

namespace reprise::internal {

Place::Place(c10::Device device, Meter& meter) : device_(device), name_(device.str()), meter_(meter) {}

bool Place::in_charge() const {
  return meter::in_charge();
}

void Place::limit(Bytes limit, Bytes reserve) const {
  meter::limit(limit, reserve);
}

}  // namespace reprise::internal
