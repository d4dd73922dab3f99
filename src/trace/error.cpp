#include "reprise/trace/error.h"

#include "trace/printable.h"

namespace reprise {
namespace {
std::string sentence(const std::string& file, const std::string& place, const std::string& reason) {
  std::string text = file;
  if (!place.empty()) text += (text.empty() ? "" : ": ") + place;
  return text + (text.empty() ? "" : ": ") + reason;
}
}  // namespace

Error::Error(const std::string& text) : std::runtime_error(internal::printable_line(text)) {}

BadInput::BadInput(std::string file, std::string place, std::string reason)
    : Error(sentence(file, place, reason)),
      file_(std::move(file)),
      place_(std::move(place)),
      reason_(std::move(reason)) {}

}  // namespace reprise
