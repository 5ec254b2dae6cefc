// The public types of the targets below; everything else in them is `package`.
@_exported public import struct Wire.CloseCode
@_exported public import enum Wire.MessageKind
@_exported public import class Wire.HTTPResponse
@_exported public import struct Wire.Opened
@_exported public import struct Wire.RealtimeError
@_exported public import enum Wire.JSONValue
@_exported public import struct Wire.JSONObject
@_exported public import enum Wire.EJSON
@_exported public import struct Wire.EJSONObject
@_exported public import struct Wire.EJSONPattern
@_exported public import struct Wire.EJSONCustom
@_exported public import struct Wire.DDPError
@_exported public import struct Wire.ObjectID
