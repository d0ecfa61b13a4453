// Observations of a fleet, in units that mean the same in another city and with another number of vehicles.
//
// Money is counted in mean margins of a request, vehicles and requests in a zone in mean vehicles a zone, trips in mean
// minutes of a trip, waiting in fives. Positions are not observed: what a zone is good for is observed through its demand,
// the chance to be needed there, and its worth.
#pragma once

#include "fleet.hpp"

namespace muster::fleet {

constexpr Index kAhead = 10;    // minutes over which demand is summed
constexpr Index kHorizon = 60;  // minutes up to which arrivals are told apart

// Known demand and worth of a city.
struct Outlook {
  Array1<const double> usual;    // [T + kAhead + kHorizon + 2] requests to expect in all zones, up to each minute
  Array1<const double> origins;  // [Z] share of the requests that start in each zone
  Array2<const double> worth;    // [T + 1, Z] of a vehicle that becomes free there and then; see worth.hpp
  Array2<const double> taking;   // [T + 1, Z] of one that takes a request there and then
  double unit;                   // mean margin of a request
  double trip;                   // mean minutes of a request, from pick-up to drop-off
};

// The arrays of an observation, to be filled.
struct Features {
  Array3<float> agents;
  Array3<float> tasks;
  Array4<float> pairs;  // [B, N, M, 4], or [B, N, M, 0] where pairs are not observed
  Array4<float> task_pairs;
  Array2<float> global;
  Array2<bool> task_alive;
  Array3<bool> allowed;
  Array3<double> prior;
};

// Fill the features of the slots from begin to before end; zeros where there is no request.
void observe(const Fleet& fleet, const Settings& settings, const Roads& roads, const Outlook& outlook, Index begin, Index end,
             const Features& features);

}  // namespace muster::fleet
