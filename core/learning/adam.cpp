#include "learning/adam.hpp"

#include <cmath>

namespace muster {

namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
constexpr Index kSquareLanes = 8;

}  // namespace

void climb(const AdamStep& step, Array1<const double> gradient, const Moments& moments, Array1<double> theta) {
  const double* const slopes = gradient.data;
  double* __restrict const means = moments.mean.data;
  double* __restrict const variances = moments.variance.data;
  double* __restrict const to = theta.data;
  const double keep = 1.0 - step.rate * step.weight_decay;
  for (Index k = 0; k < theta.size; ++k) {
    const double mean = kBeta1 * means[k] + (1.0 - kBeta1) * slopes[k];
    const double variance = kBeta2 * variances[k] + (1.0 - kBeta2) * (slopes[k] * slopes[k]);
    means[k] = mean;
    variances[k] = variance;
    to[k] = keep * to[k] +
            step.rate * (mean / step.mean_weight) / (std::sqrt(variance / step.variance_weight) + kEpsilon);
  }
}

double sum_squares(Array1<const double> x) {
  double part[kSquareLanes] = {};
  Index k = 0;
  for (; k + kSquareLanes <= x.size; k += kSquareLanes) {
    for (Index lane = 0; lane < kSquareLanes; ++lane) part[lane] += x.data[k + lane] * x.data[k + lane];
  }
  for (; k < x.size; ++k) part[0] += x.data[k] * x.data[k];
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

}  // namespace muster
