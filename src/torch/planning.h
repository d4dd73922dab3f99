// Planning in the background: one thread for the process, jobs one after the other.
#pragma once

#include <atomic>
#include <functional>

namespace reprise {

// Done on the planning thread, in order. The job keeps alive what it needs.
void plan_later(std::function<void(const std::atomic<bool>& cancelled)> job);

// Until all jobs that were there are done.
void wait_for_planning();

}  // namespace reprise
