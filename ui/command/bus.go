package command

import (
	"fmt"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/face"
)

// messageText is a message as it is followed.
func messageText(m bus.Message, wide bool) string {
	when := m.Timestamp.UTC().Format("15:04:05")
	if wide {
		when = face.Stamp(m.Timestamp) + " " + m.MessageID
	}
	return fmt.Sprintf("%s %s %s %s: %s", when, face.Address(m.Topic, m.RecipientID), m.MessageType, m.SenderID, m.Payload)
}
