// StateTraits tells a chain about the caller's own type of state.
//
// std::vector of numbers works out of the box. For another type, specialize StateTraits with the functions that the
// chain needs:
//
//   template <>
//   struct reprise::StateTraits<Field> {
//     static Bytes bytes(const Field& field) { return field.cells() * sizeof(double); }   // always
//     static Field clone(const Field& field) { return field.copy(); }                     // where copies are needed
//     static ArrayView encode(const Field& field) { return {field.data(), field.shape()}; }  // for codecs and the disk
//     static Field decode(Array array) { return Field(array); }                              // the same
//   };
//
// `encode` returns an ArrayView or an Array. A program that asks a chain for something that the type cannot do does not
// compile.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "reprise/store/array.h"
#include "reprise/trace/trace.h"

namespace reprise {

template <class State>
struct StateTraits;

template <Number T>
struct StateTraits<std::vector<T>> {
  static Bytes bytes(const std::vector<T>& state) { return static_cast<Bytes>(state.size() * sizeof(T)); }
  static std::vector<T> clone(const std::vector<T>& state) { return state; }
  static ArrayView encode(const std::vector<T>& state) { return state; }
  static std::vector<T> decode(const Array& array) { return array.to_vector<T>(); }
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
