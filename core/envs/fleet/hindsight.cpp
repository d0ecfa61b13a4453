#include "hindsight.hpp"

#include <algorithm>
#include <limits>

namespace muster::fleet {

namespace {

enum Column : Index { kMinute, kIndex, kPickup, kDropoff };

}  // namespace

void score_flow(const Fleet& fleet, const Settings& settings, const Roads& roads, Index slot, Array2<const Index> requests,
                Array2<double> scores) {
  const Index n = fleet.zone.columns, now = fleet.minute[slot];
  const double cost = settings.cost;
  std::fill_n(scores.data, scores.rows * scores.columns, -std::numeric_limits<double>::infinity());
  for (Index j = 0; j < requests.rows; ++j) {
    const Index t = requests(j, kMinute), pickup = requests(j, kPickup), dropoff = requests(j, kDropoff);
    const double margin = roads.fares(pickup, dropoff) - cost * roads.metres(pickup, dropoff);
    for (Index i = 0; i < n; ++i) {
      // A full vehicle cannot take one now; for what comes later the bound does not look at queues.
      if (t == now && fleet.held(slot, i) >= kQueue) continue;
      const Index zone = fleet.zone(slot, i);
      if (std::max(t, now + fleet.free(slot, i)) + roads.minutes(zone, pickup) <= t + settings.wait) {
        scores(i, j) = margin - cost * roads.metres(zone, pickup);
      }
    }
    // At most one new request a vehicle and decision.
    for (Index k = 0; k < requests.rows && requests(k, kMinute) < t; ++k) {
      const Index there = requests(k, kDropoff);
      const Index done = requests(k, kMinute) + roads.minutes(requests(k, kPickup), there);
      if (std::max(t, done) + roads.minutes(there, pickup) <= t + settings.wait) {
        scores(n + k, j) = margin - cost * roads.metres(there, pickup);
      }
    }
    scores(n + j, j) = 0.0;
  }
}

}  // namespace muster::fleet
