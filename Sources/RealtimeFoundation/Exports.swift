// `import RealtimeFoundation` is all that a program with Foundation needs.
@_exported public import Realtime
