// Reset of an episode, and its requests: drawn from rates, or recorded.
#include <algorithm>
#include <cmath>

#include "../../random.hpp"
#include "fleet.hpp"

namespace muster::fleet {

namespace {

void place_vehicles(const Fleet& fleet, Index slot, bool evenly, Index n_zones) {
  for (Index i = 0; i < fleet.zone.columns; ++i) {
    fleet.number(slot, i) = i;
    fleet.zone(slot, i) = evenly ? i % n_zones : below(fleet.rng[slot], n_zones);
    fleet.free(slot, i) = 0;
    fleet.first(slot, i) = 0;
    fleet.held(slot, i) = 0;
    fleet.taken(slot, i) = -1;
    std::ranges::fill(fleet.stops.row(slot, i), fleet.zone(slot, i));
  }
}

// How many of the rising values are at most x: std::upper_bound without branches, half of which would be mispredicted.
Index count_up_to(Array1<const double> values, double x) {
  Index begin = 0;
  for (Index size = values.size; size > 1;) {
    const Index half = size / 2;
    begin += values[begin + half - 1] <= x ? half : 0;
    size -= half;
  }
  return begin + (values[begin] <= x);
}

void load_day(const Fleet& fleet, const Days& days, Index slot, std::uint64_t seed) {
  const Index n_days = days.pickups.layers;
  // Drawn in any case, so that what else is random does not depend on how the day was chosen.
  const Index drawn = below(fleet.rng[slot], n_days);
  const Index day = seed < static_cast<std::uint64_t>(n_days) ? static_cast<Index>(seed) : drawn;
  const Index size = days.pickups.rows * days.pickups.columns;
  std::copy_n(days.pickups.layer(day).data, size, fleet.pickups.layer(slot).data);
  std::copy_n(days.dropoffs.layer(day).data, size, fleet.dropoffs.layer(slot).data);
  fleet.lost[slot] = days.lost[day];
  count_seen(fleet, slot);
}

}  // namespace

void count_seen(const Fleet& fleet, Index slot) {
  const Index minute = fleet.minute[slot];
  if (minute >= fleet.pickups.rows) return;
  fleet.seen[slot] += std::ranges::count_if(fleet.pickups.row(slot, minute), [](Zone zone) { return zone >= 0; });
}

void draw_requests(const Fleet& fleet, const Demand& demand, Index n_zones, Index slot, double busyness) {
  const Index n_minutes = fleet.pickups.rows, limit = fleet.pickups.columns;
  const Array1<const double> cumulative = demand.cumulative;
  std::uint64_t& rng = fleet.rng[slot];
  const bool begun = fleet.minute[slot] > 0 || fleet.seen[slot] > 0;
  for (Index minute = fleet.minute[slot] + begun; minute < n_minutes; ++minute) {
    const Array1<Zone> pickups = fleet.pickups.row(slot, minute), dropoffs = fleet.dropoffs.row(slot, minute);
    std::ranges::fill(pickups, Zone{-1});
    std::ranges::fill(dropoffs, Zone{-1});
    // A Poisson number: exponential gaps until the minute is over.
    double left = demand.expected[minute] * busyness;
    Index count = 0;
    while (true) {
      left += std::log(1.0 - uniform(rng));
      if (left < 0.0) break;
      // Rounded sums of chances may end just below 1.
      const Index pair = std::min(count_up_to(cumulative, uniform(rng)), cumulative.size - 1);
      if (count < limit) {
        pickups[count] = static_cast<Zone>(pair / n_zones);
        dropoffs[count] = static_cast<Zone>(pair % n_zones);
        ++count;
      } else {
        fleet.lost[slot] += 1;
      }
    }
  }
  if (!begun) count_seen(fleet, slot);
}

void reset(const Fleet& fleet, const Settings& settings, const Demand& demand, const Days& days, Index n_zones,
           Array1<const Index> slots, Array1<const std::uint64_t> seeds) {
  for (Index k = 0; k < slots.size; ++k) {
    const Index slot = slots[k];
    fleet.rng[slot] = seeds[k];
    fleet.minute[slot] = 0;
    fleet.running[slot] = true;
    fleet.lost[slot] = 0;
    fleet.served[slot] = 0;
    fleet.seen[slot] = 0;
    fleet.earned[slot] = 0.0;
    fleet.empty[slot] = 0.0;
    place_vehicles(fleet, slot, settings.evenly, n_zones);
    if (days.pickups.layers > 0) {
      load_day(fleet, days, slot, seeds[k]);
    } else {
      const double busyness = demand.busyness[below(fleet.rng[slot], demand.busyness.size)];
      draw_requests(fleet, demand, n_zones, slot, busyness);
    }
  }
}

}  // namespace muster::fleet
