package record

import (
	"errors"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Fetch reads one row into v where no Kind keeps it; core.NotFound when it is
// not there, core.Damaged when it can't be read. noun and id name it.
func Fetch(tx store.Tx, b store.Bucket, key []byte, noun, id string, v any) error {
	data, err := tx.Get(b, key)
	if errors.Is(err, store.ErrCorrupt) {
		return &core.Damaged{Noun: noun, Key: id, Err: err}
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", noun, id, err)
	}
	if data == nil {
		return core.Missing(noun, id)
	}
	if err := core.DecodeStored(data, v); err != nil {
		return &core.Damaged{Noun: noun, Key: id, Err: err}
	}
	return nil
}
