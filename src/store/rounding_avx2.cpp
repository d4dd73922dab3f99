#include "store/rounding_kernels.h"
#include "store/rounding_loops.h"

#if !defined(__x86_64__)

namespace reprise::internal {
const RoundingKernels* avx2_rounding(Element) {
  return nullptr;
}
}  // namespace reprise::internal

#else

#include <cpuid.h>
#include <immintrin.h>

// Functions compiled for AVX2, on a machine that may not have AVX2: they are only reached through `avx2_rounding`.
#define REPRISE_AVX2 __attribute__((target("avx2,f16c")))

namespace reprise::internal {
namespace {

namespace loops = rounding_loops;
using loops::Bfloat16;
using loops::Half;
using Float = loops::Format<float>;

constexpr std::size_t step = 16;  // elements: they become one vector
static_assert(loops::block % step == 0 && loops::int8_block == 64);

REPRISE_AVX2 inline __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
REPRISE_AVX2 inline __m128i load_half(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
REPRISE_AVX2 inline void store(std::byte* at, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v);
}
REPRISE_AVX2 inline __m256i fill(std::uint32_t pattern) {
  return _mm256_set1_epi32(static_cast<int>(pattern));
}
REPRISE_AVX2 inline __m256i magnitudes(__m256i floats) {
  return _mm256_and_si256(floats, fill(Float::magnitudes));
}

// Lanes that are finite floats of at least this magnitude. Magnitudes are positive integers: comparing them as signed
// ones is right.
REPRISE_AVX2 inline __m256i finite_from(std::uint32_t first, __m256i magnitude) {
  return _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, fill(first - 1)),
                          _mm256_cmpgt_epi32(fill(Float::infinity), magnitude));
}

// For each format: 16 floats to it, 8 from it, and the first float that rounds to infinity.
struct HalfLanes {
  static constexpr std::uint32_t beyond = 0x477FF000;  // 65520
  REPRISE_AVX2 static __m128i round(__m256i bits) {
    return _mm256_cvtps_ph(_mm256_castsi256_ps(bits), _MM_FROUND_TO_NEAREST_INT);
  }
  REPRISE_AVX2 static __m256i narrow(__m256i first, __m256i second) {
    return _mm256_set_m128i(round(second), round(first));
  }
  REPRISE_AVX2 static __m256i widen(__m128i coded) { return _mm256_castps_si256(_mm256_cvtph_ps(coded)); }
};

struct Bfloat16Lanes {
  static constexpr std::uint32_t beyond = 0x7F7F8000;
  REPRISE_AVX2 static __m256i round(__m256i bits) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), fill(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, fill(0x7FFF)), odd);
    const __m256i nan = _mm256_cmpgt_epi32(magnitudes(bits), fill(Float::infinity));
    const __m256i quiet = _mm256_or_si256(bits, fill(Float::quiet));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  }
  REPRISE_AVX2 static __m256i narrow(__m256i first, __m256i second) {
    // Packing works in halves of 128 bits: the permutation puts their quarters in order.
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(round(first), round(second)), 0b11'01'10'00);
  }
  REPRISE_AVX2 static __m256i widen(__m128i coded) {
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(coded), 16);
    const __m256i nan = _mm256_cmpgt_epi32(magnitudes(bits), fill(Float::infinity));
    return _mm256_or_si256(bits, _mm256_and_si256(nan, fill(Float::quiet)));
  }
};

template <class Lanes, class To>
REPRISE_AVX2 bool narrow_floats(const std::byte* data, std::size_t n, std::byte* out) {
  std::size_t i = 0;
  while (i + step <= n) {
    __m256i beyond = _mm256_setzero_si256();
    const std::size_t end = std::min(n, i + loops::block);
    for (; i + step <= end; i += step) {
      const __m256i first = load(data + 4 * i), second = load(data + 4 * i + 32);
      beyond = _mm256_or_si256(beyond, finite_from(Lanes::beyond, magnitudes(first)));
      beyond = _mm256_or_si256(beyond, finite_from(Lanes::beyond, magnitudes(second)));
      store(out + 2 * i, Lanes::narrow(first, second));
    }
    if (!_mm256_testz_si256(beyond, beyond)) return false;
  }
  return loops::narrow_all<float, To>(data, i, n, out);
}

