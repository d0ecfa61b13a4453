#include "integrality.hpp"

#include <cmath>

namespace muster {

namespace {

// Numbers are looked at as multiples of 1 over these ...
constexpr double kScales[] = {1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0, 100.0, 1000.0};
// ... to this accuracy, and are integers only below this size.
constexpr double kIntegerTolerance = 1e-9;
constexpr double kLargestInteger = 1e9;

bool is_integer(double value) {
  return std::abs(value) < kLargestInteger && std::abs(value - std::rint(value)) <= kIntegerTolerance;
}

bool are_integers(const Array2<double>& values, Index n, Index m, double scale) {
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      const double value = scale * values(i, j);
      if (value != -kInfinity && !is_integer(value)) return false;
    }
  }
  return true;
}

}  // namespace

double scale_to_integers(const Array2<double>& values, Index n, Index m) {
  for (const double scale : kScales) {
    if (are_integers(values, n, m, scale)) return scale;
  }
  return 0.0;
}

Index common_divisor(Index a, Index b) {
  while (b != 0) {
    const Index rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

double integrality_of(const Instance& instance) {
  const double scale = scale_to_integers(instance.score, instance.n, instance.m);
  if (scale == 0.0) return 0.0;
  Index divisor = 0;
  for (Index i = 0; i < instance.n; ++i) {
    for (Index j = 0; j < instance.m; ++j) {
      const double score = instance.score(i, j);
      if (score > -kInfinity && divisor != 1) {
        divisor = common_divisor(std::abs(static_cast<Index>(std::rint(scale * score))), divisor);
      }
    }
  }
  return static_cast<double>(divisor) / scale;
}

double integral_limit(const Instance& instance, double limit, double unit) {
  if (unit == 0.0) return limit;
  double least = 0.0;
  if (instance.idle < 0.0) {
    for (Index i = 0; i < instance.n; ++i) {
      double low = kInfinity;
      for (Index j = 0; j < instance.m; ++j) {
        if (instance.score(i, j) > -kInfinity) low = std::min(low, instance.score(i, j));
      }
      least += low;
    }
  }
  if (limit < least || std::abs(limit) > kLargestInteger * unit) return limit;
  return std::floor(limit / unit + 1e-6) * unit;
}

}  // namespace muster
