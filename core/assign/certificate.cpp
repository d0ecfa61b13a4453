#include "certificate.hpp"

#include <cmath>

namespace muster {

namespace {

// An assignment is proven optimal when it is within this share of the bound.
constexpr double kProofTolerance = 1e-9;

// The largest score with its bonus, net of the prices, of an agent.
double largest_net(const double* scores, const double* bonus, const double* uses, const double* prices, Index count) {
  struct Net {
    const double *scores, *bonus, *uses, *prices;
    Lanes operator()(Index j, Lanes) const {
      return Lanes::load(scores + j) + Lanes::load(bonus + j) - Lanes::load(uses + j) * Lanes::load(prices + j);
    }
    double operator()(Index j, double) const { return scores[j] + bonus[j] - uses[j] * prices[j]; }
  };
  return largest_of(count, Net{scores, bonus, uses, prices});
}

// Whether no capacity is exceeded; rounding "original" may exceed one.
bool is_feasible(const Plan& plan, const Instance& instance) {
  for (Index j = 0; j < instance.m; ++j) {
    if (!(plan.load[j] <= instance.capacity[j] * (1.0 + kCapacityTolerance))) return false;
  }
  return true;
}

}  // namespace

double primal_value(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus) {
  const Point& point = relaxation.vertex;
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    double placed = 0.0;
    for (Index k = point.first[i]; k < point.first[i + 1]; ++k) {
      placed += point.value[k];
      const Index j = point.task[k];
      total += point.value[k] * (instance.score(i, j) + bonus_of(instance, i, j, bonus, by_load));
    }
    total += instance.idle * (1.0 - placed);
  }
  return total;
}

double set_prices(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus,
                  const Array1<double>& prices) {
  const Index n = instance.n, m = instance.m;
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  const double* const duals = relaxation.tree.dual.data + n;
  const auto worth_of = [&](Index i, Index j) { return instance.score(i, j) + bonus_of(instance, i, j, bonus, by_load); };
  for (Index j = 0; j < m; ++j) {
    double price = n > 0 ? std::max(0.0, duals[j] * instance.price_scale[j]) : 0.0;
    if (instance.capacity[j] <= 0.0) {
      // Capacity that is not there costs nothing in the proof: the least price that keeps every agent away.
      for (Index i = 0; i < n; ++i) {
        if (!(instance.use(i, j) > 0.0 && instance.score(i, j) > -kInfinity)) continue;
        double worth = instance.idle;
        for (Index k = 0; k < m; ++k) {
          if (instance.capacity[k] > 0.0 || instance.use(i, k) == 0.0) {
            const double lost = instance.use(i, k) * std::max(0.0, duals[k] * instance.price_scale[k]);
            worth = std::max(worth, worth_of(i, k) - lost);
          }
        }
        price = std::max(price, (worth_of(i, j) - worth) / instance.use(i, j));
      }
    }
    prices[j] = price;
  }
  return price_bound(instance, bonus, prices);
}

double price_bound(const Instance& instance, const Array1<double>& bonus, const Array1<double>& prices) {
  const Index n = instance.n, m = instance.m;
  const bool by_load = instance.pair_terms == PairTerms::by_load;
  double total = 0.0;
  bool closed = false;
  for (Index j = 0; j < m; ++j) {
    if (prices[j] > 0.0) total += instance.capacity[j] * prices[j];
    closed |= instance.capacity[j] <= 0.0;
  }
  for (Index i = 0; i < n; ++i) {
    double best = instance.idle;
    if (closed || by_load) {
      for (Index j = 0; j < m; ++j) {
        // An agent that does not fit a task without capacity is kept away without a price.
        if (instance.capacity[j] > 0.0 || instance.use(i, j) == 0.0) {
          best = std::max(best, instance.score(i, j) + bonus_of(instance, i, j, bonus, by_load) -
                                    instance.use(i, j) * prices[j]);
        }
      }
    } else {
      best = std::max(best, largest_net(instance.score.row(i).data, bonus.data, instance.use.row(i).data, prices.data, m));
    }
    total += best;
  }
  return total;
}

bool settle_bound(Certificate& certificate, const Plan& plan, const Instance& instance, double value, double limit) {
  const bool feasible = is_feasible(plan, instance);
  const bool reached = feasible && value >= limit - kProofTolerance * std::max(std::abs(limit), std::abs(value));
  double penalty = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    if (plan.task[i] < 0) penalty += instance.idle;
  }
  if (penalty == 0.0) {
    certificate.bound = feasible ? std::max(limit, value) : limit;
  } else if (reached) {
    certificate.bound = value - penalty;
  }
  return reached;
}

Reason reason_of(const Plan& plan, const Instance& instance, Index i) {
  bool wanted = false;
  for (Index j = 0; j < instance.m; ++j) {
    // With task scores a task may pay in spite of its score.
    if (instance.score(i, j) > 0.0 || join_gain(plan, instance, i, j) > instance.idle) {
      if (fits(plan.load[j], instance.use(i, j), instance.capacity[j])) return kBetterLeftOut;
      wanted = true;
    }
  }
  return wanted ? kNoCapacity : kNegativeScores;
}

}  // namespace muster
