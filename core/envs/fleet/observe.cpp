#include "observe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../arena.hpp"

namespace muster::fleet {

namespace {

constexpr Index kRivals = 2;          // a vehicle that comes this many waiting times later still counts as there
constexpr double kPriorMinutes = 5.0; // minutes' worth of the usual demand that an estimate of busyness starts from
constexpr float kLeastProfit = -5.0f; // losses beyond this many mean margins are observed as this
constexpr double kWorthScale = 0.25;
constexpr double kMinutesUnit = 5.0;

// P(D >= least) for D ~ Poisson(mean).
double poisson_tail(double mean, Index least) {
  if (least <= 0) return 1.0;
  double chance = std::exp(-mean);
  double below = chance;
  for (Index k = 1; k < least; ++k) {
    chance *= mean / static_cast<double>(k);
    below += chance;
  }
  return std::max(1.0 - below, 0.0);
}

// Observes one slot after the other; the arrays of counts are reused.
class Observer {
 public:
  Observer(const Fleet& fleet, const Settings& settings, const Roads& roads, const Outlook& outlook, const Features& features)
      : fleet_(fleet),
        settings_(settings),
        roads_(roads),
        outlook_(outlook),
        features_(features),
        n_zones_(roads.minutes.rows),
        zones_per_vehicle_(static_cast<double>(n_zones_) / static_cast<double>(fleet.zone.columns)),
        with_pairs_(features.pairs.columns > 0),
        bound_(arena_.make2<Index>(n_zones_, kHorizon + 1)),
        ready_(arena_.make1<Index>(n_zones_)),
        here_(arena_.make1<Index>(n_zones_)),
        own_(arena_.make1<double>(fleet.zone.columns)),
        gained_(arena_.make1<double>(settings.wait + 1)),
        in_time_(arena_.make1<Index>(fleet.zone.columns)),
        there_(arena_.make1<Index>(fleet.zone.columns)) {}

  void observe(Index slot) {
    slot_ = slot;
    minute_ = fleet_.minute[slot];
    clear_features();
    count();
    observe_vehicles();
    if (minute_ == fleet_.pickups.rows) return;
    pickups_ = fleet_.pickups.row(slot, minute_);
    dropoffs_ = fleet_.dropoffs.row(slot, minute_);
    for (Index j = 0; j < pickups_.size; ++j) {
      if (pickups_[j] < 0) continue;
      observe_request(j);
      if (with_pairs_) {
        observe_pairs<true>(j);
        observe_other_requests(j);
      } else {
        observe_pairs<false>(j);
      }
    }
  }

 private:
  void clear_features() const {
    const Index n = features_.prior.rows, m = features_.prior.columns;
    std::fill_n(features_.tasks.layer(slot_).data, m * features_.tasks.columns, 0.0f);
    std::fill_n(features_.pairs.block(slot_).data, n * m * features_.pairs.columns, 0.0f);
    std::fill_n(features_.task_pairs.block(slot_).data, m * m * features_.task_pairs.columns, 0.0f);
    std::fill_n(features_.task_alive.row(slot_).data, m, false);
    std::fill_n(features_.allowed.layer(slot_).data, n * m, false);
    std::fill_n(features_.prior.layer(slot_).data, n * m, 0.0);
  }

  // Count vehicles and requests by zone, and fill the global features.
  void count() {
    const Index n = fleet_.zone.columns, n_minutes = fleet_.pickups.rows;
    std::fill_n(bound_.data, bound_.rows * bound_.columns, 0);
    std::ranges::fill(ready_, 0);
    std::ranges::fill(here_, 0);
    Index requests = 0, empty = 0;
    for (Index i = 0; i < n; ++i) {
      const Index zone = fleet_.zone(slot_, i), free = fleet_.free(slot_, i), held = fleet_.held(slot_, i);
      bound_(zone, std::min(free, kHorizon)) += free <= kHorizon;
      ready_[zone] += held < kQueue && free <= settings_.wait;
      empty += held == 0;
    }
    for (Index zone = 0; zone < n_zones_; ++zone) {
      for (Index k = 1; k <= kHorizon; ++k) bound_(zone, k) += bound_(zone, k - 1);
    }
    if (minute_ < n_minutes) {
      for (const Zone pickup : fleet_.pickups.row(slot_, minute_)) {
        if (pickup < 0) continue;
        here_[pickup] += 1;
        ++requests;
      }
    }
    const double minutes = static_cast<double>(n_minutes), usual = outlook_.usual[n_minutes];
    const double memory = kPriorMinutes * usual / minutes;
    busyness_ = (static_cast<double>(fleet_.seen[slot_]) + memory) /
                (outlook_.usual[std::min(minute_ + 1, n_minutes)] + memory);
    float* const global = &features_.global(slot_, 0);
    global[0] = static_cast<float>(static_cast<double>(minute_) / minutes);
    global[1] = static_cast<float>(busyness_ - 1.0);
    global[2] = static_cast<float>(static_cast<double>(empty) / static_cast<double>(n));
    global[3] = static_cast<float>(static_cast<double>(requests * n_minutes) / std::max(usual, 1e-9) - 1.0);
  }

