// The batch arrays as Python classes: made once from numpy arrays, which they keep alive, and passed to every kernel.
#pragma once

#include "../bindings.hpp"
#include "problem.hpp"

namespace muster {

struct ProblemArrays {
  Numpy<const double, 3> scores, task_scores, contributions;
  Numpy<const double, 2> capacities;
  Numpy<const bool, 2> agent_alive, task_alive;
  Numpy<const bool, 3> allowed;
  bool by_load;

  Problem view() const {
    return {muster::view(scores),      muster::view(task_scores), muster::view(contributions), muster::view(capacities),
            muster::view(agent_alive), muster::view(task_alive),  muster::view(allowed),       by_load};
  }
};

struct OutputArrays {
  Numpy<Index, 2> assignment;
  Numpy<double, 2> values;  // [5, B] objective, relaxed, bound, duality gap, Frank-Wolfe gap
  Numpy<Index, 1> status;
  Numpy<double, 2> loads, prices;
  Numpy<Index, 2> reason;

  Output view() const {
    const Array2<double> rows = muster::view(values);
    return {muster::view(assignment), rows.row(0), rows.row(1),         rows.row(2),          muster::view(status),
            rows.row(3),              rows.row(4), muster::view(loads), muster::view(prices), muster::view(reason)};
  }
};

// Bind a kernel that works on instances begin..end-1 of a batch; `names` are those of its further parameters.
template <class... More, class... Names>
void bind_kernel(nb::module_& module, const char* name,
                 void (*kernel)(Index, Index, const Problem&, const Settings&, const Output&, Stop&, More...),
                 Names... names) {
  module.def(
      name,
      [kernel](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
               const Numpy<Index, 1>& flag, double seconds, const Argument<More>&... more) {
        run_stoppable(view(flag), seconds, [&](Stop& stop) {
          kernel(begin, end, problem.view(), settings, out.view(), stop, view(more)...);
        });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      parameter<More>(names)...);
}

}  // namespace muster
