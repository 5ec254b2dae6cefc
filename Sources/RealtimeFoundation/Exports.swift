// Programs with Foundation need no other import than `RealtimeFoundation`.
@_exported public import Realtime
