#include "store/packing_kernels.h"
#include "store/packing_loops.h"

#if !defined(__x86_64__)

namespace reprise::internal {
const PackingKernels* avx2_packing(int) {
  return nullptr;
}
}  // namespace reprise::internal

#else

#include <immintrin.h>

// Functions compiled for AVX2, on a machine that may not have AVX2: they are only reached through `avx2_packing`.
#define REPRISE_AVX2 __attribute__((target("avx2")))

namespace reprise::internal {
namespace {

namespace loops = packing_loops;

constexpr std::size_t step = 32;  // elements: their bits are one load or store of 32 bits

REPRISE_AVX2 inline __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
REPRISE_AVX2 inline void store(std::byte* at, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v);
}

// For each size of element: a vector full of a pattern, comparison, the bits of 32 comparisons (in sizeof(T) vectors),
// and vector k of the 32 comparisons for given bits.
template <class T>
struct Lanes;

template <>
struct Lanes<std::uint8_t> {
  REPRISE_AVX2 static __m256i fill(std::uint64_t pattern) { return _mm256_set1_epi8(static_cast<char>(pattern)); }
  REPRISE_AVX2 static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi8(a, b); }
  REPRISE_AVX2 static std::uint32_t bits(const __m256i* equal) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal[0]));
  }
  REPRISE_AVX2 static __m256i select(std::uint32_t bits, int) {
    const __m256i byte_of_lane = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2,
                                                  2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit_of_lane = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of_lane);
    return equal(_mm256_and_si256(spread, bit_of_lane), bit_of_lane);
  }
};

template <>
struct Lanes<std::uint16_t> {
  REPRISE_AVX2 static __m256i fill(std::uint64_t pattern) { return _mm256_set1_epi16(static_cast<short>(pattern)); }
  REPRISE_AVX2 static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi16(a, b); }
  REPRISE_AVX2 static std::uint32_t bits(const __m256i* equal) {
    // Packing works in halves of 128 bits: the permutation puts their quarters in order.
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(equal[0], equal[1]), 0b11'01'10'00);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
  }
  REPRISE_AVX2 static __m256i select(std::uint32_t bits, int k) {
    const __m256i bit_of_lane = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                                  static_cast<short>(0x8000));
    const __m256i spread = _mm256_set1_epi16(static_cast<short>(bits >> 16 * k));
    return equal(_mm256_and_si256(spread, bit_of_lane), bit_of_lane);
  }
};

template <>
struct Lanes<std::uint32_t> {
  REPRISE_AVX2 static __m256i fill(std::uint64_t pattern) { return _mm256_set1_epi32(static_cast<int>(pattern)); }
  REPRISE_AVX2 static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi32(a, b); }
  REPRISE_AVX2 static std::uint32_t bits(const __m256i* equal) {
    std::uint32_t all = 0;
    for (int k = 0; k < 4; ++k) {
      all |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal[k]))) << 8 * k;
    }
    return all;
  }
  REPRISE_AVX2 static __m256i select(std::uint32_t bits, int k) {
    const __m256i bit_of_lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i spread = _mm256_set1_epi32(static_cast<int>(bits >> 8 * k));
    return equal(_mm256_and_si256(spread, bit_of_lane), bit_of_lane);
  }
};

template <>
struct Lanes<std::uint64_t> {
  REPRISE_AVX2 static __m256i fill(std::uint64_t pattern) {
    return _mm256_set1_epi64x(static_cast<long long>(pattern));
  }
  REPRISE_AVX2 static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi64(a, b); }
  REPRISE_AVX2 static std::uint32_t bits(const __m256i* equal) {
    std::uint32_t all = 0;
    for (int k = 0; k < 8; ++k) {
      all |= static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal[k]))) << 4 * k;
    }
    return all;
  }
  REPRISE_AVX2 static __m256i select(std::uint32_t bits, int k) {
    const __m256i bit_of_lane = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i spread = _mm256_set1_epi64x(static_cast<long long>(bits >> 4 * k));
    return equal(_mm256_and_si256(spread, bit_of_lane), bit_of_lane);
  }
};

