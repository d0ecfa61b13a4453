// Integrality of values: a sum of multiples of a unit is at most the next multiple of it below a bound.
#pragma once

#include "../instance.hpp"

namespace muster {

// The first of a few scales that makes all finite values[:n, :m] integers, or 0 if none does.
double scale_to_integers(const Array2<double>& values, Index n, Index m);

// The largest integer that divides both.
Index common_divisor(Index a, Index b);

// The unit that every score, and so the value of every assignment, is a multiple of; 0 if there is none.
double integrality_of(const Instance& instance);

// The largest value within `limit` that an assignment can have, where values are multiples of `unit` (0 for none).
//
// A limit below what any assignment of all agents is worth counts penalties for agents left out, and stays as it is (as
// where an agent can do nothing at all).
double integral_limit(const Instance& instance, double limit, double unit);

}  // namespace muster
