internal import Documents
internal import Wire

/// A model's entity, and how its values are coded.
struct ModelType: Sendable {
    let entity: Entity
    /// The fields of the coding keys whose names differ: the id's, and those of relationships.
    let fields: [ByteText: String]
    /// What a document without these fields is decoded from, by coding key.
    let defaults: EJSONObject
    /// The fields whose default is not nil. A missing one has the default, so nil is stored as
    /// null.
    private let nullable: [String]
    /// The models that relationships lead to.
    let destinations: [any DDPModel.Type]

    /// - Throws: `.invalidArgument` for a model that cannot be encoded, or has no `id`.
    init<Model: DDPModel>(_ type: Model.Type) throws(RealtimeError) {
        let name = String(describing: type)
        guard !(type is AnyClass) else {
            throw RealtimeError(
                .invalidArgument,
                "\(name) is a class: a model must be a struct, whose changed copy differs")
        }
        let sample = type.init()
        let recorder = KeyRecorder()
        do {
            try sample.encode(to: recorder)
            guard case .object(let encoded) = try EJSONEncoder().encode(sample) else {
                throw RealtimeError(.invalidArgument, "it is not encoded as an object")
            }
            guard encoded["id"] != nil || encoded["_id"] != nil else {
                throw RealtimeError(.invalidArgument, "its CodingKeys lack the id")
            }
            defaults = encoded.without(["id", "_id"])
            nullable = defaults.without(recorder.relationships.map { $0.key }).fields
                .filter { $0.value != .null }.map { $0.name }
        } catch {
            let reason = (error as? RealtimeError)?.message ?? "\(error)"
            throw RealtimeError(.invalidArgument, "\(name) cannot be encoded: \(reason)")
        }
        let properties = Mirror(reflecting: sample).children.compactMap { $0.label }
        var fields = [ByteText("id"): "_id"]
        var relationships: [Relationship] = []
        for found in recorder.relationships {
            // A key that is not a property's name is a field's, which `CodingKeys` have chosen.
            let isRenamed =
                !properties.isEmpty && !properties.contains(where: found.key.hasSameBytes)
                && !properties.contains(where: ("_" + found.key).hasSameBytes)
            let field =
                found.declaration.field
                ?? (isRenamed
                    ? found.key
                    : ModelNames.field(
                        ofRelationship: found.key, isToMany: found.valueType.isToMany))
            fields[ByteText(found.key)] = field
            relationships.append(
                Relationship(
                    name: found.key, isToMany: found.valueType.isToMany,
                    collection: type.collection,
                    destination: found.valueType.destination.collection, field: field,
                    storage: found.declaration.storage, inverse: found.declaration.inverse))
        }
        try ModelType.check(fields, recorder.keys, name)
        self.fields = fields
        destinations = recorder.relationships.map { $0.valueType.destination }
        entity = Entity(
            name: name, collection: type.collection,
            ids: Model.ID.self == ObjectID.self ? .objectIDs : .strings,
            relationships: relationships)
    }

    /// - Throws: `.invalidArgument` for two properties that have the same field.
    private static func check(
        _ fields: [ByteText: String], _ keys: Set<ByteText>, _ name: String
    ) throws(RealtimeError) {
        var owners: [ByteText: String] = [:]
        for key in keys.sorted(by: { $0.text < $1.text }) {
            let field = fields[key] ?? key.text
            let other = owners.updateValue(key.text, forKey: ByteText(field))
            guard let other else { continue }
            throw RealtimeError(
                .invalidArgument,
                "\(name).\(other) and \(name).\(key.text) have the same field, \(field)")
        }
    }

    // MARK: Coding

    /// The objects of documents; nil for those that the model cannot be decoded from, which are
    /// reported.
    func decode<Model: DDPModel>(
        _ type: Model.Type, _ found: [Found], _ misfits: Misfits
    ) -> [Model?] {
        found.map { document in
            let key = DocumentKey(collection: entity.collection, id: document.id)
            do {
                let object = try decode(type, document)
                misfits.forget(key)
                return object
            } catch {
                misfits.report(key, error)
                return nil
            }
        }
    }

    /// The object of a document, whose fields are those of relationships without storage, too.
    /// - Throws: `DecodingError`, whose coding path begins with the collection and the id.
    func decode<Model: DDPModel>(_ type: Model.Type, _ found: Found) throws -> Model {
        let id = found.id.value ?? .null
        var document = found.fields
        for relationship in entity.relationships {
            // Null stands for no references, as a missing field does.
            if document[relationship.field] == .null { document[relationship.field] = nil }
        }
        document["_id"] = id
        let path = [EJSONKey(entity.collection), EJSONKey(id.idText)]
        let decoder = EJSONValueDecoder(
            value: .object(document), codingPath: path, fields: fields, defaults: defaults)
        return try decoder.read(type)
    }

    /// All fields of an object without its id; relationships without storage have theirs too.
    func encode(_ object: some DDPModel) throws -> EJSONObject {
        let encoder = EJSONValueEncoder(fields: fields)
        try encoder.write(object, isModelWhole: true)
        guard case .object(let object) = encoder.node.ejson else {
            throw RealtimeError(.invalidArgument, "\(entity.name) is not encoded as an object")
        }
        var encoded = object.without(["_id"])
        for name in nullable where encoded[name] == nil { encoded[name] = .null }
        return encoded
    }
}

/// An encoder that only records the keys of an object, and which of them are relationships.
private final class KeyRecorder: Encoder {
    struct Found {
        let key: String
        let valueType: any DDPRelationshipValue.Type
        let declaration: RelationshipDeclaration
    }

    private(set) var relationships: [Found] = []
    private(set) var keys: Set<ByteText> = []
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keys<Key>(recorder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        EJSONValueEncoder().unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        EJSONValueEncoder().singleValueContainer()
    }

    private func record(_ key: any CodingKey, _ type: Any.Type, _ value: Any? = nil) {
        keys.insert(ByteText(key.stringValue))
        let declared = value as? any DeclaredRelationship
        guard
            let valueType = declared.map({ Swift.type(of: $0).valueType })
                ?? (type as? any DDPRelationshipValue.Type)
        else { return }
        relationships.append(
            Found(
                key: key.stringValue, valueType: valueType,
                declaration: declared?.declaration ?? RelationshipDeclaration()))
    }

    private struct Keys<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let recorder: KeyRecorder
        let codingPath: [any CodingKey] = []

        private func note(_ key: Key) { recorder.keys.insert(ByteText(key.stringValue)) }

        mutating func encodeNil(forKey key: Key) { note(key) }

        mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) {
            recorder.record(key, Value.self, value)
        }

        mutating func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) {
            recorder.record(key, Value?.self)
        }
        // The protocol's own ones forget the keys of values that are nil.
        mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: String?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Double?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Float?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Int?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) { note(key) }
        mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) { note(key) }

        mutating func nestedContainer<NestedKey: CodingKey>(
            keyedBy type: NestedKey.Type, forKey key: Key
        ) -> KeyedEncodingContainer<NestedKey> { EJSONValueEncoder().container(keyedBy: type) }

        mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            EJSONValueEncoder().unkeyedContainer()
        }

        mutating func superEncoder() -> any Encoder { EJSONValueEncoder() }
        mutating func superEncoder(forKey key: Key) -> any Encoder { EJSONValueEncoder() }
    }
}