template <class T, bool write>
REPRISE_AVX2 bool look_at_bits(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one,
                               std::byte* out) {
  constexpr int vectors = sizeof(T);  // for 32 elements
  const __m256i z = Lanes<T>::fill(zero), o = Lanes<T>::fill(one), all_ones = _mm256_set1_epi8(-1);
  std::size_t i = 0;
  while (i + step <= n) {
    __m256i fits = all_ones;
    const std::size_t end = std::min(n, i + loops::block);
    for (; i + step <= end; i += step) {
      __m256i ones[vectors];
#pragma GCC unroll 8
      for (int k = 0; k < vectors; ++k) {
        const __m256i elements = load(data + i * sizeof(T) + 32 * static_cast<std::size_t>(k));
        ones[k] = Lanes<T>::equal(elements, o);
        fits = _mm256_and_si256(fits, _mm256_or_si256(ones[k], Lanes<T>::equal(elements, z)));
      }
      if constexpr (write) {
        const std::uint32_t bits = Lanes<T>::bits(ones);
        std::memcpy(out + i / 8, &bits, sizeof bits);
      }
    }
    if (!_mm256_testc_si256(fits, all_ones)) return false;
  }
  return loops::to_bits<T, write>(data, i, n, zero, one, out);
}

template <class T>
REPRISE_AVX2 bool two_valued(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one) {
  return look_at_bits<T, false>(data, n, zero, one, nullptr);
}
template <class T>
REPRISE_AVX2 bool to_bits(const std::byte* data, std::size_t n, std::uint64_t zero, std::uint64_t one, std::byte* out) {
  return look_at_bits<T, true>(data, n, zero, one, out);
}

template <class T>
REPRISE_AVX2 void from_bits(const std::byte* packed, std::size_t n, std::uint64_t zero, std::uint64_t one,
                            std::byte* out) {
  constexpr int vectors = sizeof(T);
  const __m256i z = Lanes<T>::fill(zero), change = _mm256_xor_si256(z, Lanes<T>::fill(one));
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    std::uint32_t bits;
    std::memcpy(&bits, packed + i / 8, sizeof bits);
#pragma GCC unroll 8
    for (int k = 0; k < vectors; ++k) {
      const __m256i ones = Lanes<T>::select(bits, k);
      store(out + i * sizeof(T) + 32 * static_cast<std::size_t>(k),
            _mm256_xor_si256(z, _mm256_and_si256(ones, change)));
    }
  }
  loops::from_bits<T>(packed, i, n, zero, one, out);
}

// ---- what the compiler does well by itself ----

template <class T>
REPRISE_AVX2 std::size_t first_other(const std::byte* data, std::size_t n, std::uint64_t pattern) {
  return loops::first_other<T>(data, n, pattern);
}
template <class T>
REPRISE_AVX2 bool range(const std::byte* data, std::size_t n, std::int64_t& low, std::int64_t& high) {
  return loops::range<T>(data, n, low, high);
}
template <class T, class Narrow>
REPRISE_AVX2 bool narrow(const std::byte* data, std::size_t n, std::uint64_t base, std::byte* out) {
  return loops::narrow<T, Narrow>(data, n, base, out);
}
template <class T, class Narrow>
REPRISE_AVX2 void widen(const std::byte* packed, std::size_t n, std::uint64_t base, std::byte* out) {
  loops::widen<T, Narrow>(packed, n, base, out);
}

template <class T>
constexpr PackingKernels make_kernels() {
  PackingKernels kernels{};
  kernels.first_other = &first_other<T>;
  kernels.two_valued = &two_valued<T>;
  kernels.to_bits = &to_bits<T>;
  kernels.from_bits = &from_bits<T>;
  if constexpr (sizeof(T) > 1) {
    kernels.range = &range<T>;
    kernels.to_bytes = &narrow<T, std::uint8_t>;
    kernels.from_bytes = &widen<T, std::uint8_t>;
  }
  if constexpr (sizeof(T) > 2) {
    kernels.to_words = &narrow<T, std::uint16_t>;
    kernels.from_words = &widen<T, std::uint16_t>;
  }
  return kernels;
}

template <class T>
constexpr PackingKernels kernels = make_kernels<T>();

}  // namespace

const PackingKernels* avx2_packing(int element_bytes) {
  static const bool available = __builtin_cpu_supports("avx2");
  if (!available) return nullptr;
  switch (element_bytes) {
    case 1: return &kernels<std::uint8_t>;
    case 2: return &kernels<std::uint16_t>;
    case 4: return &kernels<std::uint32_t>;
    default: return &kernels<std::uint64_t>;
  }
}

}  // namespace reprise::internal

#endif
