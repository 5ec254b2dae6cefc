public import Foundation
public import Realtime

// Foundation's types as values of documents, in models and in parameters.

extension EJSONDate {
    /// The date, cut to whole milliseconds; the last date that EJSON can express for later ones.
    public init(_ date: Date) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded(.down)
        self.init(
            milliseconds: Int64(exactly: milliseconds)
                ?? (milliseconds > 0 ? .max : .min))
    }
}

extension Date {
    public init(_ date: EJSONDate) {
        self.init(timeIntervalSince1970: Double(date.milliseconds) / 1000)
    }
}

extension Date: EJSONConvertible {
    public var ejson: EJSON { EJSONDate(self).ejson }

    public init?(ejson: EJSON) {
        guard let date = EJSONDate(ejson: ejson) else { return nil }
        self.init(date)
    }
}

extension Data: EJSONConvertible {
    public var ejson: EJSON { .bytes([UInt8](self)) }

    public init?(ejson: EJSON) {
        guard case .bytes(let bytes) = ejson else { return nil }
        self.init(bytes)
    }
}

extension Decimal {
    /// - Returns: nil for a text that is not a number, and for an infinite one.
    public init?(_ decimal: EJSONDecimal) {
        let text = decimal.text
        let isNumber = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "+"),
                UInt8(ascii: "-"), UInt8(ascii: "e"), UInt8(ascii: "E"):
                true
            default: false
            }
        }
        if text == "NaN" {
            self = .nan
        } else if isNumber, let number = Decimal(string: text) {
            self = number
        } else {
            return nil
        }
    }
}

/// A decimal; also decoded from a number.
extension Decimal: EJSONConvertible {
    public var ejson: EJSON { .decimal(isNaN ? "NaN" : description) }

    public init?(ejson: EJSON) {
        switch ejson {
        case .decimal(let text): self.init(EJSONDecimal(text))
        case .number(let number) where number.isFinite: self.init(EJSONDecimal("\(number)"))
        default: return nil
        }
    }
}

/// A string.
extension URL: EJSONConvertible {
    public var ejson: EJSON { .string(absoluteString) }

    public init?(ejson: EJSON) {
        guard case .string(let text) = ejson else { return nil }
        self.init(string: text)
    }
}
