/// A value in memory of its own, which several may refer to.
final class Shared<Value> {
    @exclusivity(unchecked) var value: Value

    init(_ value: Value) { self.value = value }
}
