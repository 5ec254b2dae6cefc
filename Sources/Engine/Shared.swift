/// A value in memory of its own, which several may refer to.
///
/// Unchecked because who changes one that others know is alone with it: the only one to refer to
/// it, or the loop's owner.
package final class Shared<Value>: @unchecked Sendable {
    @exclusivity(unchecked) package internal(set) var value: Value

    init(_ value: Value) { self.value = value }
}
