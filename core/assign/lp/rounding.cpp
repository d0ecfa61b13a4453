#include "rounding.hpp"

namespace muster {

namespace {

// A relaxed value this near to 1 needs no rounding.
constexpr double kNearOne = 1.0 - 1e-9;
// The original leaves an agent out when no task with capacity left holds this much of it.
constexpr double kOriginalThreshold = 0.1;

// The largest relaxed value of an agent, with its score and task.
struct Largest {
  double value = 0.0;
  double score = -kInfinity;
  Index task = -1;

  void offer(double new_value, double new_score, Index new_task) {
    if (new_value > value || (new_value == value && new_score > score)) *this = {new_value, new_score, new_task};
  }
};

// Place the agents that are on one task only; list the others with their ranking keys, and return how many.
Index place_integral(Plan& plan, const Instance& instance, const Point& point, Ranking& ranking) {
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    Largest best;
    for (Index k = point.first[i]; k < point.first[i + 1]; ++k) {
      best.offer(point.value[k], instance.score(i, point.task[k]), point.task[k]);
    }
    if (best.value >= kNearOne) {
      // All integral agents fit together, so their order does not matter.
      reassign(plan, instance, i, best.task);
    } else if (best.task >= 0) {
      ranking.keys[i] = best.value;
      ranking.ties[i] = best.score;
      ranking.order[count++] = i;
    }
  }
  return count;
}

// Place the listed agents in turn on their largest task with capacity left.
void place_fractional(Plan& plan, const Instance& instance, const Point& point, Index rounding, const Array1<Index>& order,
                      Index count) {
  for (Index a = 0; a < count; ++a) {
    const Index i = order[a];
    Largest best;
    for (Index k = point.first[i]; k < point.first[i + 1]; ++k) {
      const Index j = point.task[k];
      const bool open = rounding == kStrict
                            ? fits(plan.load[j], instance.use(i, j), instance.capacity[j])
                            : instance.capacity[j] - plan.load[j] > 0.0 && point.value[k] >= kOriginalThreshold;
      if (open) best.offer(point.value[k], instance.score(i, j), j);
    }
    if (best.task >= 0) reassign(plan, instance, i, best.task);
  }
}

}  // namespace

void round_point(Plan& plan, const Instance& instance, const Point& point, Index rounding, Ranking& ranking) {
  clear(plan, instance);
  const Index count = place_integral(plan, instance, point, ranking);
  if (count > 0) {
    rank(ranking.keys, ranking.ties, ranking.order, count);
    place_fractional(plan, instance, point, rounding, ranking.order, count);
  }
  if (rounding == kStrict) complete(plan, instance, ranking);
}

}  // namespace muster