  // Requests to expect from `zone` in the minutes from `begin` to before `end`.
  double demand_of(Index zone, Index begin, Index end) const {
    const Index last = outlook_.usual.size - 1;
    return busyness_ * outlook_.origins[zone] *
           (outlook_.usual[std::min(end, last)] - outlook_.usual[std::min(begin, last)]);
  }

  // Chance that a vehicle that is free in `zone` in `after` minutes is needed there: that there are more requests in the
  // meantime and shortly after than other vehicles, those who can be there in time for these requests, and some more.
  double chance_among(Index zone, Index after, Index itself) const {
    const Index others = bound_(zone, std::min(after + kRivals * settings_.wait, kHorizon)) - itself;
    const double requests = demand_of(zone, minute_ + 1, minute_ + 1 + after + settings_.wait);
    return poisson_tail(requests, others + 1 - here_[zone]);
  }

  // Worth of being free in `zone` at `minute`, in mean margins: with that chance it takes a request, else it waits on.
  double worth_of(double chance, Index zone, Index minute) const {
    const Index last = outlook_.worth.rows - 1;
    const double taken = outlook_.taking(std::min(minute, last), zone);
    const double left = outlook_.worth(std::min(minute + settings_.wait, last), zone);
    return (chance * taken + (1.0 - chance) * left) / outlook_.unit;
  }

  void observe_vehicles() {
    for (Index i = 0; i < fleet_.zone.columns; ++i) {
      const Index zone = fleet_.zone(slot_, i), free = fleet_.free(slot_, i), after = minute_ + 1 + free;
      const double chance = chance_among(zone, free, 1);
      own_[i] = worth_of(chance, zone, minute_ + free);
      float* const vehicle = &features_.agents(slot_, i, 0);
      vehicle[0] = static_cast<float>(static_cast<double>(free) / kMinutesUnit);
      vehicle[1] = static_cast<float>(fleet_.held(slot_, i) == 0);
      vehicle[2] = static_cast<float>(kWorthScale * own_[i]);
      vehicle[3] = static_cast<float>(chance);
      vehicle[4] = static_cast<float>(zones_per_vehicle_ * demand_of(zone, after, after + kAhead));
    }
  }

  void observe_request(Index j) const {
    const Index pickup = pickups_[j], dropoff = dropoffs_[j];
    const Index minutes = roads_.minutes(pickup, dropoff), after = minute_ + 1 + minutes;
    const double chance = chance_among(dropoff, minutes, 0);
    features_.task_alive(slot_, j) = true;
    float* const request = &features_.tasks(slot_, j, 0);
    request[0] = static_cast<float>(margin_of(pickup, dropoff) / outlook_.unit);
    request[1] = static_cast<float>(static_cast<double>(minutes) / outlook_.trip);
    request[2] = static_cast<float>(zones_per_vehicle_ * static_cast<double>(ready_[pickup]));
    request[3] = static_cast<float>(zones_per_vehicle_ * static_cast<double>(here_[pickup]));
    request[4] = static_cast<float>(zones_per_vehicle_ * demand_of(pickup, minute_ + 1, minute_ + 1 + kAhead));
    request[5] = static_cast<float>(chance);
    request[6] = static_cast<float>(zones_per_vehicle_ * demand_of(dropoff, after, after + kAhead));
    request[7] = static_cast<float>(kWorthScale * worth_of(chance, dropoff, minute_ + minutes));
  }

