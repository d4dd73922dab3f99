// The passes that a session knows: so many that steps whose shapes take turns are met again, and no more than fit a
// bound in number and bytes, however many different ones there are. The least used goes first. The bound in bytes is
// reached only where it pays: an eighth of it is enough until one comes that was known once and had to go.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "torch/plans/recorded_pass.h"

namespace reprise::internal {

class RecordedPassCache {
 public:
  // A new one. Others may go for it, never the one before it.
  void add(std::shared_ptr<RecordedPass>, Bytes most_bytes);
  // Others may have got plans since: with them they are to take no more than this.
  void keep_within(Bytes most_bytes);
  // A step has followed it to its end.
  void met_again(RecordedPass&);

  [[nodiscard]] const std::vector<std::shared_ptr<RecordedPass>>& all() const { return all_; }  // the newest last
  [[nodiscard]] std::shared_ptr<RecordedPass> of(const Recipes&) const;
  // The newest with a plan whose moments are the same but for their sizes; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<RecordedPass> find_similar(const RecordedPass&) const;
  // How many new ones came since one was met again.
  [[nodiscard]] int new_in_a_row() const { return new_in_a_row_; }

 private:
  [[nodiscard]] bool hardly_any_comes_again() const;
  void look_for(const RecordedPass&);
  Bytes let_one_go();

  std::vector<std::shared_ptr<RecordedPass>> all_;
  std::deque<std::uint64_t> gone_;        // hashes of those that had to go, the newest last
  static constexpr Bytes least_part = 8;  // of the bytes that they may take: one by this number
  Bytes part_ = least_part;
  std::uint32_t priority_ = 0;
  int new_in_a_row_ = 0;
};

}  // namespace reprise::internal
