#include "models/dense.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace muster {

namespace {

#ifdef __GNUC__

// Vectors as wide as the processor's; the order of the sums does not depend on their width.
#ifdef __AVX__
constexpr Index kWidth = 8;
constexpr Index kTogether = 4;  // rows whose sums stay in registers
#else
constexpr Index kWidth = 4;
constexpr Index kTogether = 2;
#endif

using Vector = float __attribute__((vector_size(kWidth * sizeof(float))));
using Unaligned = float __attribute__((vector_size(kWidth * sizeof(float)), aligned(alignof(float)), may_alias));

inline void load(const float* from, Vector& to) { to = *reinterpret_cast<const Unaligned*>(from); }
inline void store(const Vector& from, float* to) { *reinterpret_cast<Unaligned*>(to) = from; }
inline void rectify(Vector& x) {
  const Vector zero = {};
  x = x > zero ? x : zero;
}

using Bits = std::uint32_t __attribute__((vector_size(kWidth * sizeof(std::uint32_t))));

// value in the lanes whose bit is set in the lowest bits of `gates`.
inline void select(std::uint32_t gates, float value, Vector& to) {
  Bits lanes;
  for (Index lane = 0; lane < kWidth; ++lane) lanes[lane] = 1u << lane;
  const Vector zero = {};
  to = (lanes & gates) != 0u ? zero + value : zero;
}

// Bits of the entries above 0.
inline std::uint32_t bits_above(const Vector& x) {
#if defined(__AVX__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ)));
#elif defined(__SSE2__)
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_cmpgt_ps(x, _mm_setzero_ps())));
#else
  std::uint32_t bits = 0;
  for (Index lane = 0; lane < kWidth; ++lane) bits |= static_cast<std::uint32_t>(x[lane] > 0.0f) << lane;
  return bits;
#endif
}

#else

constexpr Index kWidth = 1;
constexpr Index kTogether = 1;
using Vector = float;

inline void load(const float* from, Vector& to) { to = *from; }
inline void store(const Vector& from, float* to) { *to = from; }
inline void rectify(Vector& x) { x = x > 0.0f ? x : 0.0f; }
inline void select(std::uint32_t gates, float value, Vector& to) { to = (gates & 1u) != 0 ? value : 0.0f; }
inline std::uint32_t bits_above(const Vector& x) { return x > 0.0f; }

#endif

constexpr Index kVectors = kColumns / kWidth;
// The last layer's sum over its units is made of 8 partial sums, which fill so many vectors.
constexpr Index kHalves = 8 / kWidth;

#ifdef __GNUC__

using Four = float __attribute__((vector_size(4 * sizeof(float))));

// a0 + a1, a2 + a3, b0 + b1, b2 + b3
inline void add_neighbours(const Four& a, const Four& b, Four& sums) {
  sums = __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

// out(i) = start + ((p0 + p4) + (p1 + p5)) + ((p2 + p6) + (p3 + p7)) for the partial sums p of each row.
template <Index kRows>
inline void add_up(const Vector (&part)[kRows][kHalves], float start, float* out) {
  Four half[4] = {};
  for (Index i = 0; i < kRows; ++i) {
#ifdef __AVX__
    const Vector& p = part[i][0];
    half[i] = __builtin_shufflevector(p, p, 0, 1, 2, 3) + __builtin_shufflevector(p, p, 4, 5, 6, 7);
#else
    half[i] = part[i][0] + part[i][1];
#endif
  }
  Four low, high, all;
  add_neighbours(half[0], half[1], low);
  add_neighbours(half[2], half[3], high);
  add_neighbours(low, high, all);
  for (Index i = 0; i < kRows; ++i) out[i] = start + all[i];
}

#else

template <Index kRows>
inline void add_up(const Vector (&p)[kRows][kHalves], float start, float* out) {
  for (Index i = 0; i < kRows; ++i) {
    out[i] = start + (((p[i][0] + p[i][4]) + (p[i][1] + p[i][5])) + ((p[i][2] + p[i][6]) + (p[i][3] + p[i][7])));
  }
}

#endif

// kRows rows by kColumns columns of a product, whose sums stay in registers while the inner index runs.
template <Index kRows>
inline void sum_block(const Strided& a, const float* b, Index b_row, const float* start, Index start_row, Index inner,
                      Vector (&sum)[kRows][kVectors]) {
  for (Index i = 0; i < kRows; ++i) {
    for (Index v = 0; v < kVectors; ++v) load(start + i * start_row + v * kWidth, sum[i][v]);
  }
  for (Index q = 0; q < inner; ++q) {
    Vector row[kVectors];
    for (Index v = 0; v < kVectors; ++v) load(b + q * b_row + v * kWidth, row[v]);
    for (Index i = 0; i < kRows; ++i) {
      const float factor = a.data[i * a.row + q * a.column];
      for (Index v = 0; v < kVectors; ++v) sum[i][v] += row[v] * factor;
    }
  }
}

template <Index kRows>
inline void multiply_rows(const Strided& a, const float* b, Index b_row, const float* start, Index start_row, float* c,
                          Index c_row, Index inner, Index columns, bool rectified) {
  for (Index j = 0; j < columns; j += kColumns) {
    Vector sum[kRows][kVectors];
    sum_block<kRows>(a, b + j, b_row, start + j, start_row, inner, sum);
    for (Index i = 0; i < kRows; ++i) {
      for (Index v = 0; v < kVectors; ++v) {
        if (rectified) rectify(sum[i][v]);
        store(sum[i][v], c + i * c_row + j + v * kWidth);
      }
    }
  }
}

template <Index kRows>
inline void score_block(const float* x, const float* weight2, const float* bias2, const float* weight3, float bias3,
                        Index width, float* out, std::uint32_t* gates, Index words) {
  Vector part[kRows][kHalves];
  for (Index i = 0; i < kRows; ++i) {
    for (Index v = 0; v < kHalves; ++v) part[i][v] = Vector{};
  }
  for (Index j = 0; j < width; j += kColumns) {
    Vector sum[kRows][kVectors];
    sum_block<kRows>({x, width, 1}, weight2 + j, width, bias2 + j, 0, width, sum);
    for (Index v = 0; v < kVectors; ++v) {
      Vector weight;
      load(weight3 + j + v * kWidth, weight);
      for (Index i = 0; i < kRows; ++i) {
        rectify(sum[i][v]);
        part[i][v % kHalves] += sum[i][v] * weight;
      }
    }
    if (gates == nullptr) continue;
    for (Index i = 0; i < kRows; ++i) {
      std::uint32_t bits = 0;
      for (Index v = 0; v < kVectors; ++v) bits |= bits_above(sum[i][v]) << (v * kWidth);
      std::uint32_t& word = gates[i * words + j / 32];
      word = j % 32 == 0 ? bits : word | bits << 16;
    }
  }
  add_up<kRows>(part, bias3, out);
}

}  // namespace