  // The vehicles that can be at `pickup` in time, and when. Without branches: whether one can is hard to predict.
  Index list_vehicles(Index pickup) const {
    Index count = 0;
    for (Index i = 0; i < fleet_.zone.columns; ++i) {
      const Index there = fleet_.free(slot_, i) + roads_.minutes(fleet_.zone(slot_, i), pickup);
      in_time_[count] = i;
      there_[count] = there;
      count += (there <= settings_.wait) & (fleet_.held(slot_, i) < kQueue);
    }
    return count;
  }

  // A request together with each vehicle that can be there in time. What the drop-off is worth depends on when the vehicle
  // comes and not on which it is: it is computed once for all that come in the same minute.
  template <bool with_pairs>
  void observe_pairs(Index j) const {
    const Index pickup = pickups_[j], dropoff = dropoffs_[j], minutes = roads_.minutes(pickup, dropoff);
    const double margin = margin_of(pickup, dropoff);
    if (with_pairs) std::ranges::fill(gained_, std::numeric_limits<double>::quiet_NaN());
    const Index count = list_vehicles(pickup);
    for (Index k = 0; k < count; ++k) {
      const Index i = in_time_[k], there = there_[k], zone = fleet_.zone(slot_, i);
      const double profit = (margin - settings_.cost * roads_.metres(zone, pickup)) / outlook_.unit;
      features_.allowed(slot_, i, j) = true;
      features_.prior(slot_, i, j) = profit;
      if constexpr (with_pairs) {
        if (std::isnan(gained_[there])) {
          const Index later = there + minutes;
          gained_[there] = worth_of(chance_among(dropoff, later, 0), dropoff, minute_ + later);
        }
        float* const pair = &features_.pairs(slot_, i, j, 0);
        pair[0] = std::max(static_cast<float>(profit), kLeastProfit);
        pair[1] = static_cast<float>(static_cast<double>(there) / kMinutesUnit);
        pair[2] = static_cast<float>(gained_[there] - own_[i]);
        pair[3] = static_cast<float>(zone != pickup);
      }
    }
  }

  // A request together with each of the same minute.
  void observe_other_requests(Index j) const {
    for (Index k = 0; k < pickups_.size; ++k) {
      if (pickups_[k] < 0) continue;
      float* const pair = &features_.task_pairs(slot_, j, k, 0);
      pair[0] = static_cast<float>(pickups_[k] == pickups_[j]);
      pair[1] = static_cast<float>(dropoffs_[k] == dropoffs_[j]);
      pair[2] = static_cast<float>(static_cast<double>(roads_.minutes(dropoffs_[j], dropoffs_[k])) / outlook_.trip);
    }
  }

  double margin_of(Index pickup, Index dropoff) const {
    return roads_.fares(pickup, dropoff) - settings_.cost * roads_.metres(pickup, dropoff);
  }

  const Fleet& fleet_;
  const Settings& settings_;
  const Roads& roads_;
  const Outlook& outlook_;
  const Features& features_;
  const Index n_zones_;
  const double zones_per_vehicle_;
  const bool with_pairs_;

  Arena arena_;
  const Array2<Index> bound_;   // [Z, kHorizon + 1] vehicles that are in the zone, with nothing to do, in so many minutes
  const Array1<Index> ready_;   // [Z] vehicles that can take a request there now
  const Array1<Index> here_;    // [Z] requests that start there
  const Array1<double> own_;    // [N] worth to each vehicle of where it will be free
  const Array1<double> gained_; // [wait + 1] worth of a drop-off by minutes to the pick-up; NaN: not known
  const Array1<Index> in_time_; // [N] vehicles that can take the request
  const Array1<Index> there_;   // [N] minutes until they are there

  Index slot_ = 0;
  Index minute_ = 0;
  double busyness_ = 0.0;  // of the day so far
  Array1<Zone> pickups_;   // [M] of the present minute
  Array1<Zone> dropoffs_;
};

}  // namespace

void observe(const Fleet& fleet, const Settings& settings, const Roads& roads, const Outlook& outlook, Index begin, Index end,
             const Features& features) {
  Observer observer(fleet, settings, roads, outlook, features);
  for (Index slot = begin; slot < end; ++slot) observer.observe(slot);
}

}  // namespace muster::fleet
