// Everything of the C++ API.
#pragma once

#include <polyrail/bootstrap.hpp>
#include <polyrail/call.hpp>
#include <polyrail/communicator.hpp>
#include <polyrail/fuse.hpp>
#include <polyrail/group.hpp>
#include <polyrail/message.hpp>
#include <polyrail/options.hpp>
#include <polyrail/status.hpp>
#include <polyrail/stream.hpp>
#include <polyrail/types.hpp>
#include <polyrail/window.hpp>
#include <polyrail/work.hpp>
