#pragma once

#include "reprise/chain/schedule.h"

namespace reprise::python {

// A schedule, which several chains may have.
struct SharedSchedule {
  SchedulePointer pointer;
};

}  // namespace reprise::python
