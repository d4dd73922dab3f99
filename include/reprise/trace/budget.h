// A budget: the most bytes that may be live, as a number or as text.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "reprise/export.h"
#include "reprise/trace/trace.h"

namespace reprise {

// The budget that limits nothing.
inline constexpr Bytes no_limit = std::numeric_limits<Bytes>::max();

class Budget;
namespace internal {
[[nodiscard]] REPRISE_EXPORT Budget read_budget(std::string_view text);
}

// Bytes (512_MiB, 1234), an amount with a unit ("2GiB", "1.5 GB"), a share of the peak of a plain step ("0.4x"), or no
// limit ("none", no_limit). Text is read as parse_budget reads it, without blanks around it.
//
// A share is one of a peak that has to be measured first: the session or command that takes a budget says how.
class REPRISE_EXPORT Budget {
 public:
  Budget() = default;  // no limit

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Budget(Number bytes)  // NOLINT(google-explicit-constructor): as a number
      : bytes_(std::in_range<Bytes>(bytes) ? static_cast<Bytes>(bytes) : no_limit) {}

  // Throws BadOption that names the text and what a budget must be.
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view> Budget(const Text& text)  // NOLINT: as text
      : Budget(of_text(text)) {}

  // Returns true if the budget is a share of a peak, which is not known here.
  [[nodiscard]] bool is_share() const { return !share_.empty(); }
  // Returns the bytes. No limit for a share.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  // Returns the bytes where a plain step has this peak: "0.4x" of 10 is 4.
  [[nodiscard]] Bytes bytes_at(Bytes plain_peak) const;
  // Returns the budget as Budget takes it: "1234", "0.4x", "none".
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Budget&, const Budget&) = default;

 private:
  [[nodiscard]] static Budget of_text(std::string_view text);

  Bytes bytes_ = no_limit;
  std::string share_;  // as it was written; empty: bytes
  friend Budget internal::read_budget(std::string_view);
};

}  // namespace reprise
