// Errors of a session. After any of them the process, the model, the optimizer and the session go on working: catch the
// error outside the step, change what has to change, and open the next step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/export.h"
#include "reprise/trace/error.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The base of all errors of a session.
class REPRISE_EXPORT SessionError : public Error {
 public:
  using Error::Error;
};

// Thrown if an allocation does not fit the budget and nothing is left to evict: before the first byte over, in the
// thread that allocates.
class REPRISE_EXPORT BudgetError : public SessionError {
 public:
  struct Pinned {
    std::string what;  // "parameters and other bytes", or the operator that made the values
    Bytes bytes = 0;
  };
  struct Facts {
    std::string device = "cpu";  // the device whose bytes these are
    Bytes budget = 0;
    Bytes live = 0;                          // live bytes that cannot be evicted
    Bytes requested = 0;                     // by this allocation
    std::vector<Pinned> pinned;              // the owners of the live bytes, largest first
    Bytes kept_by_policy = 0;                // of the live bytes: those that only the policy keeps
    std::optional<Bytes> smallest_feasible;  // the smallest budget with a proven plan for this trace, if known
    std::optional<Bytes> floor = {};         // no plan for this trace can do with less, if that is known
    std::string floor_set_by = "";           // the moment that sets the floor, and what it needs
    std::string where = "";                  // the operator or the node of backward that was under way
    // Why Session::run did not run the step again under a plan, or that it did in vain; empty: it was not asked to.
    std::string not_repeated = "";
    // What the device's own allocator said, if it is the one that refused, although the bytes fit the budget.
    std::string refused = "";
    // What to do as long as no plan is known, in the words of the program's language; empty: those of C++.
    std::string advice = "";
    bool cpu_alone = true;  // false if the session limits bytes of an accelerator, beside this device or as this device
  };
  explicit BudgetError(Facts);
  [[nodiscard]] const Facts& facts() const { return facts_; }
  // Returns the smallest budget that this allocation would have fit.
  [[nodiscard]] Bytes need() const { return facts_.live + facts_.requested; }

 private:
  Facts facts_;
};

// Thrown if Verify finds that a value that was recomputed, or came back from a disk or host memory, is not the one that
// was evicted. One that was recomputed is kept from then on.
class REPRISE_EXPORT MismatchError : public SessionError {
 public:
  struct Facts {
    std::string op = "";    // the operator that made the value; empty: the value is a gradient that was offloaded
    Id operator_index = 0;  // its position in the step
    Id value = 0;
    std::size_t block = 0;           // the first block of 64 KiB that differs
    std::size_t blocks = 0;          // of the value
    std::string draws = "";          // how its random numbers differed, if they did
    std::string reloaded_from = "";  // "disk" or "host"; empty: it was recomputed
  };
  explicit MismatchError(Facts);
  [[nodiscard]] const Facts& facts() const { return facts_; }

 private:
  Facts facts_;
};

// Thrown if a tensor that a recipe needs was written while nobody recorded: by another thread, between steps, or after
// a function that is checkpointed had returned; or if the program wrote it, and there was no room for a copy of its old
// contents; or if the program freed its memory, as fully_shard does, and did not bring the same contents back in time.
class REPRISE_EXPORT ChangedInputError : public SessionError {
 public:
  struct Facts {
    std::string op;
    Id operator_index = 0;
    int argument = 0;
    std::string argument_name;
    bool no_room = false;  // true if there was no room for a copy
    bool freed = false;    // true if its memory was freed, and the same contents are not there again
  };
  explicit ChangedInputError(Facts);
  [[nodiscard]] const Facts& facts() const { return facts_; }

 private:
  Facts facts_;
};

}  // namespace reprise
