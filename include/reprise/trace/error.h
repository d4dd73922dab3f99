// What Reprise throws. One base, so that a caller can catch everything; a type of its own where a caller can do
// something about it.
#pragma once

#include <stdexcept>
#include <string>

namespace reprise {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file, a trace or a plan that contradicts itself: names the file (if it came from one), the place and the reason.
class BadInput : public Error {
 public:
  BadInput(std::string file, std::string place, std::string reason);
  // The same error with the file's name put in front.
  [[nodiscard]] BadInput in_file(std::string file) const { return {std::move(file), place_, reason_}; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string file_, place_, reason_;
};

// An option with a value that it cannot have: names the option, the value and the constraint.
class BadOption : public Error {
 public:
  using Error::Error;
};

}  // namespace reprise
