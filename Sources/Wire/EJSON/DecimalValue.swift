/// The value of a decimal's text, such as 12.50 or -1E+3: equal for texts of the same value.
package struct DecimalValue: Equatable, Sendable {
    private let isNegative: Bool
    /// Without zeros at either end; none for 0.
    private let digits: [UInt8]
    /// Of the first digit: the value is 0.digits times ten to the power of the exponent.
    private let exponent: Int

    /// Beyond this exponent, numbers are infinite or 0, as in decimal.js.
    private static let largestExponent = 9_000_000_000_000_000

    /// nil for NaN.
    package init?(_ number: Double) {
        guard !number.isNaN else { return nil }
        guard number.isFinite else {
            self.init(isNegative: number < 0)
            return
        }
        var text: [UInt8] = []
        JSONNumber.write(number, to: &text)
        let value = text.withUnsafeBufferPointer { DecimalValue(text: $0) }
        guard let value else { return nil }
        self = value
    }

    /// nil for NaN and for a text that is not a number.
    package init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ DecimalValue(text: $0) }) else { return nil }
        self = value
    }

    /// An infinite value.
    private init(isNegative: Bool) {
        self.init(isNegative: isNegative, digits: [UInt8(ascii: "1")], exponent: Int.max)
    }

    private init(isNegative: Bool, digits: [UInt8], exponent: Int) {
        self.isNegative = isNegative
        self.digits = digits
        self.exponent = exponent
    }

    private init?(text: UnsafeBufferPointer<UInt8>) {
        var rest = text[...]
        let isNegative = rest.skip("-")
        if !isNegative { _ = rest.skip("+") }
        if rest.elementsEqual("Infinity".utf8) {
            self.init(isNegative: isNegative)
            return
        }
        let whole = rest.takeDigits()
        let fraction = rest.skip(".") ? rest.takeDigits() : rest.prefix(0)
        guard whole.count + fraction.count > 0, let scale = rest.takeExponent(), rest.isEmpty else {
            return nil
        }
        let zero = UInt8(ascii: "0")
        var digits = Array(whole) + Array(fraction)
        let leading = digits.prefix { $0 == zero }.count
        while digits.last == zero { digits.removeLast() }
        digits.removeFirst(min(leading, digits.count))
        let exponent = whole.count - leading + scale
        if digits.isEmpty || exponent < -DecimalValue.largestExponent {
            self.init(isNegative: false, digits: [], exponent: 0)
        } else if exponent > DecimalValue.largestExponent {
            self.init(isNegative: isNegative)
        } else {
            self.init(isNegative: isNegative, digits: digits, exponent: exponent)
        }
    }

    private var sign: Int { digits.isEmpty ? 0 : (isNegative ? -1 : 1) }

    /// - Returns: a negative number if `first` is less, a positive one if it is greater, 0 if both
    ///   are equal.
    package static func order(_ first: DecimalValue, _ second: DecimalValue) -> Int {
        guard first.sign == second.sign else { return first.sign - second.sign }
        guard first.exponent == second.exponent else {
            return first.exponent < second.exponent ? -first.sign : first.sign
        }
        for (mine, other) in zip(first.digits, second.digits) where mine != other {
            return mine < other ? -first.sign : first.sign
        }
        return (first.digits.count - second.digits.count) * first.sign
    }

    /// The nearest `Double`.
    private var nearest: Double {
        guard exponent != Int.max else { return isNegative ? -.infinity : .infinity }
        let text = "0.\(String(decoding: digits, as: UTF8.self))e\(exponent)"
        let magnitude = digits.isEmpty ? 0 : JSONNumber.nearest(to: text)
        return isNegative ? -magnitude : magnitude
    }

    /// The number of the same value; nil if there is none.
    var number: Double? {
        let nearest = nearest
        return DecimalValue(nearest) == self ? nearest : nil
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(isNegative)
        hasher.combine(digits)
        hasher.combine(exponent)
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    fileprivate mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard first == UInt8(ascii: character) else { return false }
        removeFirst()
        return true
    }

    fileprivate mutating func takeDigits() -> Self {
        let digits = prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        removeFirst(digits.count)
        return digits
    }

    /// 0 without an exponent; nil for an exponent without digits.
    fileprivate mutating func takeExponent() -> Int? {
        guard skip("e") || skip("E") else { return 0 }
        let isNegative = skip("-")
        if !isNegative { _ = skip("+") }
        let digits = takeDigits()
        guard !digits.isEmpty else { return nil }
        var exponent = 0
        // What is beyond all limits stays beyond them.
        for digit in digits { exponent = Swift.min(exponent * 10 + Int(digit & 15), 1 << 56) }
        return isNegative ? -exponent : exponent
    }
}

extension EJSON {
    /// The value of a number or of a decimal; nil for other kinds, NaN, and a decimal whose text is
    /// not a number.
    package var decimalValue: DecimalValue? {
        switch self {
        case .number(let value): DecimalValue(value)
        case .decimal(let text): DecimalValue(text)
        default: nil
        }
    }

    /// Whether two decimals, or a decimal and a number, have the same value.
    func hasValue(of other: EJSON) -> Bool {
        guard let value = decimalValue else { return false }
        return value == other.decimalValue
    }
}
