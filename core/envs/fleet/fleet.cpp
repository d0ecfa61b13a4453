#include "fleet.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace muster::fleet {

namespace {

// Vehicle i takes a request; returns its profit: the fare less the cost of every metre driven for it.
double take_request(const Fleet& fleet, const Roads& roads, Index slot, Index i, Index pickup, Index dropoff, double cost) {
  const Index here = fleet.zone(slot, i);
  const Index held = fleet.held(slot, i);
  fleet.free(slot, i) += roads.minutes(here, pickup) + roads.minutes(pickup, dropoff);
  if (held == 0) {
    fleet.first(slot, i) = fleet.free(slot, i);
    fleet.stops(slot, i, 0) = here;
  }
  fleet.stops(slot, i, 1 + 2 * held) = pickup;
  fleet.stops(slot, i, 2 + 2 * held) = dropoff;
  fleet.held(slot, i) = held + 1;
  fleet.zone(slot, i) = dropoff;
  fleet.empty[slot] += roads.metres(here, pickup);
  return roads.fares(pickup, dropoff) - cost * (roads.metres(here, pickup) + roads.metres(pickup, dropoff));
}

// Vehicle i has done the request in service: it goes on with the queued one, if that is not done too.
void finish_request(const Fleet& fleet, Index slot, Index i) {
  Index& held = fleet.held(slot, i);
  Index& free = fleet.free(slot, i);
  Index& first = fleet.first(slot, i);
  const Array1<Index> stops = fleet.stops.row(slot, i);
  while (held > 0 && first <= 0) {
    --held;
    stops[0] = stops[2];
    if (held > 0) {
      first = free;
      stops[1] = stops[3];
      stops[2] = stops[4];
    }
  }
  if (held == 0) {
    free = 0;
    first = 0;
    std::ranges::fill(stops, fleet.zone(slot, i));
  }
}

// One minute passes. Whether a vehicle is busy is hard to predict: there is a branch only where a request is done.
void drive(const Fleet& fleet, Index slot) {
  for (Index i = 0; i < fleet.zone.columns; ++i) {
    const Index busy = fleet.held(slot, i) > 0;
    fleet.free(slot, i) -= busy;
    const Index left = fleet.first(slot, i) -= busy;
    if ((busy != 0) & (left <= 0)) finish_request(fleet, slot, i);
  }
}

// The vehicle that takes each request of a slot, and when it is there.
class Takers {
 public:
  explicit Takers(Index n_tasks) : taker_(n_tasks), arrival_(n_tasks) {}

  void choose(const Fleet& fleet, const Settings& settings, const Roads& roads, Array1<const Index> assignment, Index slot) {
    std::ranges::fill(taker_, -1);
    const Array1<Zone> pickups = fleet.pickups.row(slot, fleet.minute[slot]);
    for (Index i = 0; i < assignment.size; ++i) {
      fleet.taken(slot, i) = -1;
      const Index j = assignment[i];
      if (j < 0 || pickups[j] < 0) continue;
      const Index there = time_to(fleet, roads, slot, i, pickups[j]);
      if (there > settings.wait) continue;
      const Index best = taker_[j];
      if (best < 0 || there < arrival_[j] ||
          (there == arrival_[j] && fleet.number(slot, i) < fleet.number(slot, best))) {
        taker_[j] = i;
        arrival_[j] = there;
      }
    }
  }

  Index operator[](Index j) const { return taker_[j]; }

 private:
  std::vector<Index> taker_;
  std::vector<Index> arrival_;
};

}  // namespace

void step(const Fleet& fleet, const Settings& settings, const Roads& roads, Array2<const Index> assignment, Index begin,
          Index end, const StepResult& result) {
  const Index n_tasks = fleet.pickups.columns;
  Takers takers(n_tasks);
  for (Index slot = begin; slot < end; ++slot) {
    result.clear(slot);
    if (!fleet.running[slot]) continue;
    const Index minute = fleet.minute[slot];
    takers.choose(fleet, settings, roads, assignment.row(slot), slot);
    for (Index j = 0; j < n_tasks; ++j) {
      const Index i = takers[j];
      if (i < 0) continue;
      const Index pickup = fleet.pickups(slot, minute, j), dropoff = fleet.dropoffs(slot, minute, j);
      result.reward[slot] += take_request(fleet, roads, slot, i, pickup, dropoff, settings.cost);
      fleet.served[slot] += 1;
      fleet.taken(slot, i) = j;
    }
    drive(fleet, slot);
    fleet.earned[slot] += result.reward[slot];
    fleet.minute[slot] += 1;
    count_seen(fleet, slot);
    if (fleet.minute[slot] >= fleet.pickups.rows) {
      result.terminated[slot] = true;
      fleet.running[slot] = false;
    }
  }
}

void send_greedily(const Fleet& fleet, const Settings& settings, const Roads& roads, Array2<Index> assignment) {
  std::fill_n(assignment.data, assignment.rows * assignment.columns, -1);
  for (Index slot = 0; slot < assignment.rows; ++slot) {
    if (!fleet.running[slot]) continue;
    const Index minute = fleet.minute[slot];
    for (Index j = 0; j < fleet.pickups.columns; ++j) {
      const Index pickup = fleet.pickups(slot, minute, j), dropoff = fleet.dropoffs(slot, minute, j);
      if (pickup < 0) continue;
      Index best = -1;
      double nearest = std::numeric_limits<double>::infinity();
      for (Index i = 0; i < assignment.columns; ++i) {
        const double away = roads.metres(fleet.zone(slot, i), pickup);
        if (assignment(slot, i) >= 0 || away >= nearest) continue;
        if (time_to(fleet, roads, slot, i, pickup) > settings.wait) continue;
        if (roads.fares(pickup, dropoff) - settings.cost * (away + roads.metres(pickup, dropoff)) > 0.0) {
          best = i;
          nearest = away;
        }
      }
      if (best >= 0) assignment(slot, best) = j;
    }
  }
}

}  // namespace muster::fleet
