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
  bool by_load;

  Problem view() const {
    return {muster::view(scores),      muster::view(task_scores), muster::view(contributions), muster::view(capacities),
            muster::view(agent_alive), muster::view(task_alive),  muster::view(allowed),       by_load};
  }
};

struct OutputArrays {
  In2<Index> assignment;
  In2<double> values;  // [5, B] objective, relaxed, bound, duality gap, Frank-Wolfe gap
  In1<Index> status;
  In2<double> loads, prices;
  In2<Index> reason;

  Output view() const {
    const Array2<double> rows = muster::view(values);
    return {muster::view(assignment), rows.row(0), rows.row(1),         rows.row(2),          muster::view(status),
            rows.row(3),              rows.row(4), muster::view(loads), muster::view(prices), muster::view(reason)};
  }
};

// Run work(stop) without the interpreter's lock until it ends, the flag [1] is raised or the seconds are over.
template <class Work>
void run_stoppable(const In1<Index>& flag, double seconds, const Work& work) {
  {
    const nb::gil_scoped_release unlocked;
    Stop stop(flag.shape(0) > 0 ? flag.data() : nullptr, seconds);
    work(stop);
  }
  raise_pending();
}

// Numbers are passed on as they are.
inline double view(double number) { return number; }
inline Index view(Index number) { return number; }

// Bind kernel(begin, end, problem, settings, out, stop, more...) as a function that works on a part of a batch; `More` are
// the types of further arguments, and `names` what they are called.
template <class... More, class Kernel, class... Names>
void bind_kernel(nb::module_& room, const char* name, const char* says, Kernel kernel, const Names&... names) {
  room.def(
      name,
      [kernel](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
               const In1<Index>& flag, double seconds, const More&... more) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          kernel(begin, end, problem.view(), settings, out.view(), stop, view(more)...);
        });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a, names..., says);
}

}  // namespace muster
