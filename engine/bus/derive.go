package bus

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// unsettled is what is unread and unanswered: it follows from the messages and from what became of
// them.
type unsettled struct{}

var _ audit.Deriver = unsettled{}

func (unsettled) Subject() string { return "mailbox" }

func (unsettled) States(store.Tx, func(string, any) error) error { return nil }

// Derives implements audit.Deriver.
func (unsettled) Derives() []string {
	return []string{string(boxes), string(boxSizes), string(asks), "#" + countOpen, "#" + countAsks}
}

// Derive implements audit.Deriver.
func (unsettled) Derive(tx store.Tx, d *audit.Derivation) error {
	sizes := map[string]uint64{}
	unread, asked := int64(0), int64(0)
	err := record.Scan(tx, messages, nil, nil, false, func(_, data []byte) (bool, error) {
		m, err := decodeHead(data)
		if err != nil || m.Topic != "" {
			return true, nil // of one that can't be read the digest differs
		}
		over := map[string]bool{}
		from, to := record.Seq(m.Seq).Under()
		err = record.Scan(tx, store.Bucket(fates), from, to, false, func(key, _ []byte) (bool, error) {
			over[string(key[len(from):])] = true
			return true, nil
		})
		for _, name := range m.to() {
			if err == nil && !over[name] {
				unread++
				sizes[name]++
				err = boxes.Expect(d, inBox(name, m.Priority, m.Seq), struct{}{})
			}
		}
		if err == nil && m.MessageType == Request && !over[""] {
			asked++
			err = asks.Expect(d, record.Key(m.CorrelationID), askOf(m))
		}
		return true, err
	})
	for name, n := range sizes {
		if err == nil {
			err = boxSizes.Expect(d, record.Key(name), n)
		}
	}
	d.Count(countOpen, unread)
	d.Count(countAsks, asked)
	return err
}
