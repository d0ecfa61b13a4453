// Adam, and the norm of a gradient.
#pragma once

#include "array.hpp"

namespace muster {

// Adam's moments of the gradients, without bias correction.
struct Moments {
  Array1<double> mean;
  Array1<double> variance;
};

struct AdamStep {
  double rate;
  double weight_decay;     // decoupled, as in AdamW
  double mean_weight;      // 1 - beta1^t: share of the mean that is known after t gradients
  double variance_weight;  // 1 - beta2^t
};

// One step of Adam up the gradient; updates moments and theta.
void climb(const AdamStep& step, Array1<const double> gradient, const Moments& moments, Array1<double> theta);

// Sum of squares, in 8 partial sums that are added up in pairs.
double sum_squares(Array1<const double> x);

}  // namespace muster
