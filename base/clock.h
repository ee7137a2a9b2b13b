// Clocks in seconds. Only differences have a meaning.
#pragma once

namespace graft::base {

double thread_seconds();  // CPU time of the calling thread: pre-emption by others does not count
double wall_seconds();    // steady

}  // namespace graft::base
