#include "worth.hpp"

#include <algorithm>
#include <cmath>

#include "../../arena.hpp"

namespace muster::fleet {

namespace {

constexpr int kRounds = 12;
constexpr double kDamping = 0.5;  // undamped, the rounds swing between two answers
constexpr double kNegligible = 1e-9;
constexpr int kMostTerms = 1000;

// A trip takes a minute at least, as far as worth is concerned.
Index arrive(Index t, Index minutes) { return t + std::max<Index>(minutes, 1); }

// needed [T, Z]: the chance that one vehicle more is needed.
void find_needed(Array2<const double> expected, Array2<const double> shares, Array2<const Index> minutes, double vehicles,
                 Array2<double> needed) {
  const Index n_minutes = expected.rows, n_zones = expected.columns;
  Arena arena;
  const Array2<double> standing = arena.zeros2<double>(n_minutes, n_zones), arriving = arena.make2<double>(n_minutes, n_zones);
  const Array1<double> now = arena.make1<double>(n_zones), served = arena.make1<double>(n_zones);
  for (int round = 0; round < kRounds; ++round) {
    std::fill_n(arriving.data, n_minutes * n_zones, 0.0);
    std::ranges::fill(now, vehicles / static_cast<double>(n_zones));
    for (Index t = 0; t < n_minutes; ++t) {
      for (Index z = 0; z < n_zones; ++z) now[z] += arriving(t, z);
      for (Index z = 0; z < n_zones; ++z) {
        standing(t, z) += (round == 0 ? 1.0 : kDamping) * (now[z] - standing(t, z));
        const auto [both, more] = meet(standing(t, z), expected(t, z));
        needed(t, z) = more;
        served[z] = std::min(both, now[z]);
        for (Index d = 0; d < n_zones; ++d) {
          const Index after = arrive(t, minutes(z, d));
          if (after < n_minutes) arriving(after, d) += served[z] * shares(z, d);
        }
      }
      for (Index z = 0; z < n_zones; ++z) now[z] -= served[z];
    }
  }
}

}  // namespace

std::pair<double, double> meet(double x, double rate) {
  double both = 0.0, more = 0.0;
  double at_x = std::exp(-x), at_d = std::exp(-rate);
  double up_to_x = at_x, up_to_d = at_d;
  for (int k = 1; k < kMostTerms; ++k) {
    const double above_x = std::max(1.0 - up_to_x, 0.0), above_d = std::max(1.0 - up_to_d, 0.0);
    more += at_x * above_d;
    both += above_x * above_d;
    if ((above_d < kNegligible && k > rate) || (above_x < kNegligible && k > x)) break;
    at_x *= x / k;
    at_d *= rate / k;
    up_to_x += at_x;
    up_to_d += at_d;
  }
  return {both, more};
}

void expect_worth(Array2<const double> expected, Array2<const double> shares, Array2<const double> margins,
                  Array2<const Index> minutes, double vehicles, Array2<double> worth, Array2<double> taking) {
  const Index n_minutes = expected.rows, n_zones = expected.columns;
  Arena arena;
  const Array2<double> needed = arena.make2<double>(n_minutes, n_zones);
  find_needed(expected, shares, minutes, vehicles, needed);
  std::fill_n(worth.data, worth.rows * n_zones, 0.0);
  std::fill_n(taking.data, taking.rows * n_zones, 0.0);
  for (Index t = n_minutes - 1; t >= 0; --t) {
    for (Index z = 0; z < n_zones; ++z) {
      double sum = 0.0;
      for (Index d = 0; d < n_zones; ++d) {
        sum += shares(z, d) * (margins(z, d) + worth(std::min(arrive(t, minutes(z, d)), n_minutes), d));
      }
      taking(t, z) = sum;
      worth(t, z) = needed(t, z) * sum + (1.0 - needed(t, z)) * worth(t + 1, z);
    }
  }
}

}  // namespace muster::fleet
