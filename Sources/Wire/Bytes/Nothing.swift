extension UnsafeRawPointer {
    /// The address of no bytes where NULL would be a surprise. Never read from.
    @inlinable package static var ofNothing: UnsafeRawPointer {
        UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped
    }
}
