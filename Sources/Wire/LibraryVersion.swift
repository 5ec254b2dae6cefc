/// The version of this library; CMakeLists.txt must say the same, which a test checks.
package enum LibraryVersion {
    package static let text: StaticString = "0.1.0"
    package static let number: UInt32 = 100
}
