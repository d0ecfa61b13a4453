// SIMD: the largest of many numbers, several at a time.
//
// A maximum does not depend on the order, so these take as many lanes as the processor has; none of the numbers may be
// NaN. Written out because compilers that have to respect NaN and -0 take one number after the other.
#pragma once

#include <algorithm>
#include <limits>

#include "../array.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The larger or smaller of two numbers, neither of which is NaN.
inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

// Some doubles side by side.
struct Lanes {
#if defined(__AVX__)
  static constexpr Index kCount = 4;
  __m256d value;
  static Lanes load(const double* from) { return {_mm256_loadu_pd(from)}; }
  static Lanes fill(double with) { return {_mm256_set1_pd(with)}; }
  void store(double* to) const { _mm256_storeu_pd(to, value); }
  friend Lanes larger(Lanes a, Lanes b) { return {_mm256_max_pd(a.value, b.value)}; }
  friend Lanes smaller(Lanes a, Lanes b) { return {_mm256_min_pd(a.value, b.value)}; }
  friend Lanes operator+(Lanes a, Lanes b) { return {_mm256_add_pd(a.value, b.value)}; }
  friend Lanes operator-(Lanes a, Lanes b) { return {_mm256_sub_pd(a.value, b.value)}; }
  friend Lanes operator*(Lanes a, Lanes b) { return {_mm256_mul_pd(a.value, b.value)}; }
  // Whether a lane of a equals that of b, or is at least as large.
  friend bool any_equal(Lanes a, Lanes b) { return _mm256_movemask_pd(_mm256_cmp_pd(a.value, b.value, _CMP_EQ_OQ)) != 0; }
  friend bool any_reach(Lanes a, Lanes b) { return _mm256_movemask_pd(_mm256_cmp_pd(a.value, b.value, _CMP_GE_OQ)) != 0; }
  // x where a < b, else y.
  friend Lanes where_less(Lanes a, Lanes b, Lanes x, Lanes y) {
    return {_mm256_blendv_pd(y.value, x.value, _mm256_cmp_pd(a.value, b.value, _CMP_LT_OQ))};
  }
#elif defined(__SSE2__)
  static constexpr Index kCount = 2;
  __m128d value;
  static Lanes load(const double* from) { return {_mm_loadu_pd(from)}; }
  static Lanes fill(double with) { return {_mm_set1_pd(with)}; }
  void store(double* to) const { _mm_storeu_pd(to, value); }
  friend Lanes larger(Lanes a, Lanes b) { return {_mm_max_pd(a.value, b.value)}; }
  friend Lanes smaller(Lanes a, Lanes b) { return {_mm_min_pd(a.value, b.value)}; }
  friend Lanes operator+(Lanes a, Lanes b) { return {_mm_add_pd(a.value, b.value)}; }
  friend Lanes operator-(Lanes a, Lanes b) { return {_mm_sub_pd(a.value, b.value)}; }
  friend Lanes operator*(Lanes a, Lanes b) { return {_mm_mul_pd(a.value, b.value)}; }
  friend bool any_equal(Lanes a, Lanes b) { return _mm_movemask_pd(_mm_cmpeq_pd(a.value, b.value)) != 0; }
  friend bool any_reach(Lanes a, Lanes b) { return _mm_movemask_pd(_mm_cmpge_pd(a.value, b.value)) != 0; }
  friend Lanes where_less(Lanes a, Lanes b, Lanes x, Lanes y) {
    const __m128d less = _mm_cmplt_pd(a.value, b.value);
    return {_mm_or_pd(_mm_and_pd(less, x.value), _mm_andnot_pd(less, y.value))};
  }
#else
  static constexpr Index kCount = 1;
  double value;
  static Lanes load(const double* from) { return {*from}; }
  static Lanes fill(double with) { return {with}; }
  void store(double* to) const { *to = value; }
  friend Lanes larger(Lanes a, Lanes b) { return {a.value > b.value ? a.value : b.value}; }
  friend Lanes smaller(Lanes a, Lanes b) { return {a.value < b.value ? a.value : b.value}; }
  friend Lanes operator+(Lanes a, Lanes b) { return {a.value + b.value}; }
  friend Lanes operator-(Lanes a, Lanes b) { return {a.value - b.value}; }
  friend Lanes operator*(Lanes a, Lanes b) { return {a.value * b.value}; }
  friend bool any_equal(Lanes a, Lanes b) { return a.value == b.value; }
  friend bool any_reach(Lanes a, Lanes b) { return a.value >= b.value; }
  friend Lanes where_less(Lanes a, Lanes b, Lanes x, Lanes y) { return a.value < b.value ? x : y; }
#endif
};

