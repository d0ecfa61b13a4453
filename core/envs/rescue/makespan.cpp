#include "makespan.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "../../arena.hpp"

namespace muster::rescue {

namespace {

using Lengths = Array2<std::int32_t>;

// Subsets between two looks at the stop flag: well under 5 ms of work in every loop.
constexpr Index kSubsetsBetweenStops = 256;

bool holds(Index subset, Index stop) { return (subset >> stop & 1) != 0; }

// lengths [2^M, M]: of the shortest path that starts at stop j of the subset and visits all of it. False if stopped.
bool find_path_lengths(Array2<const Index> between, Lengths lengths, Stop& stop) {
  const Index n_stops = between.rows;
  std::fill_n(lengths.data, lengths.rows * lengths.columns, 0);
  for (Index subset = 1; subset < lengths.rows; ++subset) {
    if (subset % kSubsetsBetweenStops == 0 && stop.requested()) return false;
    for (Index j = 0; j < n_stops; ++j) {
      const Index rest = subset & ~(Index{1} << j);
      if (rest == subset || rest == 0) continue;
      Index best = std::numeric_limits<std::int32_t>::max();
      for (Index k = 0; k < n_stops; ++k) {
        if (holds(rest, k)) best = std::min(best, between(j, k) + lengths(rest, k));
      }
      lengths(subset, j) = static_cast<std::int32_t>(best);
    }
  }
  return true;
}

// tours [2^M]: length of one vehicle's shortest route through each subset of the stops.
void find_tour_lengths(Array1<const Index> from_vehicle, Lengths lengths, Array1<std::int32_t> tours) {
  tours[0] = 0;
  for (Index subset = 1; subset < tours.size; ++subset) {
    Index best = std::numeric_limits<std::int32_t>::max();
    for (Index j = 0; j < from_vehicle.size; ++j) {
      if (holds(subset, j)) best = std::min(best, from_vehicle[j] + lengths(subset, j));
    }
    tours[subset] = static_cast<std::int32_t>(best);
  }
}

// The subsets that fit in `makespan` and to which no stop can be added.
void list_maximal_subsets(Array1<std::int32_t> tours, Index makespan, Index n_stops, std::vector<Index>& found) {
  found.clear();
  for (Index subset = 0; subset < tours.size; ++subset) {
    if (tours[subset] > makespan) continue;
    bool maximal = true;
    for (Index j = 0; j < n_stops && maximal; ++j) {
      maximal = holds(subset, j) || tours[subset | Index{1} << j] > makespan;
    }
    if (maximal) found.push_back(subset);
  }
}

// Whether the vehicles can cover every stop within `makespan`. covered(i, A): vehicles 0..i can cover subset A; of the last
// vehicle only the full set is decided.
bool can_cover(Lengths tours, Index makespan, Index n_stops, Array2<bool> covered, std::vector<Index>& choices, Stop& stop) {
  const Index full = tours.columns - 1;
  for (Index subset = 0; subset <= full; ++subset) covered(0, subset) = tours(0, subset) <= makespan;
  for (Index i = 1; i < tours.rows; ++i) {
    list_maximal_subsets(tours.row(i), makespan, n_stops, choices);
    for (Index subset = i == tours.rows - 1 ? full : 0; subset <= full; ++subset) {
      if (subset % kSubsetsBetweenStops == 0 && stop.requested()) return false;
      covered(i, subset) = std::ranges::any_of(choices, [&](Index choice) { return covered(i - 1, subset & ~choice); });
    }
  }
  return covered(tours.rows - 1, full);
}

// The order in which one vehicle visits `subset` fastest.
void write_route(Index subset, Array1<const Index> from_vehicle, Array2<const Index> between, Lengths lengths,
                 Array1<Index> route) {
  Index here = -1;
  for (Index position = 0; subset != 0; ++position) {
    Index best = std::numeric_limits<Index>::max();
    Index next = -1;
    for (Index j = 0; j < from_vehicle.size; ++j) {
      if (!holds(subset, j)) continue;
      const Index length = (here < 0 ? from_vehicle[j] : between(here, j)) + lengths(subset, j);
      if (length < best) {
        best = length;
        next = j;
      }
    }
    route[position] = next;
    here = next;
    subset &= ~(Index{1} << next);
  }
}

}  // namespace

Index find_fastest_routes(Array2<const Index> from_vehicles, Array2<const Index> between, Array2<Index> routes, Stop& stop) {
  const Index n_vehicles = from_vehicles.rows, n_stops = from_vehicles.columns;
  const Index n_subsets = Index{1} << n_stops;
  std::fill_n(routes.data, n_vehicles * n_stops, -1);
  Arena arena;
  const Lengths lengths = arena.make2<std::int32_t>(n_subsets, n_stops);
  if (!find_path_lengths(between, lengths, stop)) return -1;
  const Lengths tours = arena.make2<std::int32_t>(n_vehicles, n_subsets);
  for (Index i = 0; i < n_vehicles; ++i) {
    if (stop.requested()) return -1;
    find_tour_lengths(from_vehicles.row(i), lengths, tours.row(i));
  }
  // No makespan is shorter than the way to the stop that is farthest from every vehicle.
  Index makespan = 0;
  for (Index j = 0; j < n_stops; ++j) {
    Index nearest = std::numeric_limits<Index>::max();
    for (Index i = 0; i < n_vehicles; ++i) nearest = std::min(nearest, from_vehicles(i, j));
    makespan = std::max(makespan, nearest);
  }
  const Array2<bool> covered = arena.make2<bool>(n_vehicles, n_subsets);
  std::vector<Index> choices;
  while (!can_cover(tours, makespan, n_stops, covered, choices, stop)) {
    if (stop.requested()) return -1;
    ++makespan;
  }
  Index left = n_subsets - 1;
  for (Index i = n_vehicles - 1; i > 0; --i) {
    list_maximal_subsets(tours.row(i), makespan, n_stops, choices);
    for (const Index choice : choices) {
      if (!covered(i - 1, left & ~choice)) continue;
      write_route(left & choice, from_vehicles.row(i), between, lengths, routes.row(i));
      left &= ~choice;
      break;
    }
  }
  write_route(left, from_vehicles.row(0), between, lengths, routes.row(0));
  return makespan;
}

}  // namespace muster::rescue