// Doubles become floats first. So that rounding twice is rounding once, what a float has no bits for is not rounded but
// remembered in its last bit: then no number moves to or over the middle between two numbers of the narrow format.
struct DoubleLanes {
  static constexpr std::uint64_t dropped = (std::uint64_t{1} << 29) - 1;
  static constexpr std::uint64_t least = std::uint64_t{1023 - 126} << 52;  // below, a float has fewer bits still

  REPRISE_AVX2 static __m256i fill(std::uint64_t pattern) {
    return _mm256_set1_epi64x(static_cast<long long>(pattern));
  }
  REPRISE_AVX2 static __m128 to_floats(__m256i bits) {
    const __m256i more = _mm256_cmpgt_epi64(_mm256_and_si256(bits, fill(dropped)), _mm256_setzero_si256());
    const __m256i kept =
        _mm256_or_si256(_mm256_andnot_si256(fill(dropped), bits), _mm256_and_si256(more, fill(dropped + 1)));
    return _mm256_cvtpd_ps(_mm256_castsi256_pd(kept));
  }
  REPRISE_AVX2 static __m256i to_floats(const std::byte* eight) {
    return _mm256_castps_si256(_mm256_set_m128(to_floats(load(eight + 32)), to_floats(load(eight))));
  }
  // Lanes with magnitudes from the first to before the last.
  REPRISE_AVX2 static __m256i within(std::uint64_t first, std::uint64_t last, __m256i magnitude) {
    return _mm256_and_si256(_mm256_cmpgt_epi64(magnitude, fill(first - 1)), _mm256_cmpgt_epi64(fill(last), magnitude));
  }
};

template <class Lanes, class To>
REPRISE_AVX2 bool narrow_doubles(const std::byte* data, std::size_t n, std::byte* out) {
  using Double = loops::Format<double>;
  constexpr auto first_beyond = std::bit_cast<std::uint64_t>(double{std::bit_cast<float>(Lanes::beyond)});
  for (std::size_t i = 0; i < n; i += std::min(step, n - i)) {
    const std::byte* const doubles = data + 8 * i;
    __m256i beyond = _mm256_setzero_si256(), tiny = beyond;
    for (std::size_t k = 0; k < 4 && i + step <= n; ++k) {
      const __m256i magnitude = _mm256_and_si256(load(doubles + 32 * k), DoubleLanes::fill(Double::magnitudes));
      beyond = _mm256_or_si256(beyond, DoubleLanes::within(first_beyond, Double::infinity, magnitude));
      tiny = _mm256_or_si256(tiny, DoubleLanes::within(1, DoubleLanes::least, magnitude));
    }
    if (!_mm256_testz_si256(beyond, beyond)) return false;
    if (i + step > n || !_mm256_testz_si256(tiny, tiny)) {  // one by one
      if (!loops::narrow_all<double, To>(data, i, std::min(n, i + step), out)) return false;
      continue;
    }
    const __m256i first = DoubleLanes::to_floats(doubles), second = DoubleLanes::to_floats(doubles + 64);
    store(out + 2 * i, Lanes::narrow(first, second));
  }
  return true;
}

template <class Lanes, class From>
REPRISE_AVX2 void widen_floats(const std::byte* coded, std::size_t n, std::byte* out) {
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    store(out + 4 * i, Lanes::widen(load_half(coded + 2 * i)));
    store(out + 4 * i + 32, Lanes::widen(load_half(coded + 2 * i + 16)));
  }
  loops::widen_all<float, From>(coded, i, n, out);
}

// ---- int8 -----------------------------------------------------------------------------------------------------------

REPRISE_AVX2 inline std::uint32_t largest_magnitude(const std::byte* floats) {
  __m256i most = _mm256_setzero_si256();
  for (std::size_t k = 0; k < 8; ++k) most = _mm256_max_epi32(most, magnitudes(load(floats + 32 * k)));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01'00'11'10));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10'11'00'01));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

