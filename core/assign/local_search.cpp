#include "local_search.hpp"

#include "gains.hpp"

namespace muster {

namespace {

// Agents between two checks of the stop in a sweep.
constexpr Index kBetweenStops = 64;

bool is_stopped(Index i, Stop& stop) { return i % kBetweenStops == kBetweenStops - 1 && stop.requested(); }

// One sweep of moves; whether any was made.
bool sweep_moves(Plan& plan, const Instance& instance, Search& search, double least, Stop& stop) {
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    if (is_stopped(i, stop)) return false;
    const Step step = best_move(plan, instance, i, least);
    if (step.task > -2) {
      search.gain[i] = step.gain;
      search.order[count++] = i;
    }
  }
  rank(search.gain, search.zeros, search.order, count);
  bool moved = false;
  for (Index a = 0; a < count; ++a) {
    if (is_stopped(a, stop)) return moved;
    const Index i = search.order[a];
    // Earlier moves of this sweep have changed the gains.
    const Step step = best_move(plan, instance, i, least);
    if (step.task > -2) {
      reassign(plan, instance, i, step.task);
      moved = true;
    }
  }
  return moved;
}

// One sweep of swaps; whether any was made.
bool sweep_swaps(Plan& plan, const Instance& instance, Search& search, double least, Stop& stop) {
  const Array1<double>& own = search.own;
  const auto score_of = [&](Index i, Index j) { return j >= 0 ? instance.score(i, j) : 0.0; };
  for (Index i = 0; i < instance.n; ++i) own[i] = score_of(i, plan.task[i]);
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    if (is_stopped(i, stop)) return false;
    const Step swap = best_swap(plan, instance, own, i, least);
    if (swap.task >= 0) {
      search.gain[i] = swap.gain;
      search.order[count++] = i;
    }
  }
  rank(search.gain, search.zeros, search.order, count);
  bool swapped = false;
  for (Index a = 0; a < count; ++a) {
    if (is_stopped(a, stop)) return swapped;
    const Index i = search.order[a], k = best_swap(plan, instance, own, i, least).task;
    if (k < 0) continue;
    const Index first = plan.task[i], second = plan.task[k];
    reassign(plan, instance, i, -1);
    reassign(plan, instance, k, first);
    reassign(plan, instance, i, second);
    own[i] = score_of(i, second);
    own[k] = score_of(k, first);
    swapped = true;
  }
  return swapped;
}

// Send to task j the agents that gain most, until it is full; returns the gain, which may be negative.
double fill(Plan& plan, const Instance& instance, Search& search, Index j) {
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    if (plan.task[i] != j && instance.score(i, j) > -kInfinity) {
      search.gain[i] = move_gain(plan, instance, i, j);
      search.order[count++] = i;
    }
  }
  rank(search.gain, search.zeros, search.order, count);
  double total = 0.0;
  for (Index a = 0; a < count; ++a) {
    const Index i = search.order[a];
    if (fits(plan.load[j], instance.use(i, j), instance.capacity[j])) {
      total += move_gain(plan, instance, i, j);
      reassign(plan, instance, i, j);
    }
  }
  return total;
}

// Send every agent of task j to the best of its other choices, or to none; returns the gain.
double empty(Plan& plan, const Instance& instance, Search& search, Index j) {
  double total = 0.0;
  Index count = 0;
  for (Index i = 0; i < instance.n; ++i) {
    if (plan.task[i] != j) continue;
    total += leave_gain(plan, instance, i);
    reassign(plan, instance, i, -1);
    search.order[count++] = i;
  }
  const double capacity = instance.capacity[j];
  instance.capacity[j] = -1.0;
  for (Index a = 0; a < count; ++a) {
    search.gain[search.order[a]] = best_to_join(plan, instance, search.order[a]).gain;
  }
  rank(search.gain, search.zeros, search.order, count);
  for (Index a = 0; a < count; ++a) {
    const Step step = best_to_join(plan, instance, search.order[a]);
    if (step.task >= 0) {
      total += step.gain;
      reassign(plan, instance, search.order[a], step.task);
    }
  }
  instance.capacity[j] = capacity;
  return total;
}

// Fill task `which`, or empty task which - m.
double fill_or_empty(Plan& plan, const Instance& instance, Search& search, Index which) {
  return which < instance.m ? fill(plan, instance, search, which) : empty(plan, instance, search, which - instance.m);
}

