// Private to this folder: which of a kernel's programs is fastest within the network. A search times a kernel alone,
// again and again on the same constants, which stay in caches; in a network each call has its own, which come from
// memory. So a program with few bytes of constants may be the better one where many are transformed (Winograd's).
#pragma once

#include "base/deadline.h"
#include "base/monitor.h"
#include "study/flows/network.h"

namespace graft::study {

// For a platform that is this machine; `plan`: the network's: the few programs of each kernel that are a compromise of
// time and bytes of constants are timed within the network, and the fastest ones become its answers. `in_place_seconds`
// of the network is then the sum of its calls, measured so. No further program is tried when the time is over. Nothing
// happens elsewhere, and where a kernel has no answer.
void choose_in_place(const graph::Plan& plan, TunedNetwork& network, const base::Deadline& deadline,
                     base::Monitor& monitor);

}  // namespace graft::study
