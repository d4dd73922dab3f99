// fork(), on the LibTorch side. The room store/ and the solver (plan/bounds/highs) have handlers of their own.
//
// A child is a copy of the process with one thread, the one that called fork(). Before that, this thread takes all our
// locks, in the order of arbiter.h: so what they guard is in order in the child, whatever others were doing. None of
// them is held for long: no operator, no planning, no file and no function of the user's runs under one. The thread
// cannot hold one already, for the same reason.
//
// In the child all of it is usable:
// - sessions are copies, with their traces and plans; an open step of the thread that forked goes on in both processes;
// - steps of other threads are not open any more. What they had recorded stays in memory, and can be evicted;
// - planning begins anew with the jobs that were there (planning_queue.h);
// - bytes that another thread had reserved and not yet allocated stay counted.
//
// The handlers of a library that was there first run while our locks are held, and must not wait for a thread that
// allocates tensors. That is why ours are registered as early as can be: when the library is loaded.
//
// vfork(), posix_spawn() and a bare clone() call no handlers: such a child may only call exec or _exit.
#pragma once

namespace reprise::internal {

// Once in a process.
void install_fork_handlers();

}  // namespace reprise::internal