// Choose up to `tries` tasks to fill and as many to empty, by an estimate of the gain; returns how many.
//
// Filling is promising where the last agent to come would find the others there worth most, emptying where those present
// are worth least.
Index list_kicks(const Plan& plan, const Instance& instance, Search& search, Index tries) {
  const Index n = instance.n, m = instance.m;
  const Array1<double>& gain = search.kick_gain;
  const Array1<Index>& order = search.kick_order;
  for (Index j = 0; j < m; ++j) {
    gain[j] = -kInfinity;
    gain[m + j] = plan.count[j] > 0.0 ? 0.0 : -kInfinity;
  }
  for (Index i = 0; i < n; ++i) {
    if (plan.task[i] >= 0) gain[m + plan.task[i]] += leave_gain(plan, instance, i);
  }
  for (Index j = 0; j < m; ++j) {
    const double use = mean_use(instance, j), all = static_cast<double>(n);
    const double more = use == 0.0 ? all : std::min(all, (instance.capacity[j] - plan.load[j]) / use);
    if (more >= 1.0 - 1e-9) {
      const double own = instance.task_score(j, j);
      gain[j] = instance.pair_terms == PairTerms::by_load
                    ? use * (plan.marginal[j] + own * ((2.0 * more - 1.0) * use - 1.0))
                    : plan.marginal[j] + 2.0 * own * (more - 1.0);
    }
  }
  Index count = 0;
  for (Index side = 0; side < 2; ++side) {
    for (Index turn = 0; turn < std::min(tries, m); ++turn) {
      double best = -kInfinity;
      Index where = -1;
      for (Index j = side * m; j < (side + 1) * m; ++j) {
        if (gain[j] > best) {
          best = gain[j];
          where = j;
        }
      }
      if (where < 0) break;
      gain[where] = -kInfinity;
      order[count++] = where;
    }
  }
  // Rank the chosen ones by the true gain of filling or emptying them.
  for (Index a = 0; a < count; ++a) {
    copy_plan(search.trial, plan, n, m);
    gain[order[a]] = fill_or_empty(search.trial, instance, search, order[a]);
  }
  rank(gain, search.kick_zeros, order, count);
  return count;
}

}  // namespace

Search make_search(Arena& arena, Index n, Index m) {
  return {arena.zeros1<double>(n), arena.zeros1<double>(n),     arena.zeros1<Index>(n),     arena.zeros1<double>(n),
          make_plan(arena, n, m),  arena.zeros1<double>(2 * m), arena.zeros1<Index>(2 * m), arena.zeros1<double>(2 * m)};
}

void improve(Plan& plan, const Instance& instance, Search& search, bool swaps, double scale, Stop& stop) {
  const double least = kGainTolerance * scale;
  while (!stop.requested()) {
    if (sweep_moves(plan, instance, search, least, stop)) continue;
    if (!swaps || !sweep_swaps(plan, instance, search, least, stop)) return;
  }
}

bool eject(Plan& plan, const Instance& instance, double scale, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  double best = kGainTolerance * scale;
  Index mover = -1, target = -1, victim = -1, refuge = -1;
  for (Index k = 0; k < m; ++k) {
    for (Index other = 0; other < n; ++other) {
      if (plan.task[other] != k) continue;
      if (stop.requested()) return false;
      const double lost = leave_gain(plan, instance, other);
      reassign(plan, instance, other, -1);
      for (Index i = 0; i < n; ++i) {
        const Index old = plan.task[i];
        if (i == other || old == k || !fits(plan.load[k], instance.use(i, k), instance.capacity[k])) continue;
        double gain = lost + move_gain(plan, instance, i, k);
        if (gain == -kInfinity) continue;
        reassign(plan, instance, i, k);
        const Step again = best_to_join(plan, instance, other);
        if (again.task >= 0) gain += again.gain;
        if (gain > best) {
          best = gain;
          mover = i;
          target = k;
          victim = other;
          refuge = again.task;
        }
        reassign(plan, instance, i, old);
      }
      reassign(plan, instance, other, k);
    }
  }
  if (mover < 0) return false;
  reassign(plan, instance, victim, -1);
  reassign(plan, instance, mover, target);
  reassign(plan, instance, victim, refuge);
  return true;
}

bool kick(Plan& plan, const Instance& instance, Search& search, Index tries, double scale, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  Plan& trial = search.trial;
  const double least = kGainTolerance * scale;
  const double before = total_value(plan, instance);
  const Index count = list_kicks(plan, instance, search, tries);
  for (Index a = 0; a < count; ++a) {
    if (stop.requested()) break;
    copy_plan(trial, plan, n, m);
    fill_or_empty(trial, instance, search, search.kick_order[a]);
    improve(trial, instance, search, false, scale, stop);
    if (total_value(trial, instance) > before + least) {
      improve(trial, instance, search, true, scale, stop);
      copy_plan(plan, trial, n, m);
      return true;
    }
  }
  return false;
}

double mean_use(const Instance& instance, Index j) {
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) total += instance.use(i, j);
  return total / static_cast<double>(std::max(Index{1}, instance.n));
}

double total_value(const Plan& plan, const Instance& instance) {
  const bool pairs = instance.pair_terms != PairTerms::none;
  const Array1<double>& amount = instance.pair_terms == PairTerms::by_load ? plan.load : plan.count;
  double total = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    total += plan.task[i] >= 0 ? instance.score(i, plan.task[i]) : instance.idle;
  }
  if (!pairs) return total;
  for (Index j = 0; j < instance.m; ++j) {
    if (amount[j] != 0.0) total += 0.5 * amount[j] * (plan.marginal[j] - instance.task_score(j, j));
  }
  return total;
}

}  // namespace muster
