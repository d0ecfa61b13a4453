// The batch arrays as Python classes: made once from numpy arrays, which they keep alive, and passed to every entry.
#pragma once

#include "../bindings.hpp"
#include "problem.hpp"

namespace muster {

struct ProblemArrays {
  In3<const double> scores, task_scores, contributions;
  In2<const double> capacities;
  In2<const bool> agent_alive, task_alive;
  In3<const bool> allowed;
  Problem view;
};

struct OutputArrays {
  In2<Index> assignment;
  In1<double> objective, relaxed, bound;
  In1<Index> status;
  In1<double> duality_gap, frank_wolfe_gap;
  In2<double> loads, prices;
  In2<Index> reason;
  Output view;
};

// The flag that a Stop looks at.
inline Index* flag_of(const In1<Index>& flag) { return flag.shape(0) > 0 ? flag.data() : nullptr; }

// Run work(stop) without the interpreter's lock until it ends, the flag [1] is raised or the seconds are over.
template <class Work>
void run_stoppable(const In1<Index>& flag, double seconds, const Work& work) {
  {
    const nb::gil_scoped_release unlocked;
    Stop stop(flag_of(flag), seconds);
    work(stop);
  }
  raise_pending();
}

void bind_quad(nb::module_& room);
void bind_exact(nb::module_& room);
void bind_minimums(nb::module_& room);

}  // namespace muster
