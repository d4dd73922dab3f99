#include "store/rounding_kernels.h"
#include "store/rounding_loops.h"

namespace reprise::internal {
namespace {

namespace loops = rounding_loops;

template <class T, class To>
bool narrow(const std::byte* data, std::size_t n, std::byte* out) {
  return loops::narrow_all<T, To>(data, 0, n, out);
}
template <class T, class From>
void widen(const std::byte* coded, std::size_t n, std::byte* out) {
  loops::widen_all<T, From>(coded, 0, n, out);
}
template <class T>
bool to_int8(const std::byte* data, std::size_t n, std::byte* out) {
  return loops::all_to_int8<T>(data, n, out);
}
template <class T>
void from_int8(const std::byte* coded, std::size_t n, std::byte* out) {
  loops::all_from_int8<T>(coded, n, out);
}

template <class T>
constexpr RoundingKernels kernels{&narrow<T, loops::Half>,
                                  &narrow<T, loops::Bfloat16>,
                                  &widen<T, loops::Half>,
                                  &widen<T, loops::Bfloat16>,
                                  &to_int8<T>,
                                  &from_int8<T>};

}  // namespace

const RoundingKernels& portable_rounding(Element element) {
  return element == Element::float32 ? kernels<float> : kernels<double>;
}

const RoundingKernels* rounding(Element element) {
  if (!is_real(element)) return nullptr;
  const RoundingKernels* fast = avx2_rounding(element);
  return fast ? fast : &portable_rounding(element);
}

std::size_t int8_bytes(Element element, std::size_t n) {
  return loops::int8_blocks(n) * bytes_of(element) + n;
}

}  // namespace reprise::internal
