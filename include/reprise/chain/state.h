// StateTraits describes the caller's own type of state to a chain.
//
// These work out of the box: numbers, structs without pointers that can be copied byte by byte, and std::vector and
// std::array of either. For another type, specialize StateTraits with the functions that the chain needs:
//
//   template <>
//   struct reprise::StateTraits<Field> {
//     // Always:
//     static Bytes bytes(const Field& field) { return field.cells() * sizeof(double); }
//     // Where copies are needed; the second one, if it is there, to make one without allocating:
//     static Field clone(const Field& field) { return field.copy(); }
//     static void copy(const Field& from, Field& to) { to.assign(from); }
//     // For codecs and the disk:
//     static ArrayView encode(const Field& field) { return {field.data(), field.shape()}; }
//     static Field decode(Array array) { return Field(array); }
//     // The bytes of `encode` are equal for equal states: see Chain::verify.
//     static constexpr bool comparable = true;
//   };
//
// `encode` returns an ArrayView or an Array. A program that asks a chain for something that the type cannot do does not
// compile. A struct with pointers in it that can be copied byte by byte looks as if it had none: it needs StateTraits
// of its own, or the chain would copy the pointers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/export.h"
#include "reprise/store/array.h"
#include "reprise/trace/error.h"
#include "reprise/trace/trace.h"

namespace reprise {

namespace internal {
[[noreturn]] REPRISE_EXPORT void fail_decoded_bytes(std::size_t bytes, std::size_t expected);
}  // namespace internal

// Numbers and plain structs. A struct may have padding, whose bytes mean nothing, so its bytes are not compared.
template <class State>
struct StateTraits {
  static Bytes bytes(const State&) requires PlainObject<State> { return static_cast<Bytes>(sizeof(State)); }
  static State clone(const State& state) requires PlainObject<State> { return state; }
  static void copy(const State& from, State& to) requires PlainObject<State> { std::memcpy(&to, &from, sizeof(State)); }
  static ArrayView encode(const State& state) requires PlainObject<State> {
    if constexpr (Number<State>) {
      return {element_of<State>(), {}, std::as_bytes(std::span(&state, 1))};
    } else {
      return {Element::uint8, {static_cast<std::int64_t>(sizeof(State))}, std::as_bytes(std::span(&state, 1))};
    }
  }
  static State decode(const Array& array) requires PlainObject<State> {
    if (array.bytes() != sizeof(State)) internal::fail_decoded_bytes(array.bytes(), sizeof(State));
    std::array<std::byte, sizeof(State)> bytes;
    std::memcpy(bytes.data(), array.data().data(), sizeof(State));
    return std::bit_cast<State>(bytes);
  }
  static constexpr bool comparable = Number<State>;
};

template <class T>
requires Number<T> || PlainObject<T>
struct StateTraits<std::vector<T>> {
  using State = std::vector<T>;
  static Bytes bytes(const State& state) { return static_cast<Bytes>(state.size() * sizeof(T)); }
  static State clone(const State& state) { return state; }
  static void copy(const State& from, State& to) { to = from; }
  static ArrayView encode(const State& state) { return state; }
  static State decode(const Array& array) { return array.to_vector<T>(); }
  static constexpr bool comparable = Number<T>;
};

template <>
struct StateTraits<std::vector<bool>> {
  using State = std::vector<bool>;
  static Bytes bytes(const State& state) { return static_cast<Bytes>((state.size() + 7) / 8); }
  static State clone(const State& state) { return state; }
  static void copy(const State& from, State& to) { to = from; }
  static Array encode(const State& state) { return array_of(state); }
  static State decode(const Array& array) {
    static_cast<void>(array.as<bool>());  // throws for other elements
    State state;
    state.reserve(array.bytes());
    // Not as bools: bytes from a file may be neither 0 nor 1.
    for (const std::byte byte : array.data()) state.push_back(byte != std::byte{0});
    return state;
  }
  static constexpr bool comparable = true;
};

template <Number T, std::size_t n>
struct StateTraits<std::array<T, n>> {
  using State = std::array<T, n>;
  static Bytes bytes(const State&) { return static_cast<Bytes>(sizeof(State)); }
  static State clone(const State& state) { return state; }
  static void copy(const State& from, State& to) { to = from; }
  static ArrayView encode(const State& state) { return state; }
  static State decode(const Array& array) {
    const auto numbers = array.as<T>();
    if (numbers.size() != n) internal::fail_decoded_bytes(array.bytes(), sizeof(State));
    State state;
    std::copy(numbers.begin(), numbers.end(), state.begin());
    return state;
  }
  static constexpr bool comparable = true;
};

template <class State>
concept Countable = requires(const State& state) {
  { StateTraits<State>::bytes(state) } -> std::convertible_to<Bytes>;
};

template <class State>
concept Clonable = requires(const State& state) {
  { StateTraits<State>::clone(state) } -> std::convertible_to<State>;
};

template <class State>
concept Codable = requires(const State& state, Array array) {
  { StateTraits<State>::encode(state) } -> std::convertible_to<ArrayView>;
  { StateTraits<State>::decode(std::move(array)) } -> std::convertible_to<State>;
};

// The type of tape of a chain without tapes.
struct NoTape {};

}  // namespace reprise
