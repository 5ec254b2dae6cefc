extension UnsafeRawPointer {
    /// An address for zero bytes, where NULL would be a surprise. Never read from.
    @inlinable package static var ofNothing: UnsafeRawPointer {
        UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped
    }
}