REPRISE_AVX2 inline __m128i four_to_int32(const std::byte* floats, __m256d factor) {
  const __m256d elements = _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(floats)));
  return _mm256_cvtpd_epi32(_mm256_mul_pd(elements, factor));
}
REPRISE_AVX2 inline __m128i eight_to_int16(const std::byte* floats, __m256d factor) {
  return _mm_packs_epi32(four_to_int32(floats, factor), four_to_int32(floats + 16, factor));
}

REPRISE_AVX2 bool floats_to_int8(const std::byte* data, std::size_t n, std::byte* out) {
  std::byte* bytes = out + loops::int8_blocks(n) * sizeof(float);
  std::size_t b = 0;
  for (; b < n / loops::int8_block; ++b, data += 256, bytes += 64) {
    const std::uint32_t largest = largest_magnitude(data);
    if (largest >= Float::infinity) return false;
    loops::store(out, b, largest);
    const __m256d factor = _mm256_set1_pd(loops::to_int8_factor<float>(std::bit_cast<float>(largest)));
    for (std::size_t k = 0; k < 4; ++k) {
      const std::byte* const floats = data + 64 * k;
      const __m128i sixteen = _mm_packs_epi16(eight_to_int16(floats, factor), eight_to_int16(floats + 32, factor));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + 16 * k), sixteen);
    }
  }
  const std::size_t rest = n % loops::int8_block;
  return rest == 0 || loops::block_to_int8<float>(data, rest, out + b * sizeof(float), bytes);
}

REPRISE_AVX2 void floats_from_int8(const std::byte* coded, std::size_t n, std::byte* out) {
  const std::byte* bytes = coded + loops::int8_blocks(n) * sizeof(float);
  std::size_t b = 0;
  for (; b < n / loops::int8_block; ++b, bytes += 64, out += 256) {
    const __m256d unit = _mm256_set1_pd(loops::load<float>(coded, b) / loops::most);
    for (std::size_t k = 0; k < 16; ++k) {
      const __m128i four = _mm_cvtepi8_epi32(_mm_cvtsi32_si128(loops::load<int>(bytes, k)));
      const __m128 elements = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(four), unit));
      _mm_storeu_ps(reinterpret_cast<float*>(out + 16 * k), elements);
    }
  }
  const std::size_t rest = n % loops::int8_block;
  if (rest != 0) loops::block_from_int8<float>(bytes, rest, coded + b * sizeof(float), out);
}

// ---- what the compiler does well by itself --------------------------------------------------------------------------

template <class From>
REPRISE_AVX2 void widen_doubles(const std::byte* coded, std::size_t n, std::byte* out) {
  loops::widen_all<double, From>(coded, 0, n, out);
}
REPRISE_AVX2 bool doubles_to_int8(const std::byte* data, std::size_t n, std::byte* out) {
  return loops::all_to_int8<double>(data, n, out);
}
REPRISE_AVX2 void doubles_from_int8(const std::byte* coded, std::size_t n, std::byte* out) {
  loops::all_from_int8<double>(coded, n, out);
}

constexpr RoundingKernels float_kernels{&narrow_floats<HalfLanes, Half>,
                                        &narrow_floats<Bfloat16Lanes, Bfloat16>,
                                        &widen_floats<HalfLanes, Half>,
                                        &widen_floats<Bfloat16Lanes, Bfloat16>,
                                        &floats_to_int8,
                                        &floats_from_int8};
constexpr RoundingKernels double_kernels{&narrow_doubles<HalfLanes, Half>,
                                         &narrow_doubles<Bfloat16Lanes, Bfloat16>,
                                         &widen_doubles<Half>,
                                         &widen_doubles<Bfloat16>,
                                         &doubles_to_int8,
                                         &doubles_from_int8};

// clang 14 does not know the name in __builtin_cpu_supports.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const RoundingKernels* avx2_rounding(Element element) {
  static const bool available = __builtin_cpu_supports("avx2") && has_f16c();
  if (!available) return nullptr;
  return element == Element::float32 ? &float_kernels : &double_kernels;
}

}  // namespace reprise::internal

#endif
