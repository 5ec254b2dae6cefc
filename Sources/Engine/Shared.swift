/// A value in memory of its own, which several objects can share.
///
/// Unchecked because it is changed only by the loop's owner, or while it has a single reference.
package final class Shared<Value>: @unchecked Sendable {
    @exclusivity(unchecked) package internal(set) var value: Value

    init(_ value: Value) { self.value = value }
}
