"""The protobuf wire format: varints, fields, and the value fields of a tensor."""
