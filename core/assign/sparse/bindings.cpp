#include "../../bindings.hpp"

namespace muster {

void bind_sparse([[maybe_unused]] nb::module_& room) {}

}  // namespace muster
