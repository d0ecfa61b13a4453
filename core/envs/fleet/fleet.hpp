// A fleet of vehicles and the requests of one hour: each request is taken by a vehicle in its minute, or refused.
// B slots, N vehicles, at most M requests a minute, T minutes, Z zones. Every function touches its own slots only.
#pragma once

#include <cstdint>

#include "../../array.hpp"
#include "../step_result.hpp"

namespace muster::fleet {

using Zone = std::int16_t;

constexpr Index kQueue = 2;  // requests that a vehicle holds at most: one in service, one queued
constexpr Index kNever = Index{1} << 30;

struct Settings {
  Index wait;   // minutes from the decision within which a request must be picked up
  double cost;  // of a metre, empty or full
  bool evenly;  // vehicle i starts in zone i mod Z; otherwise at a random zone
};

// Distance, time and fare from zone to zone [Z, Z].
struct Roads {
  Array2<const double> metres;
  Array2<const Index> minutes;
  Array2<const double> fares;
};

// The state of B episodes.
struct Fleet {
  Array1<std::uint64_t> rng;
  Array1<Index> minute;  // the decision that is due
  Array1<bool> running;
  Array2<Index> zone;      // [B, N] where the vehicle is once it has done all it holds
  Array2<Index> free;      // [B, N] minutes until then
  Array2<Index> first;     // [B, N] minutes until the request in service is done
  Array2<Index> held;      // [B, N] requests held: 0, 1 or 2
  Array2<Index> number;    // [B, N] which vehicle it is: decides between equals, however vehicles are numbered
  Array3<Index> stops;     // [B, N, 5] origin, then pick-up and drop-off of the request in service and of the queued one
  Array2<Index> taken;     // [B, N] the request taken at the last decision, or -1
  Array3<Zone> pickups;    // [B, T, M] each minute's requests; -1 where there is none
  Array3<Zone> dropoffs;   // [B, T, M]
  Array1<Index> lost;      // requests beyond the limit of their minute
  Array1<double> earned;
  Array1<Index> served;
  Array1<Index> seen;      // requests up to and including the present minute's
  Array1<double> empty;    // metres driven without a passenger
};

// Distribution that requests are drawn from.
struct Demand {
  Array1<const double> expected;    // [T] requests to expect in each minute
  Array1<const double> cumulative;  // [Z·Z] chance that a request goes from zone to zone, summed up
  Array1<const double> busyness;    // levels, each as likely
};

// Recorded requests, instead of drawn ones.
struct Days {
  Array3<const Zone> pickups;  // [D, T, M]
  Array3<const Zone> dropoffs;
  Array1<const Index> lost;  // [D]
};

// Reset slots[k] to the first state of the episode of seeds[k]: its requests are those of a recorded day, if there are any,
// the one that the seed numbers or, beyond their number, draws; otherwise they are drawn.
void reset(const Fleet& fleet, const Settings& settings, const Demand& demand, const Days& days, Index n_zones,
           Array1<const Index> slots, Array1<const std::uint64_t> seeds);

// The requests after the present minute, drawn again; in the first minute before any was seen, the present minute's too.
// `busyness` multiplies the rates.
void draw_requests(const Fleet& fleet, const Demand& demand, Index n_zones, Index slot, double busyness);

// Add the present minute's requests to those seen.
void count_seen(const Fleet& fleet, Index slot);

// Requests are taken, then a minute passes. Of several vehicles for one request the first to be there takes it; a vehicle
// that cannot be there in time takes none.
void step(const Fleet& fleet, const Settings& settings, const Roads& roads, Array2<const Index> assignment, Index begin,
          Index end, const StepResult& result);

// assignment [B, N]: requests in order, each to the nearest vehicle that is free to take it, in time and at a profit.
void send_greedily(const Fleet& fleet, const Settings& settings, const Roads& roads, Array2<Index> assignment);

// Minutes until vehicle i can be at `pickup`, after all it still has to do; kNever if it holds all it can.
inline Index time_to(const Fleet& fleet, const Roads& roads, Index slot, Index i, Index pickup) {
  if (fleet.held(slot, i) >= kQueue) return kNever;
  return fleet.free(slot, i) + roads.minutes(fleet.zone(slot, i), pickup);
}

}  // namespace muster::fleet
