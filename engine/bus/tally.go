package bus

import (
	"errors"
	"slices"

	"swarmdeck/engine/audit"
)

// maxLetters is how many dead letters a mailbox or a durable subscription
// keeps, the newest: where nobody reads, every message becomes one. The audit
// log tells of the older ones too.
const maxLetters = 1000

// tally counts the dead letters of one mailbox or subscription.
type tally struct {
	Letters int   `json:"letters"`           // kept
	Dropped int64 `json:"dropped,omitempty"` // let go for newer ones
}

func consumerKey(kind byte, name string) []byte { return append([]byte{kind}, name...) }

func graveKey(kind byte, name string, seq uint64) []byte {
	return append(append(consumerKey(kind, name), 0), key(seq)...)
}

// counted notes a new dead letter, and drops the oldest of too many. Requests
// without an answer are no one's in particular: they go with their messages.
func counted(tx *audit.Tx, kind byte, name string, seq uint64) error {
	if kind == toAnswer {
		return nil
	}
	var t tally
	if _, err := fetch(tx, bTally, consumerKey(kind, name), &t); err != nil {
		return err
	}
	if err := tx.Put(bGrave, graveKey(kind, name, seq), nil); err != nil {
		return err
	}
	t.Letters++
	if t.Letters <= maxLetters {
		return put(tx, bTally, consumerKey(kind, name), t)
	}
	var oldest uint64
	prefix := append(consumerKey(kind, name), 0)
	err := scan(tx, bGrave, prefix, func(k, _ []byte) (bool, error) {
		oldest = readKey(k[len(prefix):])
		return false, nil
	})
	if err != nil {
		return err
	}
	t.Letters--
	t.Dropped++
	return errors.Join(remove(tx, kind, name, oldest), put(tx, bTally, consumerKey(kind, name), t))
}

// remove removes one dead letter, with its place in the order of its kind.
func remove(tx *audit.Tx, kind byte, name string, seq uint64) error {
	k := keyWith(seq, kind, name)
	var d DeadLetter
	known, err := fetch(tx, bDead, k, &d)
	if err != nil || !known {
		return err
	}
	tx.Add(countLetters, -1)
	if d.ResentAs == "" {
		tx.Add(countDead, -1)
	}
	return errors.Join(tx.Delete(bDead, k), tx.Delete(bGrave, graveKey(kind, name, seq)))
}

// removeAll removes the dead letters of a message.
func removeAll(tx *audit.Tx, seq uint64) error {
	keys, err := lettersOf(tx, seq)
	if err != nil {
		return err
	}
	for _, k := range keys {
		kind, name := k[8], string(k[9:])
		if err := remove(tx, kind, name, seq); err != nil {
			return err
		}
		if kind == toAnswer {
			continue
		}
		var t tally
		if _, err := fetch(tx, bTally, consumerKey(kind, name), &t); err != nil {
			return err
		}
		if t.Letters--; t.Letters > 0 {
			err = put(tx, bTally, consumerKey(kind, name), t)
		} else {
			err = tx.Delete(bTally, consumerKey(kind, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lettersOf are the keys of the dead letters of a message. Those of an event
// of the engine are not: its seq is one of the audit log.
func lettersOf(tx *audit.Tx, seq uint64) (keys [][]byte, err error) {
	err = scan(tx, bDead, key(seq), func(k, _ []byte) (bool, error) {
		if k[8] != toEvents {
			keys = append(keys, slices.Clone(k))
		}
		return true, nil
	})
	return keys, err
}
