// Gets a URL and prints the body of the response. Failed attempts are repeated.
import Realtime

let client = try REST()
let response = try await client.get(CommandLine.arguments[1])
print(response.text)
