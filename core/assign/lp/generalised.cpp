#include "generalised.hpp"

namespace muster {

void start_generalised(const Tree&, const Top&, const Array2<double>&, const Array1<double>&, const Array2<double>&,
                       const Array1<double>&, Index, Index) {}

void price_generalised(const Tree&, const Top&, const Array2<double>&, const Array1<double>&, const Array2<double>&, Index,
                       Index) {}

Status optimise_generalised(const Tree&, const Top&, const Array2<double>&, const Array1<double>&, const Array2<double>&,
                            const Array1<Index>&, const Array2<Index>&, Index, Index, double, Stop&) {
  return kTimeLimit;
}

}  // namespace muster
