#include "fields.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "numpy_arrays.h"
#include "reprise/trace/error.h"

namespace py = pybind11;

namespace reprise::python {
namespace {

constexpr std::size_t dimensions = 65;  // of an array of fields
// Every field begins with a new block of the codecs that work in blocks, so that each is rounded as if it were alone.
constexpr std::size_t elements_of_block = 64;
constexpr std::size_t length_bytes = sizeof(std::uint64_t);

std::size_t rounded_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

std::uint64_t last_number(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  if (bytes.size() < length_bytes) throw Error("[chain] a state has fewer bytes than it should have");
  std::memcpy(&number, bytes.data() + bytes.size() - length_bytes, length_bytes);
  return number;
}

// The part of the array behind its fields: the description, zeros up to a whole element, and how many bytes these are.
std::span<const std::byte> end_of(std::span<const std::byte> bytes) {
  const std::uint64_t length = last_number(bytes);
  if (length < length_bytes || length > bytes.size()) throw Error("[chain] a state is not what was stored");
  return bytes.last(length);
}

class FieldsCodec final : public Codec {
 public:
  explicit FieldsCodec(const Codec& codec) : inside(codec), name_(std::string(codec.name()) + ", by fields") {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return inside.summary(); }
  bool exact() const override { return inside.exact(); }

  // What is coded has its end behind it, and the length of that.
  std::optional<std::size_t> room(const ArrayView& array) const override {
    const auto [fields, end] = parts_of(array);
    const auto bytes = inside.room(fields);
    return bytes ? std::optional(*bytes + end.size() + length_bytes) : std::nullopt;
  }
  std::optional<std::size_t> encode(const ArrayView& array, std::span<std::byte> room) const override {
    const auto [fields, end] = parts_of(array);
    const auto bytes = inside.encode(fields, room.first(room.size() - end.size() - length_bytes));
    if (!bytes) return std::nullopt;
    const std::uint64_t length = end.size();
    std::copy(end.begin(), end.end(), room.begin() + static_cast<std::ptrdiff_t>(*bytes));
    std::memcpy(room.data() + *bytes + end.size(), &length, length_bytes);
    return *bytes + end.size() + length_bytes;
  }
  void decode(std::span<const std::byte> coded, Element element, std::span<std::byte> out) const override {
    const std::uint64_t length = last_number(coded);
    if (length > out.size() || length + length_bytes > coded.size()) {
      throw Error("[chain] a state is not what was stored");
    }
    const std::size_t bytes = coded.size() - length_bytes - length;
    inside.decode(coded.first(bytes), element, out.first(out.size() - length));
    if (length > 0) std::memcpy(out.data() + out.size() - length, coded.data() + bytes, length);
  }

  const Codec& inside;

 private:
  [[nodiscard]] static std::pair<ArrayView, std::span<const std::byte>> parts_of(const ArrayView& array) {
    if (!has_fields(array.shape())) return {array, {}};
    const auto end = end_of(array.data());
    const auto fields = array.data().first(array.bytes() - end.size());
    const auto elements = static_cast<std::int64_t>(fields.size() / bytes_of(array.element()));
    return {ArrayView(array.element(), {elements}, fields), end};
  }

  const std::string name_;
};

}  // namespace

py::object function_of_states(const char* name) {
  return py::module_::import("reprise.states").attr(name);
}

bool has_fields(const Shape& shape) {
  return shape.size() == dimensions;
}

Array array_of_fields(py::handle state) {
  const py::tuple parts = function_of_states("take_apart")(state);
  std::vector<py::array> arrays;
  std::vector<std::span<const std::byte>> fields;
  std::optional<Element> common;
  bool same = true;
  for (const py::handle part : parts[0]) {
    arrays.push_back(py::reinterpret_borrow<py::array>(part));
    const auto element = element_of(arrays.back().dtype());
    same = same && (!common || common == element);
    common = element;
    fields.emplace_back(static_cast<const std::byte*>(arrays.back().data()), arrays.back().nbytes());
  }
  const Element element = same && common ? *common : Element::uint8;
  const std::string description = parts[1].cast<py::bytes>();

  const py::gil_scoped_release no_interpreter;
  const std::size_t step = elements_of_block * std::max<std::size_t>(bytes_of(element), 1);
  std::size_t bytes = 0;
  for (const auto& field : fields) bytes += rounded_up(field.size(), step);
  const std::size_t end = rounded_up(description.size() + 1 + length_bytes, bytes_of(element));
  Shape shape(dimensions, 1);
  shape.back() = static_cast<std::int64_t>((bytes + end) / bytes_of(element));
  Array array(element, std::move(shape));
  std::byte* out = array.data().data();
  for (const auto& field : fields) {
    const std::size_t all = rounded_up(field.size(), step);
    if (!field.empty()) std::memcpy(out, field.data(), field.size());
    std::memset(out + field.size(), 0, all - field.size());
    out += all;
  }
  std::memset(out, 0, end);
  std::memcpy(out, description.data(), description.size());
  const std::uint64_t length = end;
  std::memcpy(out + end - length_bytes, &length, length_bytes);
  return array;
}

py::object state_of_fields(const Array& array) {
  const auto end = end_of(array.data());
  // Its last byte is followed by a zero.
  const py::bytes description(reinterpret_cast<const char*>(end.data()));
  const py::array memory(py::dtype::of<std::uint8_t>(), {static_cast<py::ssize_t>(array.bytes())}, array.data().data(),
                         py::none());
  return function_of_states("put_together")(description, memory, elements_of_block * bytes_of(array.element()));
}

const Codec& codec_of_fields(const Codec& inside) {
  static std::mutex mutex;
  static auto* const all = new std::map<const Codec*, std::unique_ptr<FieldsCodec>>;  // never freed
  const std::scoped_lock lock(mutex);
  auto& one = (*all)[&inside];
  if (!one) one = std::make_unique<FieldsCodec>(inside);
  return *one;
}

const Codec& codec_inside(const Codec& codec) {
  const auto* const fields = dynamic_cast<const FieldsCodec*>(&codec);
  return fields ? fields->inside : codec;
}

}  // namespace reprise::python
