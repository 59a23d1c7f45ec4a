// Which machine this is: for telling whether two ranks may be on the same one.
#pragma once

#include <string>

namespace polyrail {

// Equal in all processes of a running machine, whatever their mount, PID and user namespaces, so
// that containers of one machine find each other; different on machines that were started apart.
// Equal identities are a reason to try shared memory, not a proof that it works.
std::string host_identity();

// The same from given sources, for tests: the file with the boot id, and what else is true of the
// whole machine.
std::string host_identity(const std::string& boot_id_file, const std::string& machine_facts);

}  // namespace polyrail
