#include "torch/api/forks.h"

#include <pthread.h>

#include "torch/api/checkpoint_places.h"
#include "torch/hooks/automatic.h"
#include "torch/hooks/steps.h"
#include "torch/memory/arbiter.h"
#include "torch/memory/counted_device.h"
#include "torch/memory/device_headers.h"
#include "torch/memory/heap.h"
#include "torch/memory/interception.h"
#include "torch/offload/value_tiers.h"
#include "torch/plans/planning_queue.h"
#include "torch/recipes/operator_table.h"
#include "torch/values/open_steps.h"
#include "torch/values/recordings.h"

namespace reprise::internal {
namespace {

// The first three are held by those who wait for the arbiter, never the other way round; the last five are waited for
// by those who hold it.
void before() {
  Interception::lock_for_fork();
  automatic::lock_for_fork();
  checkpoint_places_mutex.lock();
  Arbiter::lock_for_fork();
  OperatorTable::of_process().lock();
  Planning::of_process().lock();
  ValueTiers::of_process().lock_for_fork();
  device_headers::lock_for_fork();
  heap::lock_for_fork();
}

void in_parent() {
  heap::unlock_after_fork();
  device_headers::unlock_after_fork();
  ValueTiers::of_process().unlock_in_parent();
  Planning::of_process().unlock();
  OperatorTable::of_process().unlock();
  Arbiter::unlock_after_fork();
  checkpoint_places_mutex.unlock();
  automatic::unlock_after_fork();
  Interception::unlock_after_fork();
}

void in_child() {
  heap::unlock_after_fork();
  device_headers::unlock_after_fork();
  ValueTiers::of_process().unlock_in_child();
  Planning::of_process().renew();
  OperatorTable::of_process().unlock();
  keep_step_of_this_thread();
  Arbiter::unlock_after_fork();
  checkpoint_places_mutex.unlock();
  automatic::unlock_after_fork();
  Interception::unlock_after_fork();
}

}  // namespace

void install_fork_handlers() {
  before();  // what is made when first used is there from now on
  (void)CountedDevices::of_process();
  (void)Recordings::of_process();
  (void)OpenSteps::of_process();
  in_parent();
  pthread_atfork(before, in_parent, in_child);
}

}  // namespace reprise::internal