inline double largest_lane(Lanes lanes) {
  double values[Lanes::kCount];
  lanes.store(values);
  double best = values[0];
  for (Index k = 1; k < Lanes::kCount; ++k) best = larger(values[k], best);
  return best;
}

inline double smallest_lane(Lanes lanes) { return -largest_lane(Lanes::fill(0.0) - lanes); }

// The largest term(j) for j < count, -infinity if there are none. `term` is called with Lanes-wide and single steps:
// term(j, Lanes{}) for a pack that starts at j, term(j, 0.0) for one number.
template <class Term>
double largest_of(Index count, const Term& term) {
  constexpr Index kStep = 4 * Lanes::kCount;
  double best = -kInfinity;
  Index j = 0;
  if (count >= kStep) {
    Lanes a = term(0, Lanes{}), b = term(Lanes::kCount, Lanes{});
    Lanes c = term(2 * Lanes::kCount, Lanes{}), d = term(3 * Lanes::kCount, Lanes{});
    for (j = kStep; j + kStep <= count; j += kStep) {
      a = larger(term(j, Lanes{}), a);
      b = larger(term(j + Lanes::kCount, Lanes{}), b);
      c = larger(term(j + 2 * Lanes::kCount, Lanes{}), c);
      d = larger(term(j + 3 * Lanes::kCount, Lanes{}), d);
    }
    best = largest_lane(larger(larger(a, b), larger(c, d)));
  }
  for (; j < count; ++j) best = larger(term(j, 0.0), best);
  return best;
}

// The largest values[j] - prices[j]; -infinity if there are none.
inline double largest_margin(const double* values, const double* prices, Index count) {
  struct Margin {
    const double* values;
    const double* prices;
    Lanes operator()(Index j, Lanes) const { return Lanes::load(values + j) - Lanes::load(prices + j); }
    double operator()(Index j, double) const { return values[j] - prices[j]; }
  };
  return largest_of(count, Margin{values, prices});
}

// The first j where values[j] - prices[j] is the margin, which is that of one of them.
inline Index index_of_margin(double margin, const double* values, const double* prices, [[maybe_unused]] Index count) {
  Index j = 0;
  const Lanes wanted = Lanes::fill(margin);
  while (j + Lanes::kCount <= count && !any_equal(Lanes::load(values + j) - Lanes::load(prices + j), wanted)) {
    j += Lanes::kCount;
  }
  while (values[j] - prices[j] != margin) ++j;
  return j;
}

// The largest of some values; -infinity if there are none.
inline double largest(const double* values, Index count) {
  struct Value {
    const double* values;
    Lanes operator()(Index j, Lanes) const { return Lanes::load(values + j); }
    double operator()(Index j, double) const { return values[j]; }
  };
  return largest_of(count, Value{values});
}

// The first j where values[j] is the value, which is that of one of them.
inline Index index_of(double value, const double* values, Index count) {
  Index j = 0;
  const Lanes wanted = Lanes::fill(value);
  while (j + Lanes::kCount <= count && !any_equal(Lanes::load(values + j), wanted)) j += Lanes::kCount;
  while (values[j] != value) ++j;
  return j;
}

struct Extent {
  double low;
  double high;
};

// The smallest and the largest; both NaN if any of them is, infinity and -infinity if there are none.
Extent extent(const double* values, Index count);

}  // namespace muster