void multiply(const Strided& a, const float* b, Index b_row, const float* start, Index start_row, float* c, Index c_row,
              Index rows, Index inner, Index columns, bool rectified) {
  Index i = 0;
  for (; i + kTogether <= rows; i += kTogether) {
    multiply_rows<kTogether>({a.data + i * a.row, a.row, a.column}, b, b_row, start + i * start_row, start_row,
                             c + i * c_row, c_row, inner, columns, rectified);
  }
  for (; i < rows; ++i) {
    multiply_rows<1>({a.data + i * a.row, a.row, a.column}, b, b_row, start + i * start_row, start_row, c + i * c_row,
                     c_row, inner, columns, rectified);
  }
}

void first_layer(const float* left, const float* right, const float* x, Index features, const float* weight,
                 const Index* js, Index count, Index width, float* out) {
  // Two pairs at a time, so that a weight is read once for both; the last one may be done twice.
  for (Index t = 0; t < count; t += 2) {
    const Index both[2] = {t, t + 1 < count ? t + 1 : t};
    const float* const read[2] = {x + js[both[0]] * features, x + js[both[1]] * features};
    for (Index k = 0; k < width; k += kColumns) {
      Vector sum[2][kVectors];
      for (Index v = 0; v < kVectors; ++v) {
        Vector mine;
        load(left + k + v * kWidth, mine);
        for (Index i = 0; i < 2; ++i) {
          load(right + js[both[i]] * width + k + v * kWidth, sum[i][v]);
          sum[i][v] += mine;
        }
      }
      for (Index f = 0; f < features; ++f) {
        const float factor[2] = {read[0][f], read[1][f]};
        for (Index v = 0; v < kVectors; ++v) {
          Vector row;
          load(weight + f * width + k + v * kWidth, row);
          for (Index i = 0; i < 2; ++i) sum[i][v] += row * factor[i];
        }
      }
      for (Index i = 0; i < 2; ++i) {
        for (Index v = 0; v < kVectors; ++v) {
          rectify(sum[i][v]);
          store(sum[i][v], out + both[i] * width + k + v * kWidth);
        }
      }
    }
  }
}

void score_rows(const float* x, const float* weight2, const float* bias2, const float* weight3, float bias3, Index width,
                Index rows, float* out, std::uint32_t* gates, Index words) {
  Index i = 0;
  for (; i + kTogether <= rows; i += kTogether) {
    score_block<kTogether>(x + i * width, weight2, bias2, weight3, bias3, width, out + i,
                           gates == nullptr ? nullptr : gates + i * words, words);
  }
  for (; i < rows; ++i) {
    score_block<1>(x + i * width, weight2, bias2, weight3, bias3, width, out + i,
                   gates == nullptr ? nullptr : gates + i * words, words);
  }
}

void spread_gates(const std::uint32_t* gates, Index words, const float* value, Index width, Index rows, float* out) {
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < width; k += kWidth) {
      Vector here;
      select(gates[i * words + k / 32] >> (k % 32), value[i], here);
      store(here, out + i * width + k);
    }
  }
}

}  // namespace muster
