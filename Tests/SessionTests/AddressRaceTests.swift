import Session
import Testing

/// A race by a script: what each address does, and a virtual clock.
private struct Track {
    enum Behaviour: Equatable {
        case connects(after: Int)
        case fails(after: Int)
        /// connect() fails at once, as without a route.
        case isUnreachable
        case stalls
    }

    let families: [IPAddress.Family]
    let behaviours: [Behaviour]

    struct Result: Equatable {
        /// Milliseconds and positions of the attempts.
        var starts: [String] = []
        var winner: Int?
        /// When it ended; nil if it only waits.
        var end: Int?
    }

    func run() -> Result {
        var race = AddressRace(families)
        var result = Result()
        var events: [(time: Int, position: Int, isWin: Bool)] = []
        var now = 0
        while true {
            while let position = race.next(instant(now)) {
                result.starts.append("\(now):\(position)")
                switch behaviours[position] {
                case .connects(let time): events.append((now + time, position, true))
                case .fails(let time): events.append((now + time, position, false))
                case .isUnreachable: race.failed(position, 101)
                case .stalls: break
                }
            }
            if race.isLost {
                result.end = now
                return result
            }
            let timer = race.wakeUp.map { Int($0.nanoseconds / 1_000_000) }
            let event = events.min { $0.time < $1.time }
            guard let next = [timer, event?.time].compactMap({ $0 }).min() else { return result }
            now = next
            guard let event, event.time == next else { continue }
            events.removeAll { $0.position == event.position }
            if event.isWin {
                (result.winner, result.end) = (event.position, now)
                return result
            }
            race.failed(event.position, 111)
        }
    }

    private func instant(_ milliseconds: Int) -> Instant {
        Instant(nanoseconds: UInt64(milliseconds) * 1_000_000)
    }
}

@Suite struct AddressRaceTests {
    @Test(arguments: [
        ("", []), ("4", [0]), ("66", [0, 1]), ("6644", [0, 2, 1, 3]), ("4466", [0, 2, 1, 3]),
        ("6664", [0, 3, 1, 2]), ("4666", [0, 1, 2, 3]), ("46464", [0, 1, 2, 3, 4]),
    ])
    func familiesAlternate(_ families: String, _ order: [Int]) {
        #expect(AddressRace(families.map { $0 == "4" ? .v4 : .v6 }).order == order)
    }

    @Test func onlySoManyAreTried() {
        let race = AddressRace(Array(repeating: .v4, count: 1000))
        #expect(race.order.count == AddressRace.mostAddresses)
    }

    @Test func aSilentAddressDelaysTheNextByAQuarterOfASecond() {
        let track = Track(families: [.v4, .v4], behaviours: [.stalls, .connects(after: 3)])
        #expect(track.run() == .init(starts: ["0:0", "250:1"], winner: 1, end: 253))
    }

    @Test func aRefusedAddressDelaysNothing() {
        let track = Track(
            families: [.v6, .v4], behaviours: [.fails(after: 2), .connects(after: 1)])
        #expect(track.run() == .init(starts: ["0:0", "2:1"], winner: 1, end: 3))
    }

    @Test func anUnreachableFamilyDelaysNothing() {
        let track = Track(
            families: [.v6, .v6, .v4], behaviours: [.isUnreachable, .isUnreachable, .stalls])
        #expect(track.run() == .init(starts: ["0:0", "0:2", "250:1"]))
    }

    @Test func aSlowFirstAddressMayStillWin() {
        let track = Track(
            families: [.v4, .v4, .v4],
            behaviours: [.connects(after: 600), .stalls, .connects(after: 500)])
        #expect(track.run() == .init(starts: ["0:0", "250:1", "500:2"], winner: 0, end: 600))
    }

    @Test func aFailureStartsOnlyOneMore() {
        let track = Track(
            families: [.v4, .v4, .v4], behaviours: [.fails(after: 10), .stalls, .stalls])
        #expect(track.run() == .init(starts: ["0:0", "10:1", "260:2"]))
    }

    @Test func itIsLostWhenAllHaveFailed() {
        let track = Track(
            families: [.v4, .v6], behaviours: [.fails(after: 400), .fails(after: 10)])
        #expect(track.run() == .init(starts: ["0:0", "250:1"], winner: nil, end: 400))
    }

    /// Whatever the addresses do, in every order: one that connects is found, no attempt waits
    /// longer than the stagger for those before it, and none is tried twice.
    @Test func everyOrder() {
        let kinds: [Track.Behaviour] = [
            .connects(after: 30), .fails(after: 20), .fails(after: 300), .isUnreachable, .stalls,
        ]
        for number in 0..<625 {
            var rest = number
            let behaviours = (0..<4).map { _ -> Track.Behaviour in
                defer { rest /= 5 }
                return kinds[rest % 5]
            }
            for families: [IPAddress.Family] in [[.v4, .v4, .v4, .v4], [.v6, .v6, .v4, .v4]] {
                let track = Track(families: families, behaviours: behaviours)
                let result = track.run()
                let order = AddressRace(families).order
                if let first = order.firstIndex(where: { behaviours[$0] == kinds[0] }) {
                    #expect(result.winner == order[first], "\(behaviours)")
                    #expect((result.end ?? .max) <= first * 250 + 30, "\(behaviours)")
                } else {
                    #expect(result.winner == nil)
                    #expect(result.starts.count == 4, "\(behaviours)")
                    #expect((result.end == nil) == behaviours.contains(.stalls))
                }
                #expect(Set(result.starts.map { $0.suffix(1) }).count == result.starts.count)
            }
        }
    }

    @Test func theErrorNamesTheCausesBounded() {
        var race = AddressRace(Array(repeating: .v4, count: 6))
        for position in 0..<6 { race.failed(position, position == 0 ? 101 : 111) }
        let reason = race.reason { "\($0.cause)@\($0.position)" }
        #expect(reason == "101@0, 111@1, 111@2, 111@3 and 2 more")
        // A refusal says more than an unreachable network.
        #expect(race.cause { $0 == 101 } == 111)
        #expect(race.cause { _ in true } == 101)
    }

    @Test func itKnowsWhatItWaitsFor() {
        var race = AddressRace([.v4, .v4, .v4])
        #expect(race.next(Instant(nanoseconds: 0)) == 0)
        #expect(race.next(Instant(nanoseconds: 1)) == nil)
        #expect(race.next(Instant(nanoseconds: 250_000_000)) == 1)
        race.failed(0, 111)
        #expect(race.pending == [1])
    }
}
