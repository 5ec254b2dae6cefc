import CShims
import Engine
import Session
import Wire

// The answers to calls of a Meteor client. Nothing here is exported.

extension DDPCallHandlers {
    /// Also sets an answer when the call is completed.
    mutating func set(_ answerer: CallAnswerer?) {
        guard let answerer else { return }
        let handler = completed
        completed = { outcome in
            handler?(outcome)
            answerer.set(CallAnswer(outcome))
        }
    }
}

/// What sets an answer when all writes of a batch are completed.
func writesEnd(_ answerer: CallAnswerer) -> DDPWritesEnd {
    DDPWritesEnd { answerer.set(CallAnswer($0)) }
}
