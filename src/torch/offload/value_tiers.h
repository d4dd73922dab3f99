// The tiers of all sessions in the process. Any thread, with or without the arbiter's lock unless it says otherwise.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace reprise::internal {

class TransferTier;

class ValueTiers {
 public:
  // Returns the one of the process: never destroyed, because tensors may be freed after all static objects are gone.
  [[nodiscard]] static ValueTiers& of_process();

  void add(const std::shared_ptr<TransferTier>&);

  // Frees memory that has been put into any of them; waits for the next put if there is none. Returns false if nothing
  // is being put. Not under the arbiter's lock.
  [[nodiscard]] bool finish_next_put();
  // Gives up what was got ahead of time and nobody has asked for. Returns false if there is none.
  [[nodiscard]] bool give_up_fetched();

  // The process ends: no files are left.
  void end() noexcept;

  // fork() copies only the thread that calls it: no other may be in here then.
  void lock_for_fork();
  void unlock_in_parent();
  void unlock_in_child();

 private:
  [[nodiscard]] std::vector<std::shared_ptr<TransferTier>> present();
  [[nodiscard]] std::vector<std::shared_ptr<TransferTier>> present_with_lock() const;
  void unlock_after_fork(void (TransferTier::*)());

  std::mutex mutex_;
  std::vector<std::weak_ptr<TransferTier>> tiers_;
  bool announced_ = false;  // the end of the process will be told to us
  std::vector<std::shared_ptr<TransferTier>> at_fork_;
};

}  // namespace reprise::internal
