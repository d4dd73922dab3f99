// The errors that Reprise throws. They have one base, so that a caller can catch everything, and a type of their own
// where a caller can do something about them.
#pragma once

#include <stdexcept>
#include <string>

#include "reprise/export.h"

namespace reprise {

// What an error says may name what comes out of files: what() is one line, with '?' for what a terminal would act on
// (control characters, characters that change the direction of text, bytes that are not UTF-8).
class REPRISE_EXPORT Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text);
};

// Thrown for a file, a trace or a plan that contradicts itself. Names the file (if it came from one), the place and the
// reason, which are here as they were given.
class REPRISE_EXPORT BadInput : public Error {
 public:
  BadInput(std::string file, std::string place, std::string reason);
  // Returns the same error with the file's name in front.
  [[nodiscard]] BadInput in_file(std::string file) const { return {std::move(file), place_, reason_}; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string file_, place_, reason_;
};

// Thrown for an option with a value that it cannot have. Names the option, the value and the constraint.
class REPRISE_EXPORT BadOption : public Error {
 public:
  using Error::Error;
};

}  // namespace reprise
