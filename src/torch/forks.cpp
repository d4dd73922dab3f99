#include "torch/forks.h"

#include <pthread.h>

#include "torch/arbiter.h"
#include "torch/automatic.h"
#include "torch/far_memory.h"
#include "torch/heap.h"
#include "torch/interception.h"
#include "torch/operators.h"
#include "torch/planning.h"
#include "torch/process.h"
#include "torch/sequences.h"
#include "torch/steps.h"
#include "torch/value_tiers.h"

namespace reprise::internal {
namespace {

// The first three are held by those who wait for the arbiter, never the other way round; the last five are waited for
// by those who hold it.
void before() {
  Interception::lock_for_fork();
  automatic::lock_for_fork();
  sequences_mutex.lock();
  Arbiter::lock_for_fork();
  process().operators().lock();
  process().planning().lock();
  process().tiers().lock_for_fork();
  far::lock_for_fork();
  heap::lock_for_fork();
}

void in_parent() {
  heap::unlock_after_fork();
  far::unlock_after_fork();
  process().tiers().unlock_in_parent();
  process().planning().unlock();
  process().operators().unlock();
  Arbiter::unlock_after_fork();
  sequences_mutex.unlock();
  automatic::unlock_after_fork();
  Interception::unlock_after_fork();
}

void in_child() {
  heap::unlock_after_fork();
  far::unlock_after_fork();
  process().tiers().unlock_in_child();
  process().planning().renew();
  process().operators().unlock();
  keep_step_of_this_thread();
  Arbiter::unlock_after_fork();
  sequences_mutex.unlock();
  automatic::unlock_after_fork();
  Interception::unlock_after_fork();
}

}  // namespace

void install_fork_handlers() {
  before();  // what is made when first used is there from now on
  in_parent();
  pthread_atfork(before, in_parent, in_child);
}

}  // namespace reprise::internal
