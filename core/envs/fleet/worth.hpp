// Expected return of a vehicle that becomes free in a zone: a mean-field model of the whole hour.
//
// Let x vehicles stand free in a zone, and D ~ Poisson requests leave it in a minute, each taken by a vehicle while there
// are any. One vehicle more is needed with probability q = P(D > X), X ~ Poisson(x), so that it is worth
//
//     taking(t, z) = mean over destinations d of [margin(z, d) + worth(t + minutes, d)]
//     worth(t, z) = q · taking(t, z) + (1 - q) · worth(t + 1, z)
//
// Vehicles flow where the requests take them, which gives x: a few damped rounds settle it.
#pragma once

#include <utility>

#include "../../array.hpp"

namespace muster::fleet {

// E[min(D, X)] and P(D > X) for independent Poisson D and X of means `rate` and `x`.
std::pair<double, double> meet(double x, double rate);

// worth and taking, both [T + 1, Z], from expected [T, Z] requests, shares [Z, Z] of destinations by origin, and margins
// [Z, Z], the fare less driving; vehicles are spread evenly at first.
void expect_worth(Array2<const double> expected, Array2<const double> shares, Array2<const double> margins,
                  Array2<const Index> minutes, double vehicles, Array2<double> worth, Array2<double> taking);

}  // namespace muster::fleet
