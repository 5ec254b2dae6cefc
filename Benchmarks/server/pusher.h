// Pusher Channels, as much as clients need for events and for many subscriptions.
#pragma once

#include "connection.h"

/// Confirms the connection.
bool pusher_greet(struct connection *c);
/// Accepts subscriptions. After the first, a flood begins; without a flood, the connection is
/// closed after the last, so that the client connects again.
bool pusher_message(struct connection *c);
/// Answers the complete requests for authorization.
bool pusher_authorize(struct connection *c);
