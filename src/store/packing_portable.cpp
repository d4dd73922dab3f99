#include "store/packing_kernels.h"
#include "store/packing_loops.h"

namespace reprise::internal {
namespace {

namespace loops = packing_loops;

template <class T>
bool two_valued(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one) {
  return loops::to_bits<T, false>(data, 0, n, zero, one, nullptr);
}
template <class T>
bool to_bits(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one, std::byte* out) {
  return loops::to_bits<T, true>(data, 0, n, zero, one, out);
}
template <class T>
void from_bits(const std::byte* packed, std::size_t n, std::uint64_t zero, std::uint64_t one, std::byte* out) {
  loops::from_bits<T>(packed, 0, n, zero, one, out);
}

template <class T>
constexpr PackingKernels make_kernels() {
  PackingKernels kernels{};
  kernels.first_other = &loops::first_other<T>;
  kernels.two_valued = &two_valued<T>;
  kernels.to_bits = &to_bits<T>;
  kernels.from_bits = &from_bits<T>;
  if constexpr (sizeof(T) > 1) {
    kernels.range = &loops::range<T>;
    kernels.to_bytes = &loops::narrow<T, std::uint8_t>;
    kernels.from_bytes = &loops::widen<T, std::uint8_t>;
  }
  if constexpr (sizeof(T) > 2) {
    kernels.to_words = &loops::narrow<T, std::uint16_t>;
    kernels.from_words = &loops::widen<T, std::uint16_t>;
  }
  return kernels;
}

template <class T>
constexpr PackingKernels kernels = make_kernels<T>();

}  // namespace

const PackingKernels& portable_packing(int element_bytes) {
  switch (element_bytes) {
    case 1: return kernels<std::uint8_t>;
    case 2: return kernels<std::uint16_t>;
    case 4: return kernels<std::uint32_t>;
    default: return kernels<std::uint64_t>;
  }
}

}  // namespace reprise::internal
