import CShims

/// Converts JSON's numbers (RFC 8259 §6) between text and Swift's types.
enum JSONNumber {
    /// The value of a text without fraction and exponent; nil if it does not fit.
    static func integer(_ text: UnsafeRawBufferPointer) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        var value: Int64 = 0
        for digit in isNegative ? text.dropFirst() : text[...] {
            let (product, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let digit = Int64(digit &- UInt8(ascii: "0"))
            // Computed as a negative number, because the negative range is larger.
            let (sum, isBeyond) = product.subtractingReportingOverflow(digit)
            if isTooLarge || isBeyond { return nil }
            value = sum
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }

    /// The `Double` nearest to a text that a scanner has accepted; nil if it is beyond the range.
    static func double(_ text: UnsafeRawBufferPointer) -> Double? {
        if let value = exactDouble(text) { return value }
        let value = String(decoding: text, as: UTF8.self).withCString { shim_double($0) }
        return value.isFinite ? value : nil
    }

    /// The `Double` nearest to any decimal number, such as 1E+3; 0 for a text that is not a number.
    static func nearest(to text: String) -> Double { text.withCString { shim_double($0) } }

    /// Appends a number as JavaScript does (ECMA-262, Number::toString): the shortest digits that
    /// parse to the same value, such as 1 for 1.0, 1e+21, 1e-7. Unlike in JavaScript, -0 keeps its
    /// sign.
    static func write(_ value: Double, to bytes: inout [UInt8]) {
        if value.sign == .minus { bytes.append(UInt8(ascii: "-")) }
        let (digits, point) = decimals(value.magnitude)
        let zero = UInt8(ascii: "0")
        if point > 21 || point < -5 {
            bytes.append(digits[0])
            if digits.count > 1 {
                bytes.append(UInt8(ascii: "."))
                bytes.append(contentsOf: digits[1...])
            }
            bytes.append(contentsOf: (point > 0 ? "e+" : "e").utf8)
            bytes.append(contentsOf: String(point - 1).utf8)
        } else if point <= 0 {
            bytes.append(contentsOf: "0.".utf8)
            bytes.append(contentsOf: repeatElement(zero, count: -point))
            bytes.append(contentsOf: digits)
        } else if digits.count <= point {
            bytes.append(contentsOf: digits)
            bytes.append(contentsOf: repeatElement(zero, count: point - digits.count))
        } else {
            bytes.append(contentsOf: digits[..<point])
            bytes.append(UInt8(ascii: "."))
            bytes.append(contentsOf: digits[point...])
        }
    }

    /// The shortest digits of a finite value that is not negative, at least one, and the position
    /// of their point: 0.d₁d₂… × 10^point. Reformats the standard library's `description`.
    private static func decimals(_ value: Double) -> (digits: [UInt8], point: Int) {
        var digits: [UInt8] = []
        var point: Int?
        var exponent = 0
        let text = value.description.utf8
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "."):
                point = digits.count
            case UInt8(ascii: "e"):
                let rest = text[text.index(after: index)...]
                exponent = Int(String(decoding: rest, as: UTF8.self)) ?? 0
            case let digit where exponent == 0 && digit.isASCIIDigit:
                digits.append(digit)
            default:
                break
            }
            if exponent != 0 { break }
        }
        var position = (point ?? digits.count) + exponent
        let zero = UInt8(ascii: "0")
        while digits.count > 1, digits.last == zero { digits.removeLast() }
        let leading = digits.prefix { $0 == zero }.count
        if leading == digits.count { return ([zero], 1) }
        digits.removeFirst(leading)
        position -= leading
        return (digits, position)
    }

    /// The value if both the digits and the power of ten are exact `Double`s, so that one operation
    /// rounds only once (Clinger 1990). This covers nearly all numbers.
    private static func exactDouble(_ text: UnsafeRawBufferPointer) -> Double? {
        var digits: UInt64 = 0
        var power = 0
        var index = text.first == UInt8(ascii: "-") ? 1 : 0
        var isFraction = false
        while index < text.count {
            let byte = text[index]
            if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte.isASCIIDigit {
                digits = digits * 10 + UInt64(byte - UInt8(ascii: "0"))
                guard digits < 1 << 53 else { return nil }
                if isFraction { power -= 1 }
            } else {
                break
            }
            index += 1
        }
        if index < text.count {
            // Longer exponents are far outside of the table.
            guard text.count - index <= 5 else { return nil }
            let start = text[index + 1] == UInt8(ascii: "+") ? index + 2 : index + 1
            let rest = UnsafeRawBufferPointer(rebasing: text[start...])
            guard let exponent = integer(rest) else { return nil }
            power += Int(exponent)
        }
        guard abs(power) < powers.count else { return nil }
        let value = Double(digits)
        let result = power < 0 ? value / powers[-power] : value * powers[power]
        return text.first == UInt8(ascii: "-") ? -result : result
    }

    /// 10^0 to 10^22, all exact.
    private static let powers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]
}
