internal import Wire

/// The library itself.
public enum Library {
    /// Its version: "0.1.0".
    public static var version: String { "\(LibraryVersion.text)" }
}
