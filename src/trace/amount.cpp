#include "reprise/trace/amount.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "reprise/trace/error.h"
#include "trace/json_text.h"
#include "trace/option_text.h"
#include "trace/printable.h"

namespace reprise {
using namespace internal;
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::size_t most_decimals = 18;

// A decimal number as it was written, without the rounding that a double would bring.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;  // in units of 1 / scale
  std::uint64_t scale = 1;     // a power of ten
};

struct Unit {
  std::string_view name;  // in lower case
  Bytes bytes;
};
constexpr Bytes kibi = 1024, kilo = 1000;
constexpr std::array<Unit, 10> units = {{{"", 1},
                                         {"b", 1},
                                         {"kb", kilo},
                                         {"mb", kilo* kilo},
                                         {"gb", kilo* kilo* kilo},
                                         {"tb", kilo* kilo* kilo* kilo},
                                         {"kib", kibi},
                                         {"mib", kibi* kibi},
                                         {"gib", kibi* kibi* kibi},
                                         {"tib", kibi* kibi* kibi* kibi}}};

// Takes the number off the front of `text`; none if there is none, or one with more digits than we can keep.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t digits = 0;
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1), ++digits) {
    const auto digit = static_cast<std::uint64_t>(text[0] - '0');
    if (number.whole > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return {};
    number.whole = number.whole * 10 + digit;
  }
  if (digits == 0) return {};
  if (text.empty() || text[0] != '.') return number;
  text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  if (length == 0) return {};
  std::string_view decimals = text.substr(0, length);
  text.remove_prefix(length);
  while (decimals.ends_with('0')) decimals.remove_suffix(1);
  if (decimals.size() > most_decimals) return {};
  for (const char digit : decimals) {
    number.fraction = number.fraction * 10 + static_cast<std::uint64_t>(digit - '0');
    number.scale *= 10;
  }
  return number;
}

// floor(number * amount); none if that is more than a trace can have.
std::optional<Bytes> multiply(const Decimal& number, Bytes amount) {
  const auto factor = static_cast<Wide>(amount);
  const Wide product = number.whole * factor + number.fraction * factor / number.scale;
  if (product >= static_cast<Wide>(largest_bytes)) return {};
  return static_cast<Bytes>(product);
}

// The bytes of a text, or what it should have been.
struct Parsed {
  Bytes bytes = 0;
  const char* expected = nullptr;  // null: it is an amount
};

Parsed parse(std::string_view text, std::optional<Bytes> peak, const char* expected) {
  std::string_view rest = text;
  const auto number = take_decimal(rest);
  if (!number) return {0, expected};
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  std::string unit(rest);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::optional<Bytes> one;
  if (peak && unit == "x") one = peak;
  for (const Unit& known : units) {
    if (unit == known.name) one = known.bytes;
  }
  if (!one || (unit.empty() && text.ends_with(' '))) return {0, expected};
  if (unit != "x" && *one == 1 && number->fraction != 0) return {0, "whole bytes"};
  const auto bytes = multiply(*number, *one);
  if (!bytes) return {0, "less than 1024 PiB"};
  return {*bytes};
}

Bytes parse_or_throw(std::string_view text, std::optional<Bytes> peak, const char* expected) {
  const Parsed parsed = parse(text, peak, expected);
  if (!parsed.expected) return parsed.bytes;
  throw BadOption(fmt::format("'{}' is not an amount of bytes: expected {}", printable(text), parsed.expected));
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  return parse_or_throw(text, {}, "a number of bytes such as 1234, 512MiB or 1.5GB");
}

Bytes parse_budget(std::string_view text, Bytes peak) {
  return parse_or_throw(text, peak,
                        "a number of bytes such as 1234, 512MiB or 1.5GB, or a share of the peak such as 0.8x");
}

Bytes internal::read_bytes(std::string_view text) {
  const Parsed parsed = parse(without_blanks(text), {}, "a number of bytes such as 1234, 512MiB or 1.5GB");
  if (parsed.expected) throw BadOption(fmt::format("it must be {}", parsed.expected));
  return parsed.bytes;
}

Budget internal::read_budget(std::string_view text) {
  text = without_blanks(text);
  if (text == "none") return {};
  const bool is_share = text.ends_with('x') || text.ends_with('X');
  const Parsed parsed = parse(text, is_share ? std::optional<Bytes>(1) : std::nullopt,
                              "a number of bytes such as 1234, 512MiB or 1.5GB, a share of the plain peak such as "
                              "0.8x, or none");
  if (parsed.expected) throw BadOption(fmt::format("it must be {}", parsed.expected));
  if (!is_share) return parsed.bytes;
  Budget budget;
  budget.share_ = text;
  return budget;
}

Budget Budget::of_text(std::string_view text) try { return read_budget(text); } catch (const BadOption& error) {
  throw BadOption(fmt::format("[session] option budget is '{}': {}", printable(text), error.what()));
}

Bytes Budget::bytes_at(Bytes plain_peak) const {
  return is_share() ? parse_budget(share_, plain_peak) : bytes_;
}

std::string Budget::text() const {
  return is_share() ? share_ : bytes_ == no_limit ? "none" : std::to_string(bytes_);
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<const char*, 7> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (-kibi < bytes && bytes < kibi) return fmt::format("{} B", bytes);
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  // What would be shown as 1024.00 of one unit is 1.00 of the next.
  for (; std::abs(amount) >= 1023.995 && unit + 1 < names.size(); ++unit) amount /= static_cast<double>(kibi);
  return fmt::format("{:.2f} {}", amount, names[unit]);
}

}  // namespace reprise
